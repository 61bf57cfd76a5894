"""Which TorchScript operators are pointwise: each element of the result depends on one element of each operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.types import TensorType
from irc.ops.pointwise import is_pointwise
from irc.ops.registry import record

if TYPE_CHECKING:
    from irc.ir.node import Node


def is_torch_pointwise(kind: str) -> bool:
    """Whether ``kind`` is a functional pointwise operator of TorchScript.

    Its overloads for numbers and lists are not meant (see `is_elementwise`).
    """
    return record(kind).result_type is not None


def is_elementwise_kind(kind: str) -> bool:
    """Whether ``kind`` is pointwise on tensors, whichever standard or package it is of."""
    return record(kind).pointwise or is_torch_pointwise(kind)


def keeps_float_type(node: Node) -> bool:
    """Whether ``node`` is pointwise of TorchScript, and of operands of one float type gives results of that type."""
    return record(node.kind).result_type not in (None, "bool", "wider") and is_elementwise(node)


def is_elementwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors, which broadcast as in NumPy, whichever standard or package it is of."""
    if not is_torch_pointwise(node.kind):
        return is_pointwise(node)
    return len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)
