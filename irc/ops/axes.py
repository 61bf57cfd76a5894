"""Along which axes operators reduce (softmax, normalisations, reductions) and concatenate.

Of the former, each looks at *rows*, the elements that differ in these axes alone, each by itself. Pointwise operators
before and behind it can be computed with it while a row is in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from irc.ir import CONSTANT, Node, TensorType, Value, constant_value, is_none
from irc.ops.registry import record


class ComputedError(LookupError):
    """An operand that decides along which axes a node reduces is not known when the model is compiled."""


class Rows(NamedTuple):
    """How rows lie in the first operand.

    Attributes:
        axes: those along which they do, counted from the end, in order.
        groups: into how many groups the second axis is cut, each with rows of its own; 0: it is whole.
    """

    axes: tuple[int, ...]
    groups: int = 0


def reduces(node: Node) -> bool:
    """Whether ``node`` is such an operator, of a tensor: overloads for lists of numbers are not meant."""
    has_rule = record(node.kind).reduces is not None
    return has_rule and bool(node.inputs) and isinstance(node.inputs[0].type, TensorType)


def row_axes(node: Node, rank: int) -> Rows | None:
    """How rows lie in the first operand of ``node``, which has this rank; None if that is not known."""
    find = record(node.kind).reduces
    try:
        axes = None if find is None else find(node, rank)
    except ComputedError:
        return None
    if axes is None or not all(-rank <= axis < rank for axis in axes):
        return None
    groups = 0
    if node.kind in ("onnx::GroupNormalization", "aten::group_norm"):
        groups = int(static(node, 1) if node.kind == "aten::group_norm" else node.attributes.get("num_groups", 0))
    return Rows(tuple(sorted({axis % rank - rank for axis in axes})), groups)


def static(node: Node, index: int) -> Any:
    """The operand at ``index``, a number, list or None that is known when the model is compiled.

    Raises:
        ComputedError: it is computed.
    """
    if index >= len(node.inputs) or is_none(node.inputs[index]):
        return None
    source = node.inputs[index].made_by(CONSTANT)
    if source is None:
        raise ComputedError(f"operand {index} of {node.kind} is computed")
    return source.attributes.get("value")


def torch_reduction(node: Node) -> tuple[Any, bool] | None:
    """The dimensions that a TorchScript reduction reduces, as given, and whether they stay as 1.

    None if something of that is computed, or the result is of an element type of its own.
    """
    try:
        given = [static(node, i) for i in range(1, len(node.inputs))]
    except ComputedError:
        return None
    if len(given) < 2 and not (given and isinstance(given[0], list | tuple)):
        given = [None, False, *given]
    dim, keeps, dtype = (*given, *(None, False, None)[len(given) :])
    return None if dtype is not None else (dim, bool(keeps))


# -- concatenation -------------------------------------------------------------


APPEND = "irc::append_"
CONCAT = "onnx::Concat"

_WITH_AXIS = frozenset({APPEND, CONCAT})
_OF_LIST = "aten::cat"
_STACK = "aten::stack"


class Join(NamedTuple):
    """Tensors that are concatenated along an axis."""

    parts: Sequence[Value]
    axis: int


def joined(node: Node) -> Join | None:
    """What ``node`` concatenates; None if it is another operator, or the axis or the parts are not known.

    torch's operators take a list, whose elements are known if nothing else uses it.
    """
    if node.kind in _WITH_AXIS:
        axis, parts = node.attributes.get("axis"), node.inputs
        return Join(parts, axis) if type(axis) is int and parts and len(node.outputs) == 1 else None
    return _joined_list(node) if node.kind == _OF_LIST else None


def assembled(node: Node) -> Join | None:
    """The tensors that ``node`` concatenates or stacks, as `joined`; the axis is of the result."""
    return _joined_list(node) if node.kind == _STACK else joined(node)


def is_list_joined(node: Node) -> bool:
    """Whether ``node`` joins the elements of a list that nothing else uses."""
    return node.kind in (_OF_LIST, _STACK) and _joined_list(node) is not None


def _joined_list(node: Node) -> Join | None:
    """The elements of the list that ``node`` joins, if nothing else uses it."""
    if not 1 <= len(node.inputs) <= 2 or len(node.outputs) != 1:
        return None
    made = node.inputs[0].made_by("prim::ListConstruct")
    if made is None or made.output.user_count != 1 or not made.output.uses_by(node):
        return None
    axis = 0 if len(node.inputs) == 1 else constant_value(node.inputs[1])
    return Join(made.inputs, axis) if type(axis) is int and made.inputs else None
