"""Along which axes operators reduce: softmax, normalisations, reductions.

Such an operator looks at *rows*, the elements that differ in these axes alone, each by itself. Pointwise operators
before and behind it can be computed with it while a row is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from irc.ir.constants import is_none
from irc.ir.kinds import CONSTANT

if TYPE_CHECKING:
    from irc.ir.node import Node


class Rows(NamedTuple):
    """How rows lie in the first operand.

    Attributes:
        axes: those along which they do, counted from the end, in order.
        groups: into how many groups the second axis is cut, each with rows of its own; 0: it is whole.
    """

    axes: tuple[int, ...]
    groups: int = 0


def row_axes(node: Node, rank: int) -> Rows | None:
    """How rows lie in the first operand of ``node``, which has this rank; None if that is not known."""
    find = _KINDS.get(node.kind)
    axes = None if find is None else find(node, rank)
    if axes is None or not all(-rank <= axis < rank for axis in axes):
        return None
    groups = 0
    if node.kind in ("onnx::GroupNormalization", "aten::group_norm"):
        groups = int(static(node, 1) if node.kind == "aten::group_norm" else node.attributes.get("num_groups", 0))
    return Rows(tuple(sorted({axis % rank - rank for axis in axes})), groups)


_Find = Callable[["Node", int], Sequence[int] | None]


def _from(axis: int, rank: int) -> Sequence[int] | None:
    """All axes from ``axis`` on."""
    return range(axis % rank, rank) if -rank <= axis < rank else None


def _softmax(node: Node, rank: int) -> Sequence[int] | None:
    if (node.version or 13) < 13:
        return _from(node.attributes.get("axis", 1), rank)
    return (node.attributes.get("axis", -1),)


def _normalized(node: Node, rank: int) -> Sequence[int] | None:
    return _from(node.attributes.get("axis", -1), rank)


def _images(node: Node, rank: int) -> Sequence[int] | None:
    return range(2, rank) if rank > 2 else None


def _groups(node: Node, rank: int) -> Sequence[int] | None:
    is_by_channel = (node.version or 21) >= 21 and node.attributes.get("num_groups", 0) > 0
    return range(1, rank) if rank > 1 and is_by_channel else None


def _batch(node: Node, rank: int) -> Sequence[int] | None:
    """At inference, when nothing is reduced: the axes along which a channel has one factor and one shift."""
    attributes = node.attributes
    if len(node.outputs) != 1 or attributes.get("training_mode", 0) or not attributes.get("spatial", 1):
        return None
    return range(2, rank) if rank > 1 else None


def _reduced(node: Node, rank: int) -> Sequence[int] | None:
    if (node.version or 18) < (13 if node.kind == "onnx::ReduceSum" else 18):
        return node.attributes.get("axes") or range(rank)
    axes: Any = ()
    if len(node.inputs) > 1 and not is_none(node.inputs[1]):
        source = node.inputs[1].made_by(CONSTANT)
        if source is None:
            return None
        axes = np.asarray(source.attributes["value"].numpy()).reshape(-1).tolist()
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return None
    return axes or range(rank)


def static(node: Node, index: int) -> Any:
    """The operand at ``index``, a number, list or None that is known when the model is compiled.

    Raises:
        LookupError: it is computed.
    """
    if index >= len(node.inputs) or is_none(node.inputs[index]):
        return None
    source = node.inputs[index].made_by(CONSTANT)
    if source is None:
        raise LookupError(f"operand {index} of {node.kind} is computed")
    return source.attributes.get("value")


def _torch_softmax(node: Node, rank: int) -> Sequence[int] | None:
    try:
        axis, dtype = static(node, 1), static(node, 2)
    except LookupError:
        return None
    return (axis,) if isinstance(axis, int) and not dtype else None


def _torch_layer(node: Node, rank: int) -> Sequence[int] | None:
    try:
        shape = static(node, 1)
    except LookupError:
        return None
    if not isinstance(shape, list | tuple):
        return None
    size = len(cast("Sequence[int]", shape))
    return range(rank - size, rank) if 0 < size <= rank else None


def _torch_groups(node: Node, rank: int) -> Sequence[int] | None:
    try:
        count = static(node, 1)
    except LookupError:
        return None
    return range(1, rank) if rank > 1 and isinstance(count, int) and count > 0 else None


def _torch_batch(node: Node, rank: int) -> Sequence[int] | None:
    """As `_batch`."""
    try:
        is_training = static(node, 5)
    except LookupError:
        return None
    return range(2, rank) if rank > 1 and is_training is False else None


def torch_reduction(node: Node) -> tuple[Any, bool] | None:
    """The dimensions that a reduction of TorchScript goes over, as they are given, and whether they stay as 1.

    None if something of that is computed, or the result is of an element type of its own.
    """
    try:
        given = [static(node, i) for i in range(1, len(node.inputs))]
    except LookupError:
        return None
    if len(given) < 2 and not (given and isinstance(given[0], list | tuple)):
        given = [None, False, *given]
    dim, keeps, dtype = (*given, *(None, False, None)[len(given) :])
    return None if dtype is not None else (dim, bool(keeps))


def _torch_reduced(node: Node, rank: int) -> Sequence[int] | None:
    found = torch_reduction(node)
    if found is None or not rank:
        return None
    dim, _ = found
    return [dim] if isinstance(dim, int) else dim or range(rank)


REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)

_KINDS: dict[str, _Find] = {
    "onnx::Softmax": _softmax,
    "onnx::LogSoftmax": _softmax,
    "irc::masked_softmax": lambda node, rank: (node.attributes.get("axis", -1),),
    "onnx::LpNormalization": lambda node, rank: (node.attributes.get("axis", -1),),
    "onnx::LayerNormalization": _normalized,
    "onnx::RMSNormalization": _normalized,
    "onnx::InstanceNormalization": _images,
    "onnx::GroupNormalization": _groups,
    "onnx::BatchNormalization": _batch,
    "onnx::GlobalAveragePool": _images,
    "onnx::GlobalMaxPool": _images,
    **{f"onnx::{name}": _reduced for name in REDUCTIONS},
    **{f"aten::{name}": _torch_softmax for name in ("softmax", "_softmax", "log_softmax", "_log_softmax")},
    **{f"aten::{name}": _torch_layer for name in ("layer_norm", "native_layer_norm")},
    **{f"aten::{name}": _torch_reduced for name in ("sum", "mean", "amax", "amin")},
    "aten::group_norm": _torch_groups,
    "aten::batch_norm": _torch_batch,
}

ROW_KINDS = frozenset(_KINDS)
"""The kinds of these operators."""
