"""Pointwise operators: each element of a result depends on one element of each input.

Such operators fuse into one pass over memory, and may write their result over an input of the same shape and type.
Shape rules for them are here, with those that others share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irc.ir.types import Dim, DType, TensorType, Type
from irc.ops.inference import Contents, NodeTypes, elementwise
from irc.ops.record import ContentsRule, Operator, ShapeRule
from irc.ops.registry import record, semantics

if TYPE_CHECKING:
    from irc.ir.node import Node


def result_like(kind: str) -> int | None:
    """The input whose element type the result of a pointwise operator has; None if it is no input's."""
    found = semantics(kind)
    return 0 if found is None else found.result


def overwritable(node: Node) -> int:
    """How many inputs, from the first on, ``node`` may write its result over, given equal types and shapes."""
    found = record(node.kind)
    if found.scatters:
        return 1
    scalar = found.semantics()
    if not found.pointwise or (scalar is not None and scalar.result is None):
        return 0
    return 1 if found.shaped_like_first else len(node.inputs)


def is_pointwise(node: Node) -> bool:
    """Whether ``node`` is pointwise and its inputs broadcast as in NumPy."""
    found = record(node.kind)
    if not found.pointwise:
        return False
    scalar = found.semantics(node.version)
    return scalar is None or scalar.broadcasts


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


# -- shape rules -----------------------------------------------------------------


def same_as_first(c: NodeTypes) -> Type:
    """The type of the first operand."""
    return c.type(0)


def broadcast(c: NodeTypes) -> Type:
    """Operands of one element type broadcast."""
    known = [d for d in (c.dtype(i) for i in range(len(c.node.inputs))) if d is not None]
    if len(set(known)) > 1 and c.node.kind != "onnx::BitShift":
        names = ", ".join(sorted({d.label for d in known}))
        c.fail(f"inputs must have one element type, but have {names}; insert a Cast")
    return broadcast_as(c, known[0] if known else None)


def compare(c: NodeTypes) -> Type:
    """Operands broadcast to truth values."""
    return broadcast_as(c, DType.BOOL)


def test(c: NodeTypes) -> Type:
    """A truth value for each element."""
    return TensorType(DType.BOOL, c.shape(0))


def broadcast_as(c: NodeTypes, dtype: DType | None) -> Type:
    """Tensors of element type ``dtype`` that operands broadcast to."""
    if c.version < 7 and len(c.node.inputs) == 2 and c.node.kind not in ("onnx::Max", "onnx::Min", "onnx::Sum"):
        return TensorType(dtype, c.shape(0))  # before 7 only the second input was broadcast
    return TensorType(dtype, c.broadcast([c.shape(i) for i in range(len(c.node.inputs))]))


def rule_of(operator: Operator) -> ShapeRule | None:
    """The shape rule that follows from the scalar semantics of an operator of ONNX."""
    found = operator.semantics()
    if found is None:
        return None
    if found.arity == 1 and not found.variadic:
        return test if found.result is None else same_as_first
    return compare if found.result is None else broadcast


def contents_by(apply: Callable[..., Dim], oldest: int = 7) -> ContentsRule:
    """The rule of an operator that broadcasts its operands, as it does from version ``oldest`` on."""

    def rule(c: NodeTypes) -> Contents | None:
        parts = [c.contents_of(i) for i in range(len(c.node.inputs))]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) or c.version < oldest else elementwise(apply, *known)

    return rule
