"""Sums and maxima along the last axes, and running totals.

NumPy's ``reduce`` begins each row anew, which takes 10 to 70 ns, and adds in an order that leaves half of the
processor's lanes idle. What is here takes a third to a tenth of its time, and leaves to it what is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from irc.runtime.kernels.support import AnyDType, Array

Axes = tuple[int, ...]

MANY = 512
"""Rows from which on it pays to add them by a product, and to transpose short ones."""

LARGE = 1 << 14
"""Elements of which fewer rows are added by a product, too. NumPy takes as long for what is smaller, measured."""

SHORT = 24
"""The longest rows whose maxima are found down the columns of a transposed copy."""

_PART = 1 << 16
"""Elements of a row that one product adds: so many ones are kept."""

_BLOCK = 1 << 16
"""Elements that are transposed at once, so that they stay in the cache."""


def add_reduce(
    x: Array, axes: Axes, keepdims: bool = False, dtype: AnyDType | None = None, out: Array | None = None
) -> Any:
    """``np.add.reduce``, in the element type of ``x`` unless told. Sums of floats may differ in the last digits."""
    dtype = dtype or x.dtype
    rows = None if x.size < MANY or dtype != x.dtype or x.dtype.char not in "fd" else _rows(x, axes)
    if rows is None or (len(rows) < MANY and x.size < LARGE):
        return np.add.reduce(x, axes, dtype=dtype, keepdims=keepdims, out=out)
    sums = _placed(row_sums(rows), x, axes, keepdims)
    if out is None:
        return sums
    np.copyto(out, sums)
    return out


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
    """``ufunc.reduce`` of maxima or minima; ``initial`` is the result for no elements, None if there are some."""
    rows = None if x.size < MANY or x.dtype.kind not in "fiu" else _rows(x, axes)
    if rows is None or not _are_short(rows):
        given = {} if initial is None else {"initial": initial}
        return ufunc.reduce(x, axes, keepdims=keepdims, **given)
    found = np.empty(len(rows), x.dtype)
    for part in parts(rows):
        ufunc.reduce(np.ascontiguousarray(rows[part].T), axis=0, out=found[part])
    return _placed(found, x, axes, keepdims)


def are_short(x: Array, axis: int) -> bool:
    """Whether ``axis`` is the last one of ``x``, with many short rows along it: it pays to work on the transpose."""
    if x.size < MANY or x.shape[axis] > SHORT:
        return False
    rows = _rows(x, (axis % x.ndim,))
    return rows is not None and _are_short(rows)


def _are_short(rows: Array) -> bool:
    return rows.shape[1] <= SHORT and len(rows) >= MANY


def parts(rows: Array) -> Iterator[slice]:
    """Where to cut ``rows`` (R, C), whose transposes then stay in the cache.

    Into parts of about one size: NumPy adds down a single column in another order than down one of several.
    """
    count = -(-len(rows) // max(1, _BLOCK // rows.shape[1]))
    return (slice(len(rows) * i // count, len(rows) * (i + 1) // count) for i in range(count))


def _rows(x: Array, axes: Axes) -> Array | None:
    """``x`` (R, C), C elements being reduced to one; None if it cannot be seen so without a copy, or C is 1."""
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
