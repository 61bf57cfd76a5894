"""In-place twins: operators that can write their result into one of their inputs instead of into new memory.

``onnx::Relu_`` computes what ``onnx::Relu`` does, into its first input. Each
element of the result depends on the element of that input at the same place
only, so a twin may write while it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irc.ir import types
from irc.ir.types import TensorType, Type
from irc.ops.pointwise import is_pointwise, result_like
from irc.ops.registry import record, semantics

if TYPE_CHECKING:
    from irc.ir.node import Node

_ALL_KINDS = "buifc"
_NUMBERS = frozenset({types.INT, types.FLOAT, types.BOOL})


def reads_first(kind: str) -> bool:
    """Whether in-place forms of ``kind``, of two tensors, have read both at a place when they write there.

    Both operands may be one tensor then.
    """
    found = record(kind)
    return found.commutative or found.reads_first


def twin_of(node: Node) -> str | None:
    """The kind that computes what ``node`` does into its first input; None if there is none."""
    found = twin(node.kind)
    return None if record(node.kind).pointwise and not is_pointwise(node) else found


def twin(kind: str) -> str | None:
    """The kind of the twin of nodes of ``kind``, unless their version rules it out; None if there is none."""
    found = record(kind)
    in_onnx = found.pointwise and kind.startswith("onnx::") and result_like(kind) == 0
    return f"{kind}_" if in_onnx or found.keeps_type else None


def may_take(node: Node, index: int) -> bool:
    """Whether the result of ``node``, which has a twin, surely has the element type and shape of input ``index``.

    For ONNX operators with one operand this is always so; for others the
    types of the inputs decide.
    """
    operator = record(node.kind)
    if index > 0 and not (index == 1 and operator.commutative and len(node.inputs) == 2):
        return False
    target = node.inputs[index].type
    if not isinstance(target, TensorType):
        return False
    others = [v.type for v in node.inputs if v is not node.inputs[index]]
    if operator.keeps_type:
        if operator.keeps_type == _ALL_KINDS and (operator.shaped_like_first or not others):
            return True
        return keeps_type(target, others)
    scalar = semantics(node.kind)
    is_broadcasting = scalar is not None and (scalar.variadic or scalar.arity == 2)
    return not is_broadcasting or all(broadcasts_into(other, target) for other in others)


def broadcasts_into(other: Type, target: Type) -> bool:
    """Whether a tensor of type ``other`` surely broadcasts to the shape of ``target``."""
    if other.shape is None:
        return False
    if target.shape is None or len(other.shape) > len(target.shape):
        return other.shape == ()
    pairs = zip(reversed(other.shape), reversed(target.shape))
    return all(d == 1 or (d is not None and d == n) for d, n in pairs)


def keeps_type(target: Type, others: Sequence[Type]) -> bool:
    """Whether arithmetic on a tensor of type ``target`` and ``others`` gives a tensor of that type.

    Numbers do not widen a tensor of floats, nor do tensors of the same element type.
    """
    if target.dtype is None or not target.dtype.is_float:
        return False
    return all(t in _NUMBERS or (t.dtype is target.dtype and broadcasts_into(t, target)) for t in others)
