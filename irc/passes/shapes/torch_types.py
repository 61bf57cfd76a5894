"""Torch's element types of results, as far as the types of the operands tell.

Rules: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc. A
tensor without dimensions or a Python number decides only the kind, not the size.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from irc.ir import types
from irc.ir.types import DType, TensorType, Type

NUMBERS: dict[Type, DType] = {types.BOOL: DType.BOOL, types.INT: DType.INT64, types.FLOAT: DType.FLOAT}

_SMALL = frozenset({DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64})
"""Integers that torch mixes; its larger unsigned ones it mostly does not."""

COMPLEX = {DType.FLOAT: DType.COMPLEX64, DType.DOUBLE: DType.COMPLEX128}
"""Type of the parts -> type of the complex numbers."""

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
    """``dtype`` if it is floating-point, else None: the operator refuses other types, or treats them differently."""
    return dtype if dtype is not None and dtype.is_float else None
