"""Sorting, selection by rank, counting, searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.containers import changing, sort_list
from irc.runtime.kernels.aten.element_types import FLOAT32, FLOAT64, INT64, is_floating, result_type, tensor
from irc.runtime.kernels.aten.registering import by_node, one, table, two
from irc.runtime.kernels.index import sorting_order, top_k
from irc.runtime.kernels.numerics import widened
from irc.runtime.kernels.registry import Kernel, bound
from irc.runtime.kernels.support import Array, axis_in, check_size, filled, in_rows
from irc.runtime.values import is_array


def sorted_along(x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """The elements in order along a dimension, and where each was."""
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    order = np.ascontiguousarray(sorting_order(widened(x), axis, descending), np.int64)
    return np.take_along_axis(x, order, axis), order


def _options(arguments: tuple[Any, ...]) -> tuple[int, bool]:
    """Of ``(dim=-1, descending=False)`` or ``(stable, dim=-1, descending=False)``: dim, descending."""
    if arguments and (arguments[0] is None or isinstance(arguments[0], bool)):
        arguments = arguments[1:]
    dim, descending = filled(arguments, -1, False)
    return int(dim), bool(descending)


def _sort(x: Array, *arguments: Any) -> tuple[Array, Array]:
    values, order = sorted_along(x, *_options(arguments))
    return layout.like(values, x), layout.like(order, x)


def argsort(x: Array, *arguments: Any) -> Array:
    return _sort(x, *arguments)[1]


@by_node("sort")
def sort(node: Any) -> Kernel:
    """Of a tensor, or of a list in place."""
    in_place = changing(sort_list)(node)

    def run(x: Any, *arguments: Any) -> Any:
        return _sort(x, *arguments) if is_array(x) else in_place(x, *arguments)

    return run


def _axis_and_size(x: Array, dim: int) -> tuple[int, int]:
    """A dimension counted from the front, and its size; a 0-d tensor counts as a vector of one."""
    axis = axis_in(dim, max(x.ndim, 1))
    return axis, x.shape[axis] if x.ndim else 1


def topk(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    found = top_k(x if x.ndim else x.reshape(1), k, dim, largest)
    return found if x.ndim else (x.copy(), np.zeros((), np.int64))


def _ranked(x: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The element of rank ``k``, from 0, along a dimension, and where it is."""
    axis, size = _axis_and_size(x, dim)
    if not 0 <= k < size:
        raise Error("IRC424", f"there is no element of rank {k + 1} among {size}")
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    values, order = sorted_along(x, axis)
    place = (slice(None),) * axis + ((slice(k, k + 1) if keepdim else k),)
    return np.array(values[place]), np.array(order[place])


def median(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower one of two in the middle. What is not a number makes the median so."""
    if dim is None:
        flat = x.reshape(-1)
        if not flat.size:
            return np.full((), np.nan, x.dtype)
        return _middle(flat, 0, False)[0]
    return _middle(x, dim, keepdim)


def _middle(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    size = x.shape[axis_in(dim, x.ndim)] if x.ndim else 1
    values, places = _ranked(x, (size - 1) // 2, dim, keepdim)
    if is_floating(x.dtype) and x.ndim and np.isnan(x).any():
        axis = axis_in(dim, x.ndim)
        first = np.argmax(np.isnan(x), axis, keepdims=keepdim)
        bad = np.isnan(x).any(axis, keepdims=keepdim)
        values = np.where(bad, x.dtype.type(np.nan), values)
        places = np.where(bad, first, places)
    return values, places


def mode(x: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The most frequent element, the least of equally frequent ones, and where it is last.

    What is not a number equals nothing and counts as largest; where there is such, torch's order is not defined.
    """
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    if not x.shape[axis]:
        raise Error("IRC422", f"axis {dim} of the shape {list(x.shape)} is empty: it has no most frequent element")
    rows = in_rows(np.moveaxis(x, axis, -1))
    values, places = np.empty(len(rows), x.dtype), np.empty(len(rows), np.int64)
    for i, row in enumerate(rows):
        order = sorting_order(widened(row), 0, False)
        ordered = row[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))  # of runs of equal elements
        end = ends[np.argmax(np.diff(ends, prepend=-1))]
        values[i], places[i] = ordered[end], order[end]
    shape = [1 if j == axis else n for j, n in enumerate(x.shape) if keepdim or j != axis]
    return values.reshape(shape), places.reshape(shape)


def _unique(x: Array, sorted: bool = True, inverse: bool = False, counts: bool = False) -> tuple[Array, Array, Array]:
    found, places, numbers = np.unique(widened(x), return_inverse=True, return_counts=True, equal_nan=False)
    none = np.empty(0, np.int64)
    return (
        found.astype(x.dtype, copy=False),
        np.asarray(places, np.int64).reshape(x.shape) if inverse else none,
        np.asarray(numbers, np.int64) if counts else none,
    )


def unique_consecutive(
    x: Array, inverse: bool = False, counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    """Every run of equal elements, or of equal parts along a dimension, once."""
    axis = 0 if dim is None else axis_in(dim, x.ndim)
    source = x.reshape(-1) if dim is None else x
    size = source.shape[axis]
    if size and not source.size:
        raise Error("IRC421", f"parts along dimension {dim} of the shape {list(x.shape)} have no elements to compare")
    rows = np.moveaxis(source, axis, 0).reshape(size, source.size // max(size, 1))
    starts = np.ones(size, bool)
    if size:
        starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = np.flatnonzero(starts)
    none = np.empty(0, np.int64)
    number: Array = (np.cumsum(starts) - 1).astype(np.int64)
    return (
        np.ascontiguousarray(np.take(source, first, axis)),
        (number.reshape(x.shape) if dim is None else number) if inverse else none,
        np.diff(np.append(first, size)).astype(np.int64) if counts else none,
    )


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise Error("IRC424", "bincount counts a vector of integers that are not negative")
    largest = int(x.max()) + 1 if x.size else 0
    check_size((max(largest, minlength),), INT64)
    found = np.bincount(x, weights if weights is None else weights.real, minlength)
    if weights is None:
        return found.astype(np.int64)
    return found.astype(weights.dtype if weights.dtype == FLOAT32 else np.float64)


def histc(x: Array, bins: int = 100, low: Any = 0, high: Any = 0) -> Array:
    if low == high:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
        if low == high:
            low, high = low - 1, high + 1
    if bins < 1 or not low < high:
        raise Error("IRC424", f"there are no {bins} bins from {low} to {high}")
    check_size((bins + 1,), FLOAT64)
    return np.histogram(x, bins, (low, high))[0].astype(x.dtype)


def searchsorted(
    boundaries: Array, x: Any, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Array:
    """Where elements belong in sorted rows: before equal ones, or after (``right``)."""
    after = right or side == "right"
    ordered = widened(boundaries if sorter is None else np.take_along_axis(boundaries, sorter, -1))
    values = widened(tensor(x) if is_array(x) else tensor(x, result_type(boundaries, x)))
    kind = np.int32 if out_int32 else np.int64
    way = "right" if after else "left"
    if ordered.ndim == 1:
        return np.asarray(np.searchsorted(ordered, values, way)).astype(kind)
    if ordered.shape[:-1] != values.shape[:-1]:
        raise Error("IRC421", f"rows of shapes {list(ordered.shape)} and {list(values.shape)} do not correspond")
    rows, sought = in_rows(ordered), in_rows(values)
    found: list[Array] = [np.searchsorted(row, wanted, way) for row, wanted in zip(rows, sought, strict=True)]
    return np.asarray(found, kind).reshape(values.shape)


def bucketize(x: Any, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    if boundaries.ndim != 1:
        raise Error("IRC421", f"boundaries are a vector, not of shape {list(boundaries.shape)}")
    return searchsorted(boundaries, x, out_int32, right)


def isin(elements: Any, among: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    dtype = result_type(elements, among)
    return np.array(np.isin(tensor(elements, dtype), tensor(among, dtype), invert=invert), order="C")


# -- quantiles -------------------------------------------------------------------

_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    x: Array, q: Any, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear", *, skips_nan: bool
) -> Array:
    if x.dtype.char not in "fd" or (is_array(q) and q.dtype != x.dtype):
        raise Error("IRC423", f"quantiles are of float32 or float64, all alike, not of {x.dtype.name}")
    places = tensor(q, x.dtype)
    if interpolation not in _WAYS or places.ndim > 1 or not ((places >= 0) & (places <= 1)).all():
        raise Error("IRC424", f"no quantiles {q!r} by {interpolation}: they lie from 0 to 1, in a vector or alone")
    if not x.size:
        raise Error("IRC422", "there are no quantiles of nothing")
    axis = None if dim is None else axis_in(dim, max(x.ndim, 1))
    rows = np.moveaxis(x.reshape(1) if not x.ndim else x, axis, -1) if axis is not None else x.reshape(-1)
    found = _at_ranks(np.sort(rows, -1), places.reshape(-1), interpolation, skips_nan)
    found = np.moveaxis(found, -1, 0).reshape((*places.shape, *rows.shape[:-1]))
    if keepdim:
        kept = [1 if axis in (None, i) else n for i, n in enumerate(x.shape)]
        found = found.reshape((*places.shape, *kept))
    return np.ascontiguousarray(found).reshape(found.shape)


def _at_ranks(ordered: Array, places: Array, interpolation: str, skips_nan: bool) -> Array:
    """Interpolated between the two elements around each place, in sorted rows with NaN last."""
    size = ordered.shape[-1]
    bad = np.isnan(ordered)
    counts = (~bad).sum(-1, keepdims=True) if skips_nan else np.full((*ordered.shape[:-1], 1), size)
    ranks = (places * np.maximum(counts - 1, 0)).astype(ordered.dtype)
    if not skips_nan:
        ranks = np.where(bad.any(-1, keepdims=True), ordered.dtype.type(size - 1), ranks)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[interpolation](ranks)
    below = np.floor(ranks)
    low = np.take_along_axis(ordered, below.astype(np.int64), -1)
    high = np.take_along_axis(ordered, np.ceil(ranks).astype(np.int64), -1)
    weight = ordered.dtype.type(0.5) if interpolation == "midpoint" else ranks - below
    mixed = low + (high - low) * weight
    return np.where(ranks == below, low, mixed) if interpolation != "midpoint" else mixed


def nanmedian(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower one of two in the middle, of the numbers only."""
    if dim is None:
        flat = x.reshape(-1)
        return nanmedian(flat, 0)[0] if flat.size else np.full((), np.nan, x.dtype)
    if not is_floating(x.dtype) or not x.ndim:
        return _middle(x, dim, keepdim)
    axis = axis_in(dim, x.ndim)
    if not x.shape[axis]:
        raise Error("IRC422", f"there is no median of nothing: the shape is {list(x.shape)}")
    values, order = sorted_along(x, axis)
    count = (~np.isnan(x)).sum(axis, keepdims=True)
    rank = np.maximum(count - 1, 0) // 2
    shape = [1 if i == axis else n for i, n in enumerate(x.shape) if keepdim or i != axis]
    return tuple(np.ascontiguousarray(np.take_along_axis(v, rank, axis)).reshape(shape) for v in (values, order))


table(
    _unique2=_unique,
    msort=one(lambda x: _sort(x, 0)[0]),
    kthvalue=two(lambda x, k, dim=-1, keepdim=False: _ranked(x, k - 1, dim, keepdim)),
    quantile=bound(_quantile, skips_nan=False),
    nanquantile=bound(_quantile, skips_nan=True),
)
