"""Embeddings of bags of words, and elements joined by the group that each belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import is_floating, wide
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.combine import combine_at
from irc.runtime.kernels.support import Array, axis_in, check_size, counting

_SUM, _MEAN, _MAX = range(3)
"""torch's numbers of modes (torch.nn.functional.embedding_bag)."""


@aten("embedding_bag")
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    factors: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The embeddings and, for gradients: the bag of each index, the sizes of bags, and the rows of the maxima.

    torch leaves out the bags for most sums, and then has no sizes either.
    """
    _check(weight, indices, offsets, mode, factors)
    number = np.promote_types(indices.dtype, offsets.dtype)
    bounds = _bounds(indices, offsets, include_last_offset)
    count = len(bounds) - 1
    bags = np.repeat(np.arange(count), np.diff(bounds)).astype(number)
    used = np.ones(indices.size, bool) if padding_idx is None else indices != _padding(weight, padding_idx)
    sizes = np.bincount(bags[used], minlength=count).astype(number)
    out = np.zeros(check_size((count, weight.shape[1]), weight.dtype), wide(weight.dtype))
    rows, places = weight[indices[used]].astype(out.dtype), bags[used]
    chosen = sizes
    if mode == _MAX:
        chosen = np.zeros(out.shape, number)
        ends = np.cumsum(sizes)
        for bag in np.flatnonzero(sizes):
            its = slice(ends[bag] - sizes[bag], ends[bag])
            largest = _first_largest(rows[its])
            out[bag] = np.take_along_axis(rows[its], largest[None], 0)[0]
            chosen[bag] = indices[used][its][largest]
    else:
        combine_at(np.add, out, [places], rows if factors is None else rows * factors[used].astype(out.dtype)[:, None])
        if mode == _MEAN:
            out /= np.maximum(sizes, 1)[:, None]
    if mode == _SUM:
        sizes = chosen = np.zeros(offsets.size, number)
        bags = bags[:0] if padding_idx is None and _is_fast(weight, factors) else bags
    return out.astype(weight.dtype, copy=False), bags, sizes, chosen.copy()


def _first_largest(rows: Array) -> Array:
    """Row of the largest element in each column: the first if that is NaN; other NaNs are passed over."""
    known = np.where(np.isnan(rows), -np.inf, rows)
    return np.where(np.isnan(rows[0]), 0, known.argmax(0))


def _check(weight: Array, indices: Array, offsets: Array, mode: int, factors: Array | None) -> None:
    if weight.ndim != 2 or indices.ndim != 1 or offsets.ndim != 1:
        shapes = f"{list(weight.shape)}, {list(indices.shape)} and {list(offsets.shape)}"
        raise Error("IRC421", f"bags take a matrix, and vectors of indices and offsets; the shapes are {shapes}")
    if not is_floating(weight.dtype) or {indices.dtype.name, offsets.dtype.name} - {"int32", "int64"}:
        types = f"{weight.dtype.name}, {indices.dtype.name} and {offsets.dtype.name}"
        raise Error("IRC423", f"bags take floats, and int32 or int64 as indices and offsets, not {types}")
    if mode not in (_SUM, _MEAN, _MAX):
        raise Error("IRC424", f"mode {mode} is none of 0 (sum), 1 (mean) and 2 (max)")
    if factors is not None and (mode != _SUM or factors.dtype != weight.dtype or factors.shape != indices.shape):
        raise Error("IRC421", "rows of sums only may have weights: one each, of the element type of the rows")
    if indices.size and not 0 <= indices.min() <= indices.max() < weight.shape[0]:
        raise Error("IRC420", f"an index is out of range for an embedding of {weight.shape[0]} rows")


def _bounds(indices: Array, offsets: Array, include_last_offset: bool) -> Array:
    """Where bags begin among the indices, and where the last one ends."""
    if not offsets.size and not include_last_offset:
        return np.zeros(1, offsets.dtype)
    bounds = offsets if include_last_offset else np.append(offsets, indices.size)
    if not bounds.size or bounds[0] != 0 or bounds[-1] != indices.size or (np.diff(bounds) < 0).any():
        raise Error("IRC424", f"offsets begin with 0 and grow, the last one of all to {indices.size}")
    return bounds


def _padding(weight: Array, index: int) -> int:
    rows = weight.shape[0]
    if not -rows <= index < rows:
        raise Error("IRC420", f"padding_idx is {index}; there are {rows} rows")
    return index % rows


def _is_fast(weight: Array, factors: Array | None) -> bool:
    """Whether torch sums without looking up bags."""
    is_dense = weight.strides[1] == weight.itemsize and (factors is None or factors.strides[0] == factors.itemsize)
    return weight.dtype != np.float64 and is_dense


# -- elements joined by the group that each belongs to -------------------------


_REDUCTIONS: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0),
    "mean": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}
"""By name: how two elements are joined, and what nothing is."""


def _of_segments(
    x: Array,
    reduce: str,
    lengths: Array | None = None,
    indices: Array | None = None,
    offsets: Array | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Array:
    """Segments of neighbours along ``axis``: of the ``lengths`` given, or from one offset to the next."""
    at = axis_in(axis, x.ndim)
    if reduce not in _REDUCTIONS or not is_floating(x.dtype) or not x.size:
        raise Error("IRC424", f"segment_reduce has no {reduce!r} of {x.dtype.name}{list(x.shape)}")
    if offsets is not None:
        lengths = np.diff(offsets, axis=-1)
    if indices is not None or lengths is None or lengths.dtype.kind != "i":
        raise Error("IRC424", "segment_reduce takes lengths or offsets, integers")
    if lengths.ndim != at + 1 or lengths.shape[:at] != x.shape[:at]:
        raise Error("IRC421", f"segments of shape {list(lengths.shape)} do not fit {list(x.shape)} along {at}")
    if (lengths < 0).any() or (lengths.sum(-1) != x.shape[at]).any():
        raise Error("IRC424", f"lengths of segments must not be negative, and amount to {x.shape[at]}")
    join, nothing = _REDUCTIONS[reduce]
    shape = check_size((*lengths.shape, *x.shape[at + 1 :]), x.dtype)
    found = np.full(shape, nothing if initial is None else initial, np.promote_types(x.dtype, np.float32))
    for place in np.ndindex(lengths.shape[:-1]):
        sizes: Array = lengths[place]
        combine_at(join, found[place], [counting(sizes.size).repeat(sizes)], x[place])
    if reduce == "mean":
        counts = lengths.reshape(*lengths.shape, *(1,) * (found.ndim - lengths.ndim))
        empty = np.nan if initial is None else found
        found = np.where(counts > 0, found / np.maximum(counts, 1), empty)
    return found.astype(x.dtype)


table({"segment_reduce": _of_segments})
