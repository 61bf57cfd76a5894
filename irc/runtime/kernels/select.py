"""Operators whose result's size depends on the data, and sorting: Compress, NonZero, Unique, TopK."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.float16 import widened
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.support import Array, axis_in, c_order, counting, fresh, scalar

if TYPE_CHECKING:
    pass


@computes("onnx::Compress")
def compress(x: Array, condition: Array, *, axis: int | None = None) -> Array:
    """What stands where the condition is true, along an axis or in the flattened tensor."""
    source = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else axis_in(axis, x.ndim)
    chosen = np.flatnonzero(condition)
    if chosen.size and chosen[-1] >= source.shape[along]:
        raise Error("IRC423", f"the condition is true at {chosen[-1]}, but there are {source.shape[along]} elements")
    return fresh(source.take(chosen, along), x)


@computes("onnx::NonZero")
def nonzero(x: Array) -> Array:
    """Indices of the elements that are not zero, [rank, count]; of a scalar [0, 1] or [0, 0]."""
    if x.ndim == 0:
        return np.empty((0, int(bool(x))), np.int64)
    return np.array(np.nonzero(x), np.int64)


@computes("onnx::Unique")
def unique(x: Array, *, axis: int | None = None, sorted: bool = True, outputs: int) -> Any:
    """Distinct elements, or distinct parts along an axis; sorted, or in the order of their first occurrence."""
    along = None if axis is None else axis_in(axis, x.ndim)
    if along is None or x.ndim == 1:
        found = np.unique(widened(x), return_index=True, return_inverse=True, return_counts=True)
        values, first, inverse, counts = found
        values = values if values.dtype == x.dtype else x.reshape(-1)[first]
    else:
        first, inverse, counts = _distinct(_parts(x, along))
        values = x.take(first, along)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = values.take(order, 0 if along is None else along)
        first, counts = first[order], counts[order]
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        inverse = rank[inverse]
    results = [fresh(values, x), *(c_order(a.astype(np.int64)) for a in (first, inverse, counts))][:outputs]
    return results[0] if outputs == 1 else tuple(results)


def _parts(x: Array, axis: int) -> Array:
    """What stands at each place along ``axis``, as a row of numbers: of strings, their ranks."""
    ranked = widened(x) if not x.dtype.hasobject else np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.moveaxis(ranked, axis, 0).reshape(x.shape[axis], math.prod(x.shape[:axis] + x.shape[axis + 1 :]))


def _distinct(rows: Array) -> tuple[Array, Array, Array]:
    """Of the distinct ``rows``, sorted: where the first of each is, which of them each row is, and how many are equal.

    Columns are compared a few at a time, until all rows differ: NumPy's own comparison of rows takes ten times as long.
    """
    order, rank = counting(len(rows)), np.zeros(len(rows), np.int64)
    for start in range(0, rows.shape[1], _COLUMNS):
        columns = rows[:, start : start + _COLUMNS].T
        order = np.lexsort((*columns[::-1], rank))
        one, other = columns[:, order[:-1]], columns[:, order[1:]]
        differs = ((one != other) & ((one == one) | (other == other))).any(axis=0)  # NaNs are sorted as if equal
        differs |= np.diff(rank[order]) != 0
        rank[order[1:]] = differs.cumsum()
        rank[order[:1]] = 0
        if differs.all():
            break
    starts = np.append(True, (rows[order[1:]] != rows[order[:-1]]).any(axis=1))[: len(rows)]
    inverse = np.empty_like(order)
    inverse[order] = starts.cumsum() - 1
    return order[starts], inverse, np.diff(np.append(np.flatnonzero(starts), len(rows)))


_COLUMNS = 8
"""Columns by which rows are sorted at once."""


@computes("onnx::TopK", since=10)
def top_k_of_input(x: Array, k: Array, *, axis: int = -1, largest: bool = True, outputs: int) -> Any:
    return top_k_of_attribute(x, k=int(scalar(k, "K")), axis=axis, largest=largest, outputs=outputs)


@computes("onnx::TopK", since=1)
def top_k_of_attribute(x: Array, *, k: int, axis: int = -1, largest: bool = True, outputs: int) -> Any:
    found = top_k(x, k, axis, largest)
    return found if outputs > 1 else found[0]


def top_k(x: Array, k: int, axis: int, largest: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest (smallest) elements along ``axis`` in order, and their indices; of equal ones the first."""
    along = axis_in(axis, x.ndim)
    if not 0 <= k <= x.shape[along]:
        raise Error("IRC424", f"K is {k}, but axis {axis} has {x.shape[along]} elements")
    # As [before, axis, behind]: NumPy sorts no more than 32 dimensions.
    lead, n, tail = x.shape[:along], x.shape[along], x.shape[along + 1 :]
    flat = x.reshape(math.prod(lead), n, math.prod(tail))
    ranked = widened(flat)
    order = _of_few(ranked, k, largest) if 0 < k <= n // _FEW and ranked.dtype.kind in "iuf" else None
    indices = np.array(_order(ranked, largest)[:, :k] if order is None else order, np.int64, order="C")
    values = np.take_along_axis(flat, indices, 1)
    return fresh(values.reshape(*lead, k, *tail), x), indices.reshape(*lead, k, *tail)


_FEW = 8
"""Up to one element in this many is found without sorting all."""


def _order(x: Array, largest: bool) -> Array:
    """The indices that sort ``x`` (before, axis, behind) along its axis; equal elements stay in order."""
    if not largest:
        return np.argsort(x, 1, kind="stable")
    return x.shape[1] - 1 - np.flip(np.argsort(np.flip(x, 1), 1, kind="stable"), 1)  # sorted and read backwards


def _of_few(x: Array, k: int, largest: bool) -> Array | None:
    """The first ``k`` of `_order`; None where numbers are too few, and NaNs are taken."""
    n = x.shape[1]
    rows = np.ascontiguousarray(x.swapaxes(1, 2)).reshape(-1, n)
    last = _kth(rows, k, largest)[:, None]
    if not (last == last).all():
        return None
    taken = ~(rows < last) if largest else rows <= last  # NaNs are the largest
    if np.count_nonzero(taken) != k * len(rows):  # of those equal to the last one, the first
        equal = rows == last
        others = taken & ~equal
        taken = others | (equal & (equal.cumsum(1) <= k - others.sum(1, keepdims=True)))
    indices = (np.flatnonzero(taken) % n).reshape(len(rows), k)
    order = _order(np.take_along_axis(rows, indices, 1)[..., None], largest)[..., 0]
    found = np.take_along_axis(indices, order, 1)
    return found.reshape(x.shape[0], x.shape[2], k).swapaxes(1, 2)


def _kth(rows: Array, k: int, largest: bool) -> Array:
    """The ``k``-th largest (smallest) number of each row; NaNs are the largest.

    In a long row, it is no smaller than the ``k``-th of the largest numbers of its parts, and few others are.
    """
    n, parts = rows.shape[1], max(_PARTS, 16 * k)
    extreme = np.maximum.reduce if largest else np.minimum.reduce
    if k == 1:
        return extreme(rows, 1)
    at = n - k if largest else k - 1
    if n < 4 * parts:
        return np.partition(rows, at, 1)[:, at]
    in_parts = rows[:, : n // parts * parts].reshape(len(rows), n // parts, parts)
    bounds = _kth(extreme(in_parts, 1), k, largest)
    found = np.empty_like(bounds)
    for i, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        near = row[~(row < bound if largest else row > bound)]
        at = len(near) - k if largest else k - 1
        found[i] = np.partition(near, at)[at]
    return found


_PARTS = 512
"""Of a long row: with fewer, many of its numbers are left."""
