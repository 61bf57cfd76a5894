"""Faster or safer forms of NumPy's bounds, negation, float16, sums, running totals, products.

NumPy converts float16 one number after the other, and takes fifty times as long for numbers outside of the range of
normal ones, as each raises a flag. So large arrays are converted by bits, in blocks that stay in the cache.

Ufuncs of NumPy compute float16 one number after the other, in float32; those here compute whole blocks in float32.
So results are the same, to the last bit: both convert the operands, compute and round.

NumPy's ``reduce`` takes 10 to 70 ns to begin each row, and adds in an order that leaves half of the
processor's lanes idle. Sums and maxima along the last axes take a third to a tenth of its time here; what is small is
left to it. Products are made by that function of BLAS which takes the least, large ones in parts on several threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from irc.runtime.bounds import CURRENT, NONE
from irc.runtime.kernels.support import (
    AnyDType,
    Array,
    broadcast_shape,
    c_order,
    chosen,
    counting,
    is_constant,
    is_half,
    placed,
    scratch,
)
from irc.runtime.values import is_array


def constant(value: float) -> Array:
    """``value`` as a 0-d float32 array."""
    return np.array(value, np.float32)


FILLED = 1 << 14
"""Elements of a block filled with a number."""

WORTH_FILLING = 1 << 13
"""Elements from which on such a block saves more time than it takes."""


BY = "by"
"""Attribute of what `bounded` returns: makes the same function for a bound that is known."""


def bounded(ufunc: Callable[..., Any]) -> Callable[..., Array]:
    """``np.maximum`` or ``np.minimum`` with a bound that broadcasts: ``(x, bound, out=None)``.

    Where both are zero, the result is ``x``, with its sign, as comparisons define it (``x < bound ? bound : x``).
    NumPy's loops take four times as long for an array and a number as for two arrays, so a large array meets a block
    filled with the number.
    """
    kept = _Kept(ufunc)

    def pair(x: Array, bound: Array, out: Array | None = None) -> Array:
        which = kept[x.dtype]
        if which == 1:
            return ufunc(bound, x, out=out, order="C")
        if which == 0:
            return ufunc(x, bound, out=out, order="C")
        equal = np.equal(x, bound)
        zeros = np.broadcast_to(x, equal.shape)[equal]  # before `out`, which may be `x`, is written
        found = np.asarray(ufunc(x, bound, out=out, order="C"))
        found[equal] = zeros
        return found

    def function(x: Array, bound: Array, out: Array | None = None) -> Array:
        is_large = x.size >= WORTH_FILLING and not bound.ndim and x.dtype == bound.dtype
        if not is_large or not (x.flags.c_contiguous and (out is None or out.flags.c_contiguous)):
            return np.asarray(pair(x, bound, out))
        found = np.empty(x.shape, x.dtype) if out is None else out
        filled = _filled(x.dtype, bound.tobytes())
        source, target, whole = x.reshape(-1), found.reshape(-1), x.size // FILLED * FILLED
        if whole:
            pair(source[:whole].reshape(-1, FILLED), filled, target[:whole].reshape(-1, FILLED))
        if whole < x.size:
            pair(source[whole:], filled[: x.size - whole], target[whole:])
        return found

    def by(bound: Array) -> Callable[..., Array]:
        dtype = bound.dtype if kept[bound.dtype] == 1 else None

        def of_one(x: Array, out: Array | None = None) -> Array:
            if x.dtype is dtype and x.ndim and x.size < WORTH_FILLING:  # as `pair`, without calls on the way
                return ufunc(bound, x, out=out, order="C")
            return function(x, bound, out)

        return of_one

    setattr(function, BY, by)
    return function


class _Kept(dict[np.dtype[Any], "int | None"]):
    """`_kept_zero` of a ufunc, by element type."""

    def __init__(self, ufunc: Callable[..., Any]) -> None:
        super().__init__()
        self.ufunc = ufunc

    def __missing__(self, dtype: np.dtype[Any]) -> int | None:
        found = self[dtype] = _kept_zero(self.ufunc, dtype)
        return found


def _kept_zero(ufunc: Callable[..., Any], dtype: np.dtype[Any]) -> int | None:
    """Which of two zeros ``ufunc`` returns: operand 0 or 1; None if that depends on signs or sizes.

    It is a matter of the processor's instructions and of NumPy's loops. Of integers there is one zero.
    """
    if dtype.kind not in "fV":
        return 1
    plus = np.zeros(2 * _PROBED, dtype)
    signs = set[bool]()
    for first, second in ((plus, -plus), (-plus, plus)):
        for step in (1, 2):
            for size in (1, 3, _PROBED):
                x, y = first[::step][:size], second[::step][:size]
                for left, right in ((x, y), (x[0], y), (x, y[0])):
                    is_first = np.signbit(ufunc(left, right)) == np.signbit(x)
                    signs.update(map(bool, is_first))
    return None if len(signs) > 1 else int(not signs.pop())


_PROBED = 67
"""More than the widest vectors hold, and not a multiple of them."""


@lru_cache(maxsize=16)
def _filled(dtype: np.dtype[Any], number: bytes) -> Array:
    """A block of one number, given by its bytes."""
    block = np.frombuffer(number, dtype).repeat(FILLED)
    block.flags.writeable = False
    return block


at_least, at_most = bounded(np.maximum), bounded(np.minimum)


def negative(x: Array, out: Array | None = None) -> Any:
    """-x; NumPy 2.4's own is wrong for some strides of operand and result."""
    if out is None or x.flags.c_contiguous or out.flags.c_contiguous:
        return np.negative(x, out)
    np.copyto(out, np.negative(x))
    return out


HALF, FLOAT = np.dtype(np.float16), np.dtype(np.float32)

BLOCK = 1 << 15
"""Elements that are converted at once, and stay in the cache meanwhile."""

_BY_BITS = 4096
"""Smaller arrays are left to NumPy: a few calls take as long."""


def widened(x: Array, out: Array | None = None) -> Array:
    """``x`` as float32, in ``out`` if given, if it is a smaller float; else ``x`` itself.

    float16 is converted by bits: read as a float32, they stand for 2**-112 times the number. Values to be sorted are
    widened too: NumPy sorts NaNs of float32 last, those of bfloat16 anywhere, and before version 2.4 also those of
    float16 where it compares parts of an array.
    """
    if not is_half(x.dtype):
        return x
    return _converted(_widen, x, FLOAT, out, by_bits=x.dtype == HALF)


def narrowed(x: Array, dtype: AnyDType, out: Array | None = None) -> Array:
    """``x`` as ``dtype``, in ``out`` if given; ``x`` itself if it has that type."""
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
    """Round to float16 units by adding each number's own power of two, times 2**13.

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
    """``(*operands, out=None)`` for broadcasting float16 operands; None if ``ufunc`` is unknown here."""
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
        for part in _blocks(shape):
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


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Blocks of an array: along one axis, where an element of those before it is not larger."""
    axis = next(i for i in range(len(shape)) if math.prod(shape[i + 1 :]) <= BLOCK)
    step = max(1, BLOCK // max(1, math.prod(shape[axis + 1 :])))
    for before in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*before, slice(start, start + step))


Axes = tuple[int, ...]

MANY_ROWS = 512
"""Rows from which on it pays to add them by a product, and to transpose short ones."""

MANY_ELEMENTS = 1 << 14
"""Elements of which fewer rows are added by a product, too. NumPy takes as long for what is smaller, measured."""

SHORT = 24
"""The longest rows whose maxima are found down the columns of a transposed copy."""

_PART = 1 << 16
"""Elements of a row that one product adds, and the length of the cached vector of ones."""

_BLOCK = 1 << 16
"""Elements that are transposed at once, so that they stay in the cache."""


def add_reduce(
    x: Array, axes: Axes, keepdims: bool = False, dtype: AnyDType | None = None, out: Array | None = None
) -> Any:
    """``np.add.reduce``, in ``x``'s element type by default; float sums may differ in the last digits."""
    dtype = dtype or x.dtype
    rows = None if x.size < MANY_ROWS or dtype != x.dtype or x.dtype.char not in "fd" else _rows(x, axes)
    if rows is None or (len(rows) < MANY_ROWS and x.size < MANY_ELEMENTS):
        return np.add.reduce(x, axes, dtype=dtype, keepdims=keepdims, out=out)
    return placed(_placed(row_sums(rows), x, axes, keepdims), out)


def row_sums(rows: Array, product: Callable[[Array, Array], Any] = np.dot) -> Any:
    """The sum of each row of ``rows`` (R, C), or of the one row (C,), of float32 or float64.

    It is their product with ones: BLAS takes a fraction of the time of NumPy to begin a row, and adds in more lanes.

    Args:
        rows: the rows.
        product: `np.vecdot` adds each of several rows as `np.dot` adds it alone, which `np.dot` does not.
    """
    length = rows.shape[-1]
    if length <= _PART:
        return product(rows, _ones(length, rows.dtype))
    sums = product(rows[..., :_PART], _ones(_PART, rows.dtype))
    for start in range(_PART, length, _PART):
        sums += product(rows[..., start : start + _PART], _ones(min(length - start, _PART), rows.dtype))
    return sums


@lru_cache(maxsize=16)
def _ones(size: int, dtype: AnyDType) -> Array:
    return np.ones(size, dtype)


def extreme_reduce(ufunc: np.ufunc, x: Array, axes: Axes, keepdims: bool = False, initial: Any = None) -> Any:
    """``ufunc.reduce`` of maxima or minima; ``initial`` is the result for no elements, None if some."""
    rows = None if x.size < MANY_ROWS or x.dtype.kind not in "fiu" else _rows(x, axes)
    if rows is None or not _are_short(rows):
        given = {} if initial is None else {"initial": initial}
        return ufunc.reduce(x, axes, keepdims=keepdims, **given)
    found = np.empty(len(rows), x.dtype)
    for part in parts(rows):
        ufunc.reduce(np.ascontiguousarray(rows[part].T), axis=0, out=found[part])
    return _placed(found, x, axes, keepdims)


def are_short(x: Array, axis: int) -> bool:
    """Whether ``axis`` is ``x``'s last, with many short rows: then the transpose is faster."""
    if x.size < MANY_ROWS or x.shape[axis] > SHORT:
        return False
    rows = _rows(x, (axis % x.ndim,))
    return rows is not None and _are_short(rows)


def _are_short(rows: Array) -> bool:
    return rows.shape[1] <= SHORT and len(rows) >= MANY_ROWS


def parts(rows: Array) -> Iterator[slice]:
    """Where to cut ``rows`` (R, C), whose transposes then stay in the cache.

    Into parts of about one size: NumPy adds down a single column in another order than down one of several.
    """
    count = -(-len(rows) // max(1, _BLOCK // rows.shape[1]))
    return (slice(len(rows) * i // count, len(rows) * (i + 1) // count) for i in range(count))


def _rows(x: Array, axes: Axes) -> Array | None:
    """``x`` as (R, C), C elements reduced to one; None if that takes a copy, or C is 1."""
    first = x.ndim - len(axes)
    if first < 1 or not axes or min(axes) < first or not x.flags.c_contiguous:
        return None
    length = math.prod(x.shape[first:])
    return x.reshape(-1, length) if length > 1 else None


def _placed(found: Array, x: Array, axes: Axes, keepdims: bool) -> Array:
    return found.reshape(x.shape[: x.ndim - len(axes)] + (1,) * len(axes) * keepdims)


# -- running totals ------------------------------------------------------------


SIDE_BY_SIDE, LINES, SIZE = 16, 128, 1 << 13
"""How many adjacent numbers, lines, and elements in all are worth a call of NumPy for each step."""


def accumulate(ufunc: np.ufunc, x: Array, axis: int, out: Array) -> None:
    """``ufunc.accumulate(x, axis, out.dtype, out)``, to the last bit.

    NumPy follows one line after the other. All go a step at once here, where they lie side by side.
    """
    lines = x.size // max(x.shape[axis], 1)
    if x.size < SIZE or lines < LINES or math.prod(x.shape[axis + 1 :]) < SIDE_BY_SIDE:
        ufunc.accumulate(x, axis, dtype=out.dtype, out=out)
        return
    steps = np.array(np.moveaxis(x, axis, 0), out.dtype, order="C")
    for before, step in pairwise(steps.reshape(len(steps), lines)):
        ufunc(before, step, step)
    np.copyto(np.moveaxis(out, axis, 0), steps)


FEW_ROWS = 3
"""The most rows that are multiplied one by one: gemm, for several rows, first packs all of the other matrix, which
gemv does not. Measured with OpenBLAS 0.3.31 on a processor with AVX2, matrices of 16 KiB to 16 MiB: two or three rows
take 0.3 to 0.8 of gemm's time, four 0.5 to 1.2, and on one thread, beyond the cache, up to twice as long."""

_ENOUGH = 1 << 12
"""Elements of the other matrix; with fewer, nothing is gained."""

_DEEP = 8
"""Numbers in a row; of less, gemm packs the matrix in no time."""

LARGE = 1 << 25
"""Multiplications from which a product is made in parts, whatever the number of threads: its digits depend on how it is
cut. Of 0.6 ms on one thread, two threads save 0.2; of half of that, waking a thread takes all that it saves."""

_PARTS = 4
"""The least number of parts that a product is cut into: 4 in turn take 1.05 times as long as one, 8 take 1.1."""

_LARGEST_PART = 1 << 26
"""Multiplications in a part at most."""

_UNIT = 16
"""Rows, or columns, that BLAS works on at a time, or a multiple of that: parts are of whole units."""


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.matmul(a, b, out)``, whose last digits may differ."""
    loops = CURRENT.scope.loops
    is_fit = loops is not NONE and b.ndim == 2 <= a.ndim and a.shape[-1] == len(b)
    if is_fit and a.size and is_constant(b):
        made = np.empty((*a.shape[:-1], b.shape[1]), b.dtype) if out is None else out
        if loops.product(a, b, made):
            return made
    if a.ndim > 1 < b.ndim and a.size * b.shape[-1] >= LARGE and a.dtype == b.dtype and a.dtype.char in "fd":
        if out is None:
            shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            out = np.empty((*shape, a.shape[-2], b.shape[-1]), a.dtype)
        return _in_parts(a, b, out)
    return _whole(a, b, out)


def _in_parts(a: Array, b: Array, out: Array) -> Array:
    """``np.matmul(a, b, out)``, by parts of the longer side of the matrices, on the threads of the run."""
    rows, columns = a.shape[-2], b.shape[-1]
    parts = max(_PARTS, a.size * columns // _LARGEST_PART)
    units = -(-max(rows, columns) // _UNIT)
    step = -(-units // parts) * _UNIT

    def part(number: int) -> None:
        some = slice(number * step, (number + 1) * step)
        if rows >= columns:
            _whole(a[..., some, :], b, out[..., some, :])
        else:
            _whole(a, b[..., some], out[..., some])

    CURRENT.scope.share(-(-max(rows, columns) // step), part)
    return out


def _whole(a: Array, b: Array, out: Array | None) -> Array:
    if a.dtype != b.dtype or a.dtype.char not in "fd" or not has_few_rows(a.shape, b.shape):
        return np.matmul(a, b, out=out)
    matrices = b if b.ndim == 2 else b[..., None, :, :]
    rows = np.matmul(a[..., None, :], matrices, out=None if out is None else out[..., None, :])
    return rows[..., 0, :] if out is None else out


def shape_of_rows(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape as which an array of shape ``a``, in C order, is multiplied by matrices of shape ``b``.

    Where heads share a matrix, or a batch does, their rows are those of one matrix: so that one is read once.
    """
    if len(a) == len(b) > 2 and b[-3] == 1 < a[-3] and a[:-3] == b[:-3] and a[-1] == b[-2]:
        return (*a[:-3], 1, a[-3] * a[-2], a[-1])
    if len(a) > 2 == len(b) and math.prod(a[:-1]) != 1:  # of one row, all are as fast
        return (math.prod(a[:-1]), a[-1])
    return a


def has_few_rows(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a product of arrays of floats of these shapes is made row by row."""
    return min(len(a), len(b)) > 1 and 1 < a[-2] <= FEW_ROWS and b[-2] >= _DEEP and b[-2] * b[-1] >= _ENOUGH


WORTH_NUMBERING = 1 << 11
"""Values from which on the way below takes less time than NumPy's."""

NUMBERED = 1 << 16
"""Values whose places are in memory at a time."""


def combine_at(combine: np.ufunc, out: Array, places: Sequence[Any], values: Any) -> None:
    """``combine.at(out, tuple(places), values)`` to the last bit, five times faster for many values.

    NumPy has fast loops for arrays of one axis and places in order of their values alone, so the places of others are
    numbered.

    Args:
        combine: a ufunc of two operands.
        out: what to write in.
        places: integer arrays that broadcast together, for the first axes of ``out``.
        values: they broadcast to an array for each place.

    Raises:
        IndexError: a place is out of range.
    """
    numbers = _numbered(out, places)
    if numbers is None:
        combine.at(out, tuple(places), values)
        return
    row = math.prod(out.shape[len(places) :])
    given = np.broadcast_to(values, (*numbers.shape, *out.shape[len(places) :])).reshape(numbers.size, row)
    target, numbers = out.reshape(-1), numbers.reshape(-1) * row
    step = max(1, NUMBERED // row)
    for start in range(0, numbers.size, step):
        part = given[start : start + step]
        combine.at(target, (numbers[start : start + step, None] + counting(row)).reshape(-1), part.reshape(-1))


def _numbered(out: Array, places: Sequence[Any]) -> Array | None:
    """The places numbered in memory order; None if that does not pay, or one is out of range."""
    if not places or out.ndim == 1 or not out.size or out.dtype.kind not in "fiu" or not out.flags.c_contiguous:
        return None
    given: list[Array] = [p for p in places if is_array(p) and p.dtype.kind in "iu"]
    if len(given) < len(places):
        return None
    size = math.prod(np.broadcast_shapes(*[p.shape for p in given])) * math.prod(out.shape[len(places) :])
    if size < WORTH_NUMBERING:
        return None
    counted = [np.where(p < 0, p + n, p) if p.size and p.min() < 0 else p for p, n in zip(given, out.shape)]
    try:
        return np.asarray(np.ravel_multi_index(counted, out.shape[: len(places)]))
    except ValueError:
        return None
