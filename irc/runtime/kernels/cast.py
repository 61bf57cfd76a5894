"""Cast and CastLike: conversion between any two element types.

Numbers convert as C and ONNX Runtime do: floats to integers by truncation,
integers by dropping high bits, floats to floats to the nearest, ties to even.
Strings hold numbers in Python's notation; floats print with 8 significant digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import DType, Node
from irc.runtime.bounds import pace
from irc.runtime.kernels.numerics import FLOAT, HALF, narrowed, widened
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.support import AnyDType, Array, c_order, numpy_dtype

PACE_ELEMENTS = 1 << 16
"""Numbers that are written as strings before a run under limits looks at the clock."""

_BY_BITS = {FLOAT, HALF}
"""The types that are converted to each other by bits."""

Conversion = Callable[[Array], Array]

_SATURATING = (DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ)


def _target(node: Node) -> AnyDType:
    to: int | str = node.attributes["to"]
    return DType[to].numpy if isinstance(to, str) else numpy_dtype(to)  # version 1 names the type


def _conversion(node: Node) -> Conversion:
    return conversion(_target(node), bool(node.attributes.get("saturate", 1)), node.attributes.get("round_mode", "up"))


@computes("onnx::Cast", dtype=_target, convert=_conversion)
def cast(x: Array, out: Array | None = None, *, dtype: AnyDType, convert: Conversion) -> Array:
    if out is None:
        return convert(x)
    if {x.dtype, dtype} == _BY_BITS:
        return _between_floats(x, dtype, out)
    np.copyto(out, convert(x))
    return out


@computes("onnx::CastLike")
def cast_like(x: Array, like: Array, *, saturate: bool = True, round_mode: str = "up") -> Array:
    return conversion(like.dtype, saturate, round_mode)(x)


@computes("onnx::BitCast", dtype=_target)
def bit_cast(x: Array, *, dtype: AnyDType) -> Array:
    if x.dtype.hasobject or dtype.hasobject or DType.from_numpy(x.dtype).bits != DType.from_numpy(dtype).bits:
        raise Error("IRC421", f"elements of type {x.dtype} do not have the size of {dtype}")
    return x.copy().view(dtype)


def conversion(dtype: AnyDType, saturate: bool = True, round_mode: str = "up") -> Conversion:
    """A function that converts arrays of any element type to new arrays of ``dtype``, in C order.

    Args:
        dtype: the target; object for strings.
        saturate: for 8-bit floats: the largest number instead of infinity or NaN for what is out of range.
        round_mode: ``up``, ``down`` or ``nearest``, for the powers of two of float8e8m0.
    """
    target = DType.from_numpy(dtype)
    if target is DType.STRING:
        return _to_string
    if target is DType.FLOAT8E8M0:
        numeric: Conversion = lambda x: _to_power_of_two(x, dtype, saturate, round_mode)  # noqa: E731
    elif target in _SATURATING and saturate:
        largest = _largest(dtype)
        numeric = lambda x: np.asarray(np.clip(_wide(x), -largest, largest)).astype(dtype, order="C")  # noqa: E731
    else:
        numeric = lambda x: _between_floats(x, dtype)  # noqa: E731
    return lambda x: numeric(x if x.dtype.kind not in "OUST" else _parse(x, target))


def _largest(dtype: AnyDType) -> float:
    """The largest finite number of an 8-bit type."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    return float(numbers[np.isfinite(numbers)].max())


def _between_floats(x: Array, dtype: AnyDType, out: Array | None = None) -> Array:
    if {x.dtype, dtype} == _BY_BITS:
        return narrowed(c_order(x), dtype, out) if dtype == HALF else c_order(widened(x, out))
    return _native(x, dtype).astype(dtype, order="C")


def _native(x: Array, dtype: AnyDType) -> Array:
    """``x``, in a type between if NumPy or ml_dtypes do not convert it directly as they should."""
    if dtype == np.uint32 and x.dtype.kind not in "biu":
        return x.astype(np.int64)  # of what is out of range, vectors and single elements become different numbers
    if x.dtype.kind != "V" or dtype.kind != "V" or x.dtype == dtype:
        return x
    return x.astype(np.int8 if DType.from_numpy(x.dtype).is_integer else np.float32)


def _wide(x: Array) -> Array:
    return x if x.dtype == np.float64 else x.astype(np.float32)


def _to_power_of_two(x: Array, dtype: AnyDType, saturate: bool, round_mode: str) -> Array:
    """Powers of two from 2^-127 to 2^127, coded as the exponent of a float32; 255 is NaN."""
    bits = x.astype(np.float32, order="C").view(np.uint32)
    exponent, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    nan = (exponent == 255) & (fraction != 0)
    if round_mode == "up":
        exponent = exponent + (fraction != 0)
    elif round_mode == "nearest":
        exponent = exponent + (fraction >= 0x400000)
    elif round_mode != "down":
        raise Error("IRC320", f"round_mode is {round_mode!r}; it must be 'up', 'down' or 'nearest'")
    if saturate:
        exponent = np.minimum(exponent, 254)
    else:
        nan |= (exponent > 254) | ((bits & 0x7FFFFFFF) == 0)
    return np.asarray(np.where(nan, 255, exponent)).astype(np.uint8).view(dtype)


def _to_string(x: Array) -> Array:
    if x.dtype.kind in "OUST":
        return x.astype(object, order="C")
    if x.dtype.kind == "b":
        x = x.astype(np.int8)
    as_text: Callable[[Any], str] = str if x.dtype.kind in "iu" else _float_text
    out = np.empty(x.shape, object)
    numbers, texts = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, PACE_ELEMENTS):
        pace()
        part = slice(start, start + PACE_ELEMENTS)
        texts[part] = [as_text(v) for v in numbers[part].tolist()]
    return out


def _float_text(value: Any) -> str:
    text = format(float(value), ".8g")
    return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)


def _parse(x: Array, target: DType) -> Array:
    """The numbers that strings hold, in a type that has room for them."""
    read = _read_integer if target.is_integer else float
    try:
        numbers = [read(s) for s in x.reshape(-1).tolist()]
        wide = np.float64 if not target.is_integer else np.uint64 if target is DType.UINT64 else np.int64
        return np.array(numbers, wide).reshape(x.shape)
    except (ValueError, OverflowError) as error:
        raise Error("IRC424", f"a string cannot be cast to {target.label}: {error}") from None


def _read_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))
