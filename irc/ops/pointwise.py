"""Pointwise operators: each element of a result depends on one element of each input.

Such operators fuse into one pass over memory, and may write their result over an input of the same shape and type: each
has an in-place variant, as ``onnx::Relu_`` of ``onnx::Relu``, which writes the same result into its first input. As an
element of the result depends on that input at the same index only, the variant may write while it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir import Node, TensorType, Type, types
from irc.ops.registry import record, semantics


def result_like(kind: str) -> int | None:
    """The input whose element type the result of a pointwise operator has; None if it has one of its own."""
    found = semantics(kind)
    return 0 if found is None else found.result


def overwritable(node: Node) -> int:
    """The number of first inputs that ``node`` may write its result over, given equal types and shapes."""
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
    """Whether ``node`` is pointwise of TorchScript, and keeps the float type that its operands share."""
    return record(node.kind).result_type not in (None, "bool", "wider") and is_elementwise(node)


def is_elementwise(node: Node) -> bool:
    """Whether ``node`` is pointwise on tensors that broadcast as in NumPy, of any namespace."""
    if record(node.kind).result_type is None:  # none of TorchScript's
        return is_pointwise(node)
    return len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)


# -- in-place variants ---------------------------------------------------------


_ALL_KINDS = "buifc"
_NUMBERS = frozenset({types.INT, types.FLOAT, types.BOOL})


def reads_first(kind: str) -> bool:
    """Whether in-place forms of ``kind``, of two tensors, have read both at a place when they write there.

    Both operands may be one tensor then.
    """
    found = record(kind)
    return found.commutative or found.reads_first


def inplace_variant_of(node: Node) -> str | None:
    """The kind of node that writes the result of ``node`` into its first input; None if there is none."""
    found = inplace_variant(node.kind)
    return None if record(node.kind).pointwise and not is_pointwise(node) else found


def inplace_variant(kind: str) -> str | None:
    """The kind of the in-place variant of ``kind``; None if there is none, as in some versions."""
    found = record(kind)
    in_onnx = found.pointwise and kind.startswith("onnx::") and result_like(kind) == 0
    return f"{kind}_" if in_onnx or found.keeps_type else None


def can_replace_input(node: Node, index: int) -> bool:
    """Whether ``node``, which has an in-place variant, gives a result of input ``index``'s type and shape.

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
