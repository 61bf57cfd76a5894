"""Indexing by data (Gather, Scatter...); selection and sorting: Compress, NonZero, Unique, TopK."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ir.objects import address
from irc.runtime.kernels.numerics import combine_at, widened
from irc.runtime.kernels.registry import at_least, computes, one_of
from irc.runtime.kernels.support import Array, axis_in, c_order, counting, fresh, scalar, shapes_of


def _out_of_range(error: IndexError) -> Error:
    return Error("IRC423", f"an index is out of range: {error}")


@computes("onnx::Gather")
def gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    try:
        return np.asarray(x.take(indices, axis_in(axis, x.ndim)), x.dtype)  # one string is not an array
    except IndexError as error:
        raise _out_of_range(error) from None


@computes("onnx::GatherElements")
def gather_elements(x: Array, indices: Array, *, axis: int = 0) -> Array:
    try:
        return c_order(x[_along(x, indices, axis)])
    except IndexError as error:
        raise _out_of_range(error) from None


def _along(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """Index arrays of ``x``'s elements whose place along ``axis`` is given, and their own elsewhere."""
    at = axis_in(axis, x.ndim)
    fits = all(i <= d for a, (i, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if a != at)
    if indices.ndim != x.ndim or not fits:
        raise Error("IRC421", f"indices of shape {list(indices.shape)} do not fit data of shape {list(x.shape)}")
    own = np.ogrid[tuple(slice(0, d) for d in indices.shape)]
    return (*own[:at], indices, *own[at + 1 :])


@computes("onnx::GatherND", batch_dims=at_least("batch_dims", 0, 0))
def gather_nd(x: Array, indices: Array, *, batch_dims: int) -> Array:
    """Index tuples are in the last dimension, after ``batch_dims`` dimensions shared with the data."""
    batch = x.shape[:batch_dims]
    depth = indices.shape[-1] if indices.ndim else 0
    if indices.ndim <= batch_dims or depth > x.ndim - batch_dims or indices.shape[:batch_dims] != batch:
        raise Error("IRC421", f"indices of shape {list(indices.shape)} do not fit data of shape {list(x.shape)}")
    own = np.ogrid[tuple(slice(0, d) for d in batch)] if batch else ()
    spread = (1,) * (indices.ndim - 1 - batch_dims)
    try:
        found = x[(*(o.reshape(o.shape + spread) for o in own), *np.moveaxis(indices, -1, 0))]
        return fresh(np.asarray(found, x.dtype), x)  # a single index tuple is basic indexing, which gives a view
    except IndexError as error:
        raise _out_of_range(error) from None


_COMBINED: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
"""By reduction: what combines what is there and what comes."""


def _write(out: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    try:
        if reduction == "none":
            out[index] = updates if updates.ndim else updates[()]  # else an element of strings would be an array
        else:
            combine_at(_COMBINED[reduction], out, index, updates)
    except IndexError as error:
        raise _out_of_range(error) from None
    return out


def begun(x: Array, out: Array | None) -> Array:
    """A copy of ``x`` to write elements into: ``out`` if given, which may be ``x``'s memory."""
    if out is None:
        return np.array(x, order="C")
    if out is not x and (address(out) != address(x) or out.strides != x.strides):
        np.copyto(out, x)
    return out


_REDUCTION = one_of("reduction", "none", ("none", *_COMBINED))


@computes("onnx::Scatter", "onnx::ScatterElements", reduction=_REDUCTION)
def scatter_elements(
    x: Array, indices: Array, updates: Array, out: Array | None = None, *, axis: int = 0, reduction: str
) -> Array:
    if updates.shape != indices.shape:
        raise Error("IRC421", f"updates of shape {list(updates.shape)} for indices of {list(indices.shape)}")
    places = _along(x, indices, axis)
    return _write(begun(x, out), places, updates, reduction)


@computes("onnx::ScatterND", reduction=_REDUCTION)
def scatter_nd(x: Array, indices: Array, updates: Array, out: Array | None = None, *, reduction: str) -> Array:
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or depth > x.ndim or updates.shape != indices.shape[:-1] + x.shape[depth:]:
        shapes = shapes_of(indices, updates)
        raise Error("IRC421", f"indices and updates of shapes {shapes} do not fit data of shape {list(x.shape)}")
    return _write(begun(x, out), tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


@computes("irc::slice_scatter")
def slice_scatter(x: Array, updates: Array, out: Array | None = None, *, starts: list[int], steps: list[int]) -> Array:
    """A copy of the first input with the second's elements at ``start + i * step`` of each axis."""
    return slice_scatter_(begun(x, out), updates, starts=starts, steps=steps)


@computes("irc::slice_scatter_")
def slice_scatter_(x: Array, updates: Array, *, starts: list[int], steps: list[int]) -> Array:
    """As ``irc::slice_scatter``, written into the first input itself."""
    ends = [start + step * n for start, step, n in zip(starts, steps, updates.shape, strict=False)]
    fits = len(starts) == len(steps) == x.ndim == updates.ndim and min([*steps, 1]) > 0 and min([*starts, 0]) >= 0
    if not fits or any(n and e - s >= d for n, e, s, d in zip(updates.shape, ends, steps, x.shape, strict=True)):
        raise Error("IRC421", f"a slice {list(updates.shape)} from {starts} by {steps} does not fit {list(x.shape)}")
    if not x.flags.writeable:
        raise Error("IRC431", "an in-place operator would write into memory that may not be changed")
    x[(*map(slice, starts, ends, steps), ...)] = updates  # without the ellipsis, a string would become an array
    return x


@computes("onnx::TensorScatter", mode=one_of("mode", "linear", ("linear", "circular")))
def tensor_scatter(
    cache: Array, update: Array, starts: Array | None = None, out: Array | None = None, *, axis: int = -2, mode: str
) -> Array:
    """Write ``update`` into a cache along ``axis`` at each sample's index; circular: wrapping around."""
    at = axis_in(axis, cache.ndim)
    rest = (*cache.shape[:at], *cache.shape[at + 1 :])
    if at == 0 or update.ndim != cache.ndim or (*update.shape[:at], *update.shape[at + 1 :]) != rest:
        raise Error("IRC421", f"an update of shape {list(update.shape)} does not fit {list(cache.shape)}")
    length, capacity = update.shape[at], cache.shape[at]
    first = np.zeros(cache.shape[0], np.int64) if starts is None else starts
    if first.shape != cache.shape[:1]:
        raise Error("IRC421", f"starts of shape {list(first.shape)} do not fit {len(cache)} samples")
    if mode == "circular" and capacity:
        first = first % capacity
    elif (first < 0).any() or (first > capacity - length).any():
        raise Error("IRC423", f"{length} elements from {first.tolist()} on do not fit a cache of {capacity}")
    places = (first[:, None] + counting(length)) % max(capacity, 1)
    result = begun(cache, out)
    np.moveaxis(result, at, 1)[counting(len(result))[:, None], places] = np.moveaxis(update, at, 1)
    return result


def _time_axis(node: Node) -> int:
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)
    if sorted((batch, time)) != [0, 1]:
        raise Error("IRC320", f"batch_axis {batch} and time_axis {time} must be 0 and 1, or 1 and 0")
    return time


@computes("onnx::ReverseSequence", time_axis=_time_axis)
def reverse_sequence(x: Array, lengths: Array, *, time_axis: int) -> Array:
    """The first ``lengths[i]`` steps of sample i in reverse, the others as they are."""
    if x.ndim < 2 or lengths.shape != (x.shape[1 - time_axis],):
        raise Error("IRC421", f"{list(lengths.shape)} lengths do not fit the shape {list(x.shape)}")
    if ((lengths < 0) | (lengths > x.shape[time_axis])).any():
        raise Error("IRC424", f"a length in {lengths.tolist()} is not between 0 and {x.shape[time_axis]}")
    step = counting(x.shape[time_axis])
    source = np.where(step < lengths[:, None], lengths[:, None] - 1 - step, step)  # [sample, step]
    if time_axis == 0:
        return c_order(x[source.T, counting(x.shape[1])])
    return c_order(x[counting(x.shape[0])[:, None], source])


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
    """Distinct elements, or distinct slices along an axis; sorted, or by first occurrence."""
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
    """Of the sorted distinct ``rows``: first positions, each row's class, and class sizes.

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
    """The ``k`` largest (smallest) elements along ``axis`` in order, and indices; ties: the first."""
    along = axis_in(axis, x.ndim)
    if not 0 <= k <= x.shape[along]:
        raise Error("IRC424", f"k is {k}, but axis {axis} has {x.shape[along]} elements")
    # As [before, axis, behind]: NumPy sorts no more than 32 dimensions.
    lead, n, tail = x.shape[:along], x.shape[along], x.shape[along + 1 :]
    flat = x.reshape(math.prod(lead), n, math.prod(tail))
    ranked = widened(flat)
    is_few = 0 < k <= n // _FEW and x.size >= _MANY and ranked.dtype.kind in "iuf"
    order = _of_few(ranked, k, largest) if is_few else None
    indices = np.array(sorting_order(ranked, 1, largest)[:, :k] if order is None else order, np.int64, order="C")
    values = np.take_along_axis(flat, indices, 1)
    return fresh(values.reshape(*lead, k, *tail), x), indices.reshape(*lead, k, *tail)


_FEW, _MANY = 8, 1 << 11
"""TopK selects without sorting all of at least `_MANY` elements if it wants at most one in `_FEW` of them."""


def sorting_order(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort ``x`` along ``axis``; equal elements stay in order, and NaNs count as largest."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _of_few(x: Array, k: int, largest: bool) -> Array | None:
    """The first ``k`` of `sorting_order`; None where numbers are too few, and NaNs are taken."""
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
    order = sorting_order(np.take_along_axis(rows, indices, 1), 1, largest)
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
