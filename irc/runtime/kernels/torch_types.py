"""Torch's element types: which one a result has, and writing into a tensor in place.

Rules: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc. They
differ from NumPy's: int64 with float32 gives float32, and a tensor without
dimensions or a Python number decides only the kind, not the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.values import is_array

_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)
_CATEGORIES = {"b": _BOOL, "i": _INTEGER, "u": _INTEGER, "f": _FLOAT, "V": _FLOAT, "c": _COMPLEX}
_NUMBERS: dict[type, AnyDType] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float32),  # torch's default floating-point type
    complex: np.dtype(np.complex64),
}


def result_type(*operands: Any) -> AnyDType:
    """The element type of an arithmetic result on ``operands``: tensors and Python numbers."""
    tensors: list[Array] = [x for x in operands if is_array(x)]
    groups: tuple[list[AnyDType], ...] = (
        [x.dtype for x in tensors if x.ndim],
        [x.dtype for x in tensors if not x.ndim],
        [number_dtype(x) for x in operands if not is_array(x)],
    )
    found: AnyDType | None = None
    for group in groups:
        for dtype in group[1:]:
            group[0] = _promote(group[0], dtype)
        if group and (found is None or _category(group[0]) > _category(found)):
            found = group[0] if found is None else _promote(found, group[0])
    assert found is not None, "an operator needs operands"
    return found


def number_dtype(value: Any) -> AnyDType:
    """The element type that a Python number alone stands for."""
    try:
        return _NUMBERS[type(value)]
    except KeyError:
        raise Error("IRC423", f"expected a tensor or a number, got {type(value).__name__}") from None


def as_float(dtype: AnyDType) -> AnyDType:
    """``dtype`` if it is floating-point or complex, else float32: the type of a true division."""
    return dtype if _category(dtype) >= _FLOAT else np.dtype(np.float32)


def tensor(value: Any, dtype: AnyDType | None = None) -> Array:
    """``value``, a tensor or a number, as an array of element type ``dtype``; not copied if it is that already."""
    if is_array(value):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    return np.asarray(value, dtype or number_dtype(value))


def write(target: Array, compute: Callable[[Array], Any], dtype: AnyDType) -> Array:
    """Write into ``target`` what ``compute(out)`` writes into ``out`` with elements of type ``dtype``; return it.

    Raises:
        Error: ``target`` may not be written, has another element on the same memory, or cannot hold ``dtype``.
    """
    check_writable(target)
    if _category(dtype) > _category(target.dtype):
        raise Error("IRC431", f"a result of type {dtype.name} cannot be written into a tensor of {target.dtype.name}")
    if dtype == target.dtype:
        compute(target)
    else:
        wide = np.empty(target.shape, dtype)
        compute(wide)
        np.copyto(target, wide, casting="unsafe")
    return target


def check_writable(target: Array, one_value: bool = False) -> None:
    """Error IRC431 if ``target`` is a constant or borrowed, or several of its elements are one place in memory.

    The latter does not matter if all elements become ``one_value``.
    """
    if not target.flags.writeable:
        raise Error("IRC431", "an in-place operator would write into memory that may not be changed")
    if not one_value and target.size and any(s == 0 and n > 1 for s, n in zip(target.strides, target.shape)):
        raise Error("IRC431", "an in-place operator would write into an expanded tensor; clone it first")


def _category(dtype: AnyDType) -> int:
    try:
        return _CATEGORIES[dtype.kind]
    except KeyError:
        raise Error("IRC423", f"no arithmetic on elements of type {dtype.name}") from None


def _promote(a: AnyDType, b: AnyDType) -> AnyDType:
    if a == b:
        return a
    low, high = sorted((a, b), key=_category)
    if _category(low) == _category(high) or (_category(low) == _FLOAT and low == np.float64):
        try:
            return np.promote_types(low, high)
        except TypeError:  # float16 with bfloat16: neither holds the other
            return np.dtype(np.float32)
    return high
