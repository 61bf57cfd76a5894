"""Indexing by data: reading and writing elements; elements joined by their bag or group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels import index as onnx_index
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    INT64,
    check_same_type,
    check_writable,
    element_of,
    is_floating,
    is_integral,
    single,
    wide,
)
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import diagonal, part
from irc.runtime.kernels.numerics import combine_at
from irc.runtime.kernels.reduce import extreme
from irc.runtime.kernels.support import Array, axis_in, broadcast_shape, check_size, counting, filled, shapes_of
from irc.runtime.values import is_array


def _out_of_range(error: Exception) -> Error:
    return Error("IRC420", f"an index is out of range: {error}")


# -- index ---------------------------------------------------------------------


def _places(x: Array, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Indices as NumPy takes them: masks become their places, None everything.

    A mask without dimensions chooses the whole tensor or nothing of it, and stands for no dimension.
    """
    places: list[Any] = []
    at = 0
    for index in indices:
        if index is None:
            places.append(slice(None))
            at += 1
        elif _is_mask(index):
            if index.shape != x.shape[at : at + index.ndim]:
                raise Error("IRC421", f"a mask of shape {list(index.shape)} does not fit {list(x.shape)} from {at} on")
            places.extend(np.nonzero(index) if index.ndim else [index.astype(bool)])
            at += index.ndim
        else:
            places.append(index)
            at += 1
    if at > x.ndim:
        raise Error("IRC420", f"{at} indices for a tensor of {x.ndim} dimensions")
    return tuple(places)


def take(x: Array, indices: Sequence[Any]) -> Array:
    """``x[indices]``: a copy, whatever the indices are."""
    try:
        return np.array(x[_places(x, indices)], order="C")
    except IndexError as error:
        raise _out_of_range(error) from None


def _put(x: Array, indices: Sequence[Any], values: Array, accumulate: bool = False, unsafe: bool = False) -> Array:
    check_writable(x)
    given = [index for index in indices if index is not None]
    if not (values.size == 1 and not accumulate and len(given) == 1 and _is_mask(given[0])):
        check_same_type(x, values)  # else torch fills, which converts
    places = _places(x, indices)
    try:
        if accumulate:
            combine_at(np.add, x, places, values)
        else:
            x[places] = values
    except IndexError as error:
        raise _out_of_range(error) from None
    except ValueError as error:
        raise Error("IRC421", f"{error}") from None
    return x


def _is_mask(index: Array) -> bool:
    return index.dtype in (BOOL, np.uint8)


def _copying(write: Callable[..., Array], in_order: bool, x: Array, *rest: Any) -> Array:
    """``write`` into a copy of its first argument, which lies as that, or in order."""
    return write(x.copy() if in_order else layout.copy(x), *rest)


def both(in_order: bool = False, **writers: Callable[..., Array]) -> None:
    """Register each of ``writers``, which write into their first argument, and the functional form."""
    for name, write in writers.items():
        aten(f"{name}_")(write)
        aten(name, takes=(write,))(partial(_copying, write, in_order))


# -- along a dimension ---------------------------------------------------------


def index_select(x: Array, dim: int, index: Array) -> Array:
    if index.ndim > 1:
        raise Error("IRC421", f"index_select takes a vector of indices, not {list(index.shape)}")
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.copy()
    places = index.reshape(-1)
    if places.size and (places.min() < 0 or places.max() >= x.shape[axis]):
        raise Error("IRC420", f"an index is out of range for dimension {dim} of size {x.shape[axis]}")
    check_bytes(x.nbytes // max(x.shape[axis], 1) * places.size)
    return np.asarray(np.take(x, places, axis))


def _vector(x: Array) -> Array:
    """``x``, or a view of it as a vector if it has no dimensions: torch accepts that along one dimension."""
    return x if x.ndim else x.reshape(1)


def _at(x: Array, dim: int, index: Array, least: int = 0) -> tuple[Any, ...]:
    """Where the slices along ``dim`` are whose numbers ``index`` says, which must not be below ``least``."""
    axis = axis_in(dim, x.ndim)
    if index.ndim > 1:
        raise Error("IRC421", f"the indices must be a vector, not a tensor of shape {list(index.shape)}")
    places = _vector(index)
    if places.size and not least <= places.min() <= places.max() < x.shape[axis]:
        raise Error("IRC420", f"an index is out of range for dimension {dim} of size {x.shape[axis]}")
    return (slice(None),) * axis + (places,)


def _slices(x: Array, dim: int, index: Array, source: Array) -> tuple[Any, ...]:
    """As `_at`, for a ``source`` that has a slice for each."""
    at = _at(x, dim, index)
    shape = (*x.shape[: len(at) - 1], index.size, *x.shape[len(at) :])
    if source.shape != shape:
        raise Error("IRC421", f"a source of shape {list(source.shape)} is given where {list(shape)} is needed")
    return at


def _index_fill(x: Array, dim: int, index: Array, value: Any) -> Array:
    check_writable(x, one_value=True)
    target = _vector(x)
    target[_at(target, dim, index, -target.shape[axis_in(dim, target.ndim)])] = single(value, x.dtype)
    return x


def _index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    check_writable(x)
    check_same_type(x, source)
    target, given = _vector(x), _vector(source)
    target[_slices(target, dim, index, given)] = given
    return x


def _index_add(x: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> Array:
    check_writable(x)
    if source.ndim != x.ndim:
        raise Error("IRC421", f"a source of shape {list(source.shape)} cannot be added to slices of {list(x.shape)}")
    check_same_type(x, source)
    target, given = _vector(x), _vector(source)
    combine_at(np.add, target, _slices(target, dim, index, given), given * element_of(alpha, x.dtype))
    return x


def along(x: Array, dim: int, index: Array) -> tuple[Any, ...]:
    """Index arrays of elements whose place along a dimension is ``index``, and their own elsewhere."""
    axis = axis_in(dim, x.ndim)
    if index.ndim != x.ndim or any(n > m for a, (n, m) in enumerate(zip(index.shape, x.shape)) if a != axis):
        raise Error("IRC421", f"an index of shape {list(index.shape)} does not fit a tensor of {list(x.shape)}")
    if index.size and (index.min() < 0 or index.max() >= x.shape[axis]):
        raise Error("IRC420", f"an index is out of range for dimension {dim} of size {x.shape[axis]}")
    own = np.ogrid[tuple(slice(0, n) for n in index.shape)]
    return (*own[:axis], index, *own[axis + 1 :])


def gather(x: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    axis_in(dim, max(x.ndim, 1))
    if not index.size:
        return np.empty(index.shape, x.dtype)
    source, places = _vector(x), _vector(index)
    return np.array(source[along(source, dim, places)], order="C").reshape(index.shape)


_COMBINED: dict[str | None, np.ufunc | None] = {None: None, "add": np.add, "multiply": np.multiply}
_REDUCED: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _among(table: Mapping[Any, Any], reduce: str | None) -> Any:
    """The entry of ``table`` for ``reduce``."""
    if reduce not in table:
        raise Error("IRC423", f"reduce is {reduce!r}; it must be one of {', '.join(repr(r) for r in table if r)}")
    return table[reduce]


def _scatter_by(combine: np.ufunc | None, x: Array, dim: int, index: Array, source: Any) -> Array:
    """Write ``source``, a tensor or a number, to the places that the index gives along a dimension.

    ``combine`` combines the old element with the new one; None overwrites it.
    """
    check_writable(x)
    target, index = _vector(x), _vector(index)
    axis_in(dim, target.ndim)
    if not index.size:
        return x
    places = along(target, dim, index)
    values = _first_of(source, x, index.shape) if is_array(source) else element_of(source, x.dtype)
    if combine is None:
        target[places] = values
    else:
        combine_at(combine, target, places, values)
    return x


def _first_of(source: Array, x: Array, shape: tuple[int, ...]) -> Array:
    """The first elements of ``source`` in ``x``'s type, as many as there are indices a dimension."""
    check_same_type(x, source)
    given = _vector(source)
    if given.ndim != len(shape) or any(n > m for n, m in zip(shape, given.shape)):
        raise Error("IRC421", f"a source of shape {list(source.shape)} is too small for {list(shape)}")
    return given[tuple(slice(0, n) for n in shape)]


def _scatter(x: Array, dim: int, index: Array, source: Any, reduce: str | None = None) -> Array:
    return _scatter_by(_among(_COMBINED, reduce), x, dim, index, source)


def _scatter_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Array:
    """As `_scatter_by`; ``mean`` too, and without what was there before if told so."""
    combine = _among(_REDUCED, reduce)
    if not index.size:
        return x
    target, index = _vector(x), _vector(index)
    places = along(target, dim, index)
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": extreme(x.dtype, -1), "amin": extreme(x.dtype, 1)}
        target[places] = neutral[reduce]
    _scatter_by(combine, target, dim, index, source)
    if reduce == "mean":
        counts = np.full(target.shape, 1 if include_self else 0, np.int64)
        np.add.at(counts, places, 1)
        counts[counts == 0] = 1
        means = np.floor_divide(target, counts) if x.dtype.kind in "iu" else target / counts
        np.copyto(target, means, casting="unsafe")
    return x


def _index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Array:
    """As `_scatter_reduce`, whole slices of ``source``."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise Error("IRC423", f"reduce is {reduce!r}; it must be 'prod', 'mean', 'amax' or 'amin'")
    target, given = _vector(x), _vector(source)
    at = axis_in(dim, target.ndim)
    _slices(target, dim, index, given)  # which refuses what does not fit
    places = np.expand_dims(index.reshape(-1), tuple([i for i in range(target.ndim) if i != at]))
    _scatter_reduce(target, dim, np.broadcast_to(places, given.shape), given, reduce, include_self)
    return x


def embedding_renorm_(x: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """The rows that indices name are made no longer than ``max_norm``."""
    check_writable(x)
    if is_integral(x.dtype):
        raise Error("IRC423", f"rows of {x.dtype.name} have no length; convert them first")
    if x.ndim != 2 or (indices.size and not -len(x) <= indices.min() <= indices.max() < len(x)):
        raise Error("IRC420", f"indices name no rows of a tensor of shape {list(x.shape)}")
    rows = np.unique(np.where(indices < 0, indices + len(x), indices))
    lengths = np.linalg.norm(np.abs(x[rows]).astype(np.float64), norm_type, 1)
    is_long = lengths > max_norm
    x[rows[is_long]] *= (max_norm / (lengths[is_long, None] + 1e-7)).astype(x.dtype)
    return x


def _take_flat(x: Array, index: Array) -> Array:
    try:
        return np.asarray(x.reshape(-1)[index], order="C").reshape(index.shape)
    except IndexError as error:
        raise _out_of_range(error) from None


def _put_flat(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Write ``source`` to the places that ``index`` counts as if ``x`` were a vector."""
    check_writable(x)
    check_same_type(x, source)
    if index.dtype != INT64 or index.size != source.size:
        given = f"{index.size} indices of {index.dtype.name}"
        raise Error("IRC421", f"put takes an index of int64 for each of {source.size} elements, not {given}")
    if index.size and not -x.size <= index.min() <= index.max() < x.size:
        raise Error("IRC420", f"an index is out of range for a tensor of {x.size} elements")
    if index.size:
        places = np.unravel_index(index.reshape(-1) % x.size, x.shape or (1,))
        _put(_vector(x), places, source.reshape(-1), accumulate)
    return x


def fill_diagonal_(x: Array, value: Any, wrap: bool = False) -> Array:
    """``wrap`` goes on below the diagonal of a tall matrix, after a row without."""
    check_writable(x, one_value=True)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} has no diagonal; its sizes must be the same")
    places: Sequence[Array] = [counting(min(x.shape))] * x.ndim
    if wrap and x.ndim == 2 and x.size:
        flat = counting(-(-x.size // (x.shape[1] + 1))) * (x.shape[1] + 1)
        places = [flat // x.shape[1], flat % x.shape[1]]
    x[tuple(places)] = element_of(value, x.dtype)
    return x


def take_along_dim(x: Array, indices: Array, dim: int | None = None) -> Array:
    if dim is None:
        return gather(x.reshape(-1), 0, indices.reshape(-1))
    axis = axis_in(dim, x.ndim)
    indices = np.where(indices < 0, indices % max(x.shape[axis], 1), indices)
    shape = list(broadcast_shape(_without(x, axis), _without(indices, axis)))
    check_size((*shape[:axis], indices.shape[axis], *shape[axis:]), x.dtype)
    spread = [np.broadcast_to(v, [*shape[:axis], v.shape[axis], *shape[axis:]]) for v in (x, indices)]
    return gather(spread[0], axis, spread[1])


def _without(x: Array, axis: int) -> tuple[int, ...]:
    return (*x.shape[:axis], *x.shape[axis + 1 :])


# -- places --------------------------------------------------------------------


def nonzero(x: Array) -> Array:
    return onnx_index.nonzero(x).T  # in this order in memory, as torch has them


def embedding(weight: Array, indices: Array, *ignored: Any) -> Array:
    if weight.ndim != 2:
        raise Error("IRC421", f"an embedding's weight must have 2 dimensions; it has shape {list(weight.shape)}")
    if indices.dtype.kind != "i":
        raise Error("IRC423", f"an embedding's indices must be integers, not {indices.dtype.name}")
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise Error("IRC420", f"an index is out of range for an embedding of {weight.shape[0]} rows")
    check_bytes(indices.size * weight.shape[1] * weight.itemsize)
    return np.asarray(np.take(weight, indices, 0), order="C")


def one_hot(x: Array, num_classes: int = -1) -> Array:
    if x.dtype != INT64:
        raise Error("IRC423", f"class numbers are of int64, not of {x.dtype.name}; convert them")
    if not x.size and num_classes == -1:
        raise Error("IRC424", "without class numbers, the number of classes must be given")
    if x.size and x.min() < 0:
        raise Error("IRC424", "class numbers must not be negative")
    count = (int(x.max()) + 1 if x.size else 0) if num_classes == -1 else num_classes
    if x.size and x.max() >= count:
        raise Error("IRC424", f"class {int(x.max())} is not below the number of classes, {count}")
    check_size((*x.shape, count), INT64)
    return (x[..., None] == counting(count)).astype(np.int64, "C")


# -- parts replaced ------------------------------------------------------------


def _replace(x: Array, source: Array, view: Array) -> Array:
    if view.shape != source.shape:
        raise Error("IRC421", f"a source of shape {list(source.shape)} does not fit a part of {list(view.shape)}")
    np.copyto(view, source, casting="unsafe")
    return x


def select_scatter(x: Array, source: Array, dim: int, index: int, *, out: Array | None = None) -> Array:
    axis = axis_in(dim, x.ndim)
    if not -x.shape[axis] <= index < x.shape[axis]:
        raise Error("IRC420", f"index {index} is out of range for dimension {dim} of size {x.shape[axis]}")
    made = layout.copy(x) if out is None else onnx_index.begun(x, out)
    return _replace(made, source, made[(slice(None),) * axis + (index, ...)])


def slice_scatter(
    x: Array,
    source: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Array | None = None,
) -> Array:
    if step < 1:
        raise Error("IRC424", f"a slice has a positive step, not {step}")
    axis = axis_in(dim, x.ndim)
    made = layout.copy(x) if out is None else onnx_index.begun(x, out)
    return _replace(made, source, part(made, axis, start, end, step))


def diagonal_scatter(x: Array, source: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    out = layout.copy(x)
    return _replace(out, source, diagonal(out, offset, dim1, dim2))


def as_strided_scatter(
    x: Array, source: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    out = layout.copy_of_storage(x)
    view = layout.strided(out, size, stride, storage_offset)
    check_writable(view)
    return _replace(out, source, view)


def nonzero_numpy(x: Array) -> list[Array]:
    return [np.array(i) for i in np.nonzero(np.atleast_1d(x))]


_SUM, _MEAN, _MAX = range(3)
"""torch's numbers of modes (torch.nn.functional.embedding_bag)."""


def embedding_bag(weight: Array, indices: Array, offsets: Array, *options: Any) -> tuple[Array, Array, Array, Array]:
    """The embeddings and, for gradients, each index's bag, bag sizes and the rows of maxima.

    torch leaves out the bags for most sums, and then has no sizes either.
    """
    _, mode, _, factors, include_last_offset, padding_idx = filled(options, False, _SUM, False, None, False, None)
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
        shapes = shapes_of(weight, indices, offsets)
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


def segment_reduce(x: Array, reduce: str, *options: Any) -> Array:
    """Segments of neighbours along ``axis``: of the ``lengths`` given, or from one offset to the next."""
    lengths, indices, offsets, axis, _, initial = filled(options, None, None, None, 0, False, None)
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


both(index_put=_put, put=_put_flat, index_fill=_index_fill)
both(
    in_order=True,
    index_copy=_index_copy,
    index_add=_index_add,
    scatter=_scatter,
    scatter_add=partial(_scatter_by, np.add),
    scatter_reduce=_scatter_reduce,
    index_reduce=_index_reduce,
)
table(
    take=_take_flat,
    argwhere=nonzero,
)
