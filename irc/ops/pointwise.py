"""Which operators of ONNX and of other packages are pointwise: a result element depends on one element of each input.

Such operators fuse into one pass over memory, and may write their result over an input of the same shape and type. Of
ONNX's own, all that is known is in their records, `irc.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ops.registry import record, semantics

if TYPE_CHECKING:
    from irc.ir.node import Node

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
    found = semantics(kind)
    return 0 if found is None else found.result


def overwritable(node: Node) -> int:
    """How many inputs, from the first on, ``node`` may write its result over, given equal types and shapes."""
    if node.kind in SCATTERING:
        return 1
    if not record(node.kind).pointwise or result_like(node.kind) is None:
        return 0
    return 1 if node.kind in SHAPED_LIKE_FIRST else len(node.inputs)


def is_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise and its inputs broadcast as in NumPy."""
    if not record(node.kind).pointwise:
        return False
    found = semantics(node.kind, node.version)
    return found is None or found.broadcasts
