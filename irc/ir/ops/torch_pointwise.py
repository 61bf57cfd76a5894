"""Which TorchScript operators are pointwise: each element of the result depends on one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.ops.aten import TAGS
from irc.ir.ops.pointwise import is_pointwise
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node

TORCH_POINTWISE = frozenset(f"aten::{name}" for name in TAGS.pointwise)
"""Functional operators; their overloads for numbers and lists are not meant (see ``is_torch_pointwise``)."""


def is_torch_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors, which broadcast as in NumPy."""
    return node.kind in TORCH_POINTWISE and len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)


OTHER_FLOATS = frozenset(["aten::complex", "aten::float_power", "aten::polar"])
"""Those whose results are of another type than their operands, if these are floats of one type."""


def keeps_float_type(node: Node) -> bool:
    """Whether ``node`` is pointwise of TorchScript, and of operands of one float type gives results of that type."""
    name = node.kind.removeprefix("aten::")
    return is_torch_pointwise(node) and node.kind not in OTHER_FLOATS and TAGS.pointwise[name] != "bool"


def is_elementwise(node: Node) -> bool:
    """Whether ``node`` is pointwise, whichever standard or package it is of."""
    return is_pointwise(node) or is_torch_pointwise(node)
