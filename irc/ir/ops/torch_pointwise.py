"""Which TorchScript operators are pointwise: each element of the result depends on one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.ops.aten import TAGS
from irc.ir.ops.pointwise import is_pointwise
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node

TORCH_POINTWISE = frozenset(f"aten::{name}" for name in TAGS.pointwise)
"""Functional operators; their overloads for numbers and lists are not meant (see ``is_elementwise``)."""

OTHER_FLOATS = frozenset(["aten::complex", "aten::float_power", "aten::polar"])
"""Those whose results are of another type than their operands, if these are floats of one type."""

_KEEP_FLOAT_TYPE = frozenset(f"aten::{name}" for name, rule in TAGS.pointwise.items() if rule != "bool") - OTHER_FLOATS


def keeps_float_type(node: Node) -> bool:
    """Whether ``node`` is pointwise of TorchScript, and of operands of one float type gives results of that type."""
    return node.kind in _KEEP_FLOAT_TYPE and is_elementwise(node)


def is_elementwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors, which broadcast as in NumPy, whichever standard or package it is of."""
    if node.kind not in TORCH_POINTWISE:
        return is_pointwise(node)
    return len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)
