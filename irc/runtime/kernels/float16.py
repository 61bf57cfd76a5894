"""float16 and bfloat16: computed in float32, in blocks, and the ufuncs that do so.

NumPy converts float16 one number after the other, and takes fifty times as long for numbers outside of the range of
normal ones, as each raises a flag. So large arrays are converted by bits, in blocks that stay in the cache.

Ufuncs of NumPy compute float16 one number after the other, in float32; those here compute whole blocks in float32.
So results are the same, to the last bit: both convert the operands, compute and round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from irc.runtime.kernels.numerics import at_least, at_most
from irc.runtime.kernels.support import AnyDType, Array, broadcast_shape, c_order, chosen, is_half, scratch

HALF, FLOAT = np.dtype(np.float16), np.dtype(np.float32)

BLOCK = 1 << 15
"""Elements that are converted at once, and stay in the cache meanwhile."""

_BY_BITS = 4096
"""Smaller arrays are left to NumPy: a few calls take as long."""


def widened(x: Array, out: Array | None = None) -> Array:
    """``x`` as float32, in ``out`` if that is given, if it is of a smaller float type; else ``x`` unchanged.

    float16 is converted by bits: read as a float32, they stand for 2**-112 times the number. Values to be sorted are
    widened too: NumPy sorts NaNs of float32 last, those of bfloat16 anywhere, and before version 2.4 also those of
    float16 where it compares parts of an array.
    """
    if not is_half(x.dtype):
        return x
    return _converted(_widen, x, FLOAT, out, by_bits=x.dtype == HALF)


def narrowed(x: Array, dtype: AnyDType, out: Array | None = None) -> Array:
    """``x`` with elements of type ``dtype``, in ``out`` if that is given; ``x`` itself if it is that, or has such."""
    if x is out:
        return x
    return _converted(_narrow, x, dtype, out, by_bits=x.dtype == FLOAT and dtype == HALF)


def rounded(x: Array, dtype: AnyDType) -> Array:
    """float32 ``x`` with its elements rounded to the small type ``dtype``, in place if that is float16.

    In place, elements beyond the range of float16 stay finite, and 0 loses its sign.
    """
    if dtype != HALF:
        return widened(narrowed(x, dtype))
    unit = x.view(np.int32) & _EXPONENT
    at_least(unit, _LEAST_NORMAL, unit)
    unit += _ROUNDING
    x += unit.view(np.float32)
    x -= unit.view(np.float32)
    return x


def _converted(
    convert: Callable[[Array, Array], None], x: Array, dtype: AnyDType, out: Array | None, by_bits: bool
) -> Array:
    """``x`` with elements of type ``dtype``, part by part by ``convert``, or by NumPy.

    A new array has its axes lie as those of ``x``. Not in NumPy's order K: of axes whose strides are 0 or equal, its
    functions have several.
    """
    if not by_bits or x.size < _BY_BITS or (out is not None and not out.flags.c_contiguous):
        if out is None:
            return x.astype(dtype, copy=False)
        np.copyto(out, x, casting="unsafe")
        return out
    if out is not None:
        x = c_order(x)
    axes = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    ordered = x.transpose(axes)
    made: Array = np.empty(ordered.shape, dtype) if out is None else out.transpose(axes)
    source, target = ordered.reshape(-1), made.reshape(-1)  # the latter is dense, and so a view
    for start in range(0, x.size, BLOCK):
        part = slice(start, start + BLOCK)
        convert(source[part], target[part])
    return made.transpose(np.argsort(axes)) if out is None else out


def _widen(x: Array, out: Array) -> None:
    bits: Array = x.view(np.int16)
    if bits.max() >= _INFINITY or x.view(np.uint16).max() >= _MINUS_INFINITY:
        np.take(_every(), x.view(np.uint16), out=out, mode="clip")  # the exponent of these, and of NaNs, grows
        return
    wide: Array = out.view(np.int32)
    np.copyto(wide, bits)
    wide <<= _DROPPED
    wide &= _SIGN_AND_NUMBER
    out *= _RAISE


@lru_cache(maxsize=1)
def _every() -> Array:
    """All numbers of float16."""
    return np.arange(1 << 16, dtype=np.uint16).view(HALF).astype(FLOAT)


def _narrow(x: Array, out: Array) -> None:
    """A number is added to its own power of two, 2**13 times as large: that rounds it to units of float16's last place.

    These are the lowest bits of the sum. Its exponent is 126 more than what belongs above them, and 128 drop out.
    """
    bits: Array = x.view(np.int32)
    size, sums = (scratch(purpose, x.shape, bits.dtype) for purpose in ("sizes of halves", "sums of halves"))
    largest = np.bitwise_and(bits, _WITHOUT_SIGN, size).max()
    if largest > _EXPONENT:  # NaNs keep their bits, as with NumPy
        np.copyto(out, x, casting="unsafe")
        return
    if largest > _BEYOND:
        at_most(size, _BEYOND, size)
    at_least(np.bitwise_and(size, _EXPONENT, sums), _LEAST_NORMAL, sums)
    sums += _COUNTING
    number = sums.view(np.float32)
    number += size.view(np.float32)
    sums *= _SIDE_BY_SIDE
    sums |= np.bitwise_and(bits, _SIGN, size)
    sums >>= 16
    np.copyto(out.view(np.int16), sums, casting="unsafe")


_WITHOUT_SIGN, _SIGN, _EXPONENT = np.int32(0x7FFFFFFF), np.int32(-1 << 31), np.int32(0x7F800000)
_BEYOND, _LEAST_NORMAL = np.array(143 << 23, np.int32), np.array(113 << 23, np.int32)  # 2**16, 2**-14
_COUNTING = np.int32((13 << 23) + 0x800)  # and the 2 that are missing, where float16 has its exponent
_ROUNDING = np.int32((13 << 23) + 0x400000)  # half more, so that no sum of other sign is of another power of two
_SIDE_BY_SIDE = np.int32((1 << 16) + (1 << 3))

_DROPPED, _INFINITY, _MINUS_INFINITY = np.int32(13), 0x7C00, 0xFC00
_SIGN_AND_NUMBER = np.int32(~0x70000000)  # the sign was repeated in between
_RAISE = np.float32(2.0**112)


# -- functions of float16 ------------------------------------------------------


MANY = 1 << 14
"""Elements from which on that takes less time; of 200,000 a half, of maxima a quarter. (Without blocks, sums take as
long up to a million elements and maxima 1.3 times, then all 1.6 times.)"""

_ROUNDED = (
    *(np.add, np.subtract, np.multiply, np.divide),
    *(np.ceil, np.floor, np.reciprocal, np.rint, np.sqrt, np.square),
)
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal)
_SELECTIONS: dict[Any, Callable[[Array, Array], Any]] = {np.maximum: np.greater_equal, np.minimum: np.less_equal}


def of_halves(ufunc: Callable[..., Any]) -> Callable[..., Array] | None:
    """``(*operands, out=None)`` for operands of float16 that broadcast; None if ``ufunc`` is not known here."""
    select = _SELECTIONS.get(ufunc)
    if select is None and ufunc not in _ROUNDED and ufunc not in _COMPARISONS:
        return None
    dtype = np.dtype(np.bool_) if ufunc in _COMPARISONS else HALF

    def run(*operands: Array, out: Array | None = None) -> Array:
        shape = broadcast_shape(*[x.shape for x in operands])
        size = math.prod(shape)
        found: Array = np.empty(shape, dtype) if out is None else out
        # What is repeated is converted once, before `out`, which may be its memory, is written.
        wide = [np.broadcast_to(widened(x), shape) if x.size < size else None for x in operands]
        whole = [np.broadcast_to(x, shape) for x in operands]
        for part in _parts(shape):
            given, result = [x[part] for x in whole], found[part]
            numbers = [
                widened(x, scratch(purpose, x.shape, FLOAT)) if w is None else w[part]
                for purpose, x, w in zip(("a half", "another half"), given, wide, strict=False)
            ]
            if select is not None:
                x, y = numbers
                chosen(select(x, y) | (x != x), *given, out=result)
            elif dtype == HALF:
                narrowed(ufunc(*numbers, scratch("a half", result.shape, FLOAT)), HALF, result)  # over an operand
            else:
                ufunc(*numbers, result)
        return found

    return run


def _parts(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Blocks of an array: along one axis, where an element of those before it is not larger."""
    axis = next(i for i in range(len(shape)) if math.prod(shape[i + 1 :]) <= BLOCK)
    step = max(1, BLOCK // max(1, math.prod(shape[axis + 1 :])))
    for before in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*before, slice(start, start + step))
