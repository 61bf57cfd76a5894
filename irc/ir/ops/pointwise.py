"""Which operators of ONNX and of other packages are pointwise: a result element depends on one element of each input.

Such operators fuse into one pass over memory, and may write their result over an input of the same shape and type. Of
ONNX's own, all that is known is in their records, `irc.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc import ops

if TYPE_CHECKING:
    from irc.ir.node import Node

POINTWISE = {f"onnx::{name}" for name in ops.names("onnx")}
"""The kinds of all pointwise operators, whose kernels take ``out=``. Operators of others are added when they are
registered; their kernels may do without."""

SHAPED_LIKE_FIRST = frozenset(["onnx::Clip"])
"""Operators whose result may only be written over input 0: it has that one's shape, others of one element may have more
axes."""

SCATTERING = frozenset(
    [
        "irc::slice_scatter",
        "onnx::Scatter",
        "onnx::ScatterElements",
        "onnx::ScatterND",
        "onnx::TensorScatter",
    ]
)
"""Operators whose result is input 0 but for some elements: written over it, those are all that is written."""


def result_like(kind: str) -> int | None:
    """The input whose element type the result of a pointwise operator has; None if it is no input's."""
    record = ops.find(kind)
    return 0 if record is None else record.result


def overwritable(node: Node) -> int:
    """How many inputs, from the first on, ``node`` may write its result over, given equal types and shapes."""
    if node.kind in SCATTERING:
        return 1
    if node.kind not in POINTWISE or result_like(node.kind) is None:
        return 0
    return 1 if node.kind in SHAPED_LIKE_FIRST else len(node.inputs)


def is_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise and its inputs broadcast as in NumPy."""
    if node.kind not in POINTWISE:
        return False
    record = ops.find(node.kind, node.version)
    return record is None or record.broadcasts
