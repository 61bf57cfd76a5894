"""Torch's promotion of element types as far as operands' types tell, and shape rules built on it.

Rules: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc. A
tensor without dimensions or a Python number decides only the kind, not the size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from irc.ir import types
from irc.ir.types import SCALAR_TYPES, DType, ListType, OptionalType, TensorType, Type
from irc.ops.aten.call import Call, CallRule

NUMBERS: dict[Type, DType] = {types.BOOL: DType.BOOL, types.INT: DType.INT64, types.FLOAT: DType.FLOAT}

_SMALL = frozenset({DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64})
"""Integers that torch mixes; its larger unsigned ones it mostly does not."""

COMPLEX = {DType.FLOAT: DType.COMPLEX64, DType.DOUBLE: DType.COMPLEX128}
"""Type of the parts -> type of the complex numbers."""

REAL = {**{whole: part for part, whole in COMPLEX.items()}, DType.FLOAT: DType.FLOAT, DType.DOUBLE: DType.DOUBLE}
"""Type of numbers, complex or not -> type of their real parts."""

_WIDER = {DType.FLOAT16: 0, DType.BFLOAT16: 0, DType.FLOAT: 1, DType.DOUBLE: 2}


def result_type(operands: Iterable[Type]) -> DType | None:
    """The element type of an arithmetic result on tensors and numbers; None if the types leave it open."""
    places: list[list[tuple[int, DType]]] = []
    for operand in operands:
        if isinstance(operand, TensorType):
            if operand.dtype is None:
                return None
            groups = (0, 1) if operand.shape is None else (0,) if operand.shape else (1,)
            places.append([(group, operand.dtype) for group in groups])
        elif operand in NUMBERS:
            places.append([(2, NUMBERS[operand])])
        else:
            return None
    # Where a rank is unknown, both possibilities must agree.
    found = {_combined(choice) for choice in product(*places)} if len(places) <= 4 else {None}
    return found.pop() if len(found) == 1 else None


def _combined(operands: tuple[tuple[int, DType], ...]) -> DType | None:
    """The result of operands, each with its group: tensors with dimensions (0), without (1), numbers (2)."""
    found: DType | None = None
    for group in range(3):
        best: DType | None = None
        for of_group, dtype in operands:
            if of_group == group:
                best = dtype if best is None else promote(best, dtype)
                if best is None:
                    return None
        if best is not None and (found is None or category(best) > category(found)):
            found = best if found is None else _decided(found, best)
            if found is None:
                return None
    return found


def _decided(found: DType, later: DType) -> DType | None:
    """The common type with the operands so far if those of a later group are of a higher category."""
    return COMPLEX.get(found) if found.is_float and later in COMPLEX.values() else promote(found, later)


def category(dtype: DType) -> int:
    """Bool, integer, floating-point, complex, none of these: the higher decides."""
    if dtype is DType.BOOL:
        return 0
    if dtype.is_integer:
        return 1
    if dtype.is_float:
        return 2
    return 3 if dtype in (DType.COMPLEX64, DType.COMPLEX128) else 4


def promote(a: DType, b: DType) -> DType | None:
    """The common type of tensors of types ``a`` and ``b``; None if that is not settled here."""
    if a is b:
        return a
    low, high = sorted((a, b), key=category)
    if category(high) > 2:
        return None
    if category(low) < category(high):
        return high
    if a in _SMALL and b in _SMALL:
        if DType.UINT8 in (a, b):
            other = b if a is DType.UINT8 else a
            return DType.INT16 if other is DType.INT8 else other
        return max(a, b, key=lambda d: d.bits)
    if a in _WIDER and b in _WIDER:
        return DType.FLOAT if _WIDER[a] == _WIDER[b] else max(a, b, key=_WIDER.__getitem__)
    return None


def as_float(dtype: DType | None) -> DType | None:
    """The type of a true division, or of a function of real numbers, that has operands of type ``dtype``."""
    return DType.FLOAT if dtype is not None and category(dtype) < 2 else dtype


def if_float(dtype: DType | None) -> DType | None:
    """``dtype`` if it is floating-point, else None, as the operator treats other types differently."""
    return dtype if dtype is not None and dtype.is_float else None


def element_type(given: Any) -> DType | None:
    """The element type that a ``ScalarType`` argument names, if it is known."""
    return SCALAR_TYPES.get(given) if isinstance(given, int) else None


def common_type(*operands: TensorType) -> DType | None:
    """The common element type of operands that must agree."""
    found = {t.dtype for t in operands}
    return found.pop() if len(found) == 1 else None


# -- shape rules -----------------------------------------------------------------

_NOT_OPERANDS = frozenset({"alpha", "value", "rounding_mode", "condition", "eps"})

_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in "add sub mul eq ne lt le gt ge".split()
}


def like_first(c: Call) -> Type:
    """The type of the first operand."""
    return c.tensor(0)


def like_first_if_float(c: Call) -> Type:
    """The type of the first operand; of other element types than floats, only its shape."""
    return TensorType(if_float(c.tensor(0).dtype), c.tensor(0).shape)


def together(c: Call, operands: list[Type] | None = None) -> TensorType:
    """The common element type and broadcast shape of ``operands``, by default all operands' types."""
    operands = _operands(c) if operands is None else operands
    shapes = [t.shape for t in operands if t.is_any or holds_tensors(t)]
    if c.schema.name == "aten::where":
        shapes.append(c.tensor("condition").shape)
    return TensorType(result_type(operands), c.broadcast(shapes))


def _operands(c: Call) -> list[Type]:
    names = [a.name for a in c.schema.arguments if a.name not in _NOT_OPERANDS]
    return [type for type in map(c.type, names) if type is not None]


def holds_tensors(type: Type) -> bool:
    """Whether ``type`` is that of a tensor, or of a list of tensors."""
    if isinstance(type, ListType | OptionalType):
        return holds_tensors(type.elem)
    return isinstance(type, TensorType)


def floats(c: Call) -> Type | tuple[Type, ...]:
    """Float where the operands are bools or integers, else their common type."""
    if c.is_number():
        return ()
    found = together(c)
    return TensorType(as_float(found.dtype), found.shape)


def shape_together(c: Call) -> Type | tuple[Type, ...]:
    """The broadcast shape of the operands, of any element type."""
    return () if c.is_number() else TensorType(None, together(c).shape)


def _number(c: Call) -> tuple[Type, ...]:
    """Arithmetic on known integers, which computes shapes: the result is tracked."""
    apply = _INTEGERS.get(c.schema.name.removeprefix("aten::"))
    values = [c.types.item(i) for i in range(len(c.node.inputs))]
    if apply is not None and len(values) == 2 and all(isinstance(v, int) for v in values):
        c.tell(c.node.outputs[0], apply(*values))
    return ()


BY_RESULT_TYPE: dict[str, CallRule] = {
    "bool": lambda c: _number(c) if c.is_number() else TensorType(DType.BOOL, together(c).shape),
    "common": lambda c: _number(c) if c.is_number() else together(c),
    "first": like_first,
    "first-if-float": like_first_if_float,
    "float": floats,
}
"""Value of the tag ``pointwise`` -> the shape rule of pointwise operators that have no other."""
