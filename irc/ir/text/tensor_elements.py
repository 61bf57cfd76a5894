"""Arrays of any element type from numbers and strings, exactly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irc.ir.tensor import Array
from irc.ir.types import DType


class NanBits(int):
    """A NaN that is not the usual one, as its bit pattern in the element type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"nan({int(self):#x})"


def array_of(dtype: DType, elements: Sequence[Any]) -> Array:
    """A one-dimensional array of ``elements``.

    Args:
        dtype: the element type.
        elements: strings, bools, ints, floats, ``NanBits``, and pairs of these for complex numbers.

    Raises:
        ValueError: an element is of another kind or does not fit. Floats are rounded, but not to infinity; the
            bits of ``NanBits`` must be a NaN's.
    """
    if dtype is DType.STRING:
        _check(dtype, elements, str)
        return np.array(elements, object)
    if dtype is DType.BOOL or dtype.is_integer:
        return _integers(dtype, elements)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        _check(dtype, elements, (int, float, complex, tuple))
        part = DType.FLOAT if dtype is DType.COMPLEX64 else DType.DOUBLE
        return _floats(part, [number for element in elements for number in _pair(element)]).view(dtype.numpy)
    _check(dtype, elements, (int, float))
    return _floats(dtype, elements)


def _check(dtype: DType, elements: Sequence[Any], kinds: type | tuple[type, ...]) -> None:
    for element in elements:
        if not isinstance(element, kinds) or (kinds is int and isinstance(element, NanBits)):
            raise ValueError(f"{element!r} cannot be an element of a {dtype.label} tensor")


def _pair(element: Any) -> tuple[Any, Any]:
    if isinstance(element, tuple):
        return cast("tuple[Any, Any]", element)
    return (element.real, element.imag) if isinstance(element, complex) else (element, 0.0)


def _integers(dtype: DType, elements: Sequence[Any]) -> Array:
    _check(dtype, elements, int)
    wide = np.uint64 if any(e >= 2**63 for e in elements) else np.int64
    if wide is np.uint64 and min(elements) < 0:
        raise ValueError(f"{min(elements)} and {max(elements)} do not both fit in a {dtype.label} tensor")
    array = np.array(elements, wide).astype(dtype.numpy)
    for element, item in zip(elements, array, strict=True):
        if int(item) != element:
            raise ValueError(f"{element} does not fit in a {dtype.label} tensor")
    return array


def _floats(dtype: DType, elements: Sequence[Any]) -> Array:
    doubles = np.array([0.0 if isinstance(e, NanBits) else float(e) for e in elements], np.float64)
    with np.errstate(all="ignore"):
        array = doubles.astype(dtype.numpy)
    for element, before, after in zip(elements, doubles, array.astype(np.float64), strict=True):
        if np.isfinite(before) != np.isfinite(after) and not isinstance(element, NanBits):
            raise ValueError(f"{element} does not fit in a {dtype.label} tensor")
    words = array.view(f"u{array.itemsize}")
    for i, element in enumerate(elements):
        if isinstance(element, NanBits):
            if element >= 1 << (8 * array.itemsize):
                raise ValueError(f"{element} has more bits than a {dtype.label}")
            words[i] = element
            if array[i] == array[i]:
                raise ValueError(f"{element} are the bits of no NaN of a {dtype.label} tensor")
    return array
