"""Views: results that show the memory of a tensor, always; and those that do where strides allow it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir.objects import is_dense
from irc.ops.sizes import VIEW_BYTES
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import check_writable, dtype_of
from irc.runtime.kernels.aten.registering import one, table, two
from irc.runtime.kernels.support import Array, axes_in, axis_in, check_size, common_shape, is_half, shapes_of
from irc.runtime.values import is_array


def sizes_of(given: Any) -> list[Any]:
    """Sizes, or other numbers, as a list; where a schema says ``int[2]``, one number stands for all."""
    return [given] if isinstance(given, (int, float)) else list(given)


# -- shapes --------------------------------------------------------------------


def _view(x: Array, size: Any) -> Array:
    if not isinstance(size, (list, tuple)):
        return _view_as_type(x, size)
    result = reshape(x, size)  # type: ignore[reportUnknownArgumentType]
    if result.size and not np.may_share_memory(result, x):
        raise Error("IRC424", f"no view of shape {size} exists for strides {list(x.strides)}; use reshape")
    return result


def view_copy(x: Array, size: Any) -> Array:
    """A copy of what ``view`` shows; of ``reshape``'s result where no view has that shape."""
    return np.array(reshape(x, size) if isinstance(size, (list, tuple)) else _view_as_type(x, size), order="C")  # type: ignore[reportUnknownArgumentType]


def _view_as_type(x: Array, number: int) -> Array:
    """The same bytes as elements of another type; the last dimension grows or shrinks with their size."""
    dtype = dtype_of(number, x.dtype)
    if dtype.itemsize == x.itemsize:
        return x.view(dtype)
    if not x.ndim or x.strides[-1] != x.itemsize or x.shape[-1] * x.itemsize % dtype.itemsize:
        raise Error("IRC424", f"a tensor of shape {list(x.shape)} of {x.dtype} cannot be viewed as {dtype}")
    return x.view(dtype)


def reshape(x: Array, shape: Sequence[int]) -> Array:
    """A view if one exists, else a copy."""
    try:
        return x.reshape(tuple(shape))
    except ValueError:
        raise Error("IRC422", f"a tensor of shape {list(x.shape)} cannot take the shape {list(shape)}") from None


def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    first, last = (axis_in(dim, max(x.ndim, 1)) for dim in (start_dim, end_dim))
    if not x.ndim:
        return x.reshape(1)
    if first > last:
        raise Error("IRC420", f"flatten from dimension {start_dim} to {end_dim}: the first comes after the last")
    if first == last:
        return x
    return x.reshape(*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])


def unflatten(x: Array, dim: int, sizes: Sequence[int]) -> Array:
    axis = axis_in(dim, x.ndim)
    if -1 in sizes:
        known = math.prod(n for n in sizes if n != -1)
        sizes = [x.shape[axis] // max(known, 1) if n == -1 else n for n in sizes]
    if math.prod(sizes) != x.shape[axis]:
        raise Error("IRC422", f"dimension {dim} of size {x.shape[axis]} cannot become {list(sizes)}")
    return _view(x, [*x.shape[:axis], *sizes, *x.shape[axis + 1 :]])


def unsqueeze(x: Array, dim: int) -> Array:
    dim = axis_in(dim, x.ndim + 1)
    return x.reshape(*x.shape[:dim], 1, *x.shape[dim:])


def _squeezed(x: Array, dim: int | Sequence[int] | None) -> list[int]:
    """The sizes without those that are 1, only among ``dim`` if it is given."""
    dims = range(x.ndim) if dim is None else axes_in(sizes_of(dim), max(x.ndim, 1))
    return [n for i, n in enumerate(x.shape) if n != 1 or i not in dims]


def squeeze(x: Array, dim: int | Sequence[int] | None = None) -> Array:
    return x.reshape(_squeezed(x, dim))


def squeeze_(x: Array, dim: int | Sequence[int] | None = None) -> Array:
    check_writable(x, one_value=True)
    return _reshaped_in_place(x, _squeezed(x, dim))


def unsqueeze_(x: Array, dim: int) -> Array:
    check_writable(x, one_value=True)
    at = axis_in(dim, x.ndim + 1)
    return _reshaped_in_place(x, [*x.shape[:at], 1, *x.shape[at:]])


def _reshaped_in_place(x: Array, sizes: list[int]) -> Array:
    """Give ``x`` itself another shape, which every holder of the tensor sees."""
    x.shape = tuple(sizes)  # type: ignore[reportDeprecated]  # nothing else in NumPy does this
    return x


# -- order of dimensions -------------------------------------------------------


def transpose(x: Array, dim0: int, dim1: int) -> Array:
    if not x.ndim and {dim0, dim1} <= {0, -1}:
        return x.view()
    return np.swapaxes(x, axis_in(dim0, x.ndim), axis_in(dim1, x.ndim))


def permute(x: Array, dims: Sequence[int]) -> Array:
    if len(dims) != x.ndim:
        raise Error("IRC420", f"{list(dims)} is no order of {x.ndim} dimensions")
    return np.transpose(x, axes_in(dims, x.ndim))


def t(x: Array) -> Array:
    if x.ndim > 2:
        raise Error("IRC421", f"t needs at most 2 dimensions; the shape is {list(x.shape)}")
    return x.T


def movedim(x: Array, source: Any, destination: Any) -> Array:
    from_, to = (axes_in(sizes_of(dims), max(x.ndim, 1)) for dims in (source, destination))
    if len(from_) != len(to):
        raise Error("IRC420", f"{len(from_)} dimensions cannot move to {len(to)} places")
    return np.moveaxis(x, from_, to) if x.ndim else x.view()


def mT(x: Array) -> Array:
    if x.ndim == 1:
        raise Error("IRC421", f"a matrix has at least 2 dimensions; the shape is {list(x.shape)}")
    return np.swapaxes(x, -1, -2) if x.ndim else x


def _turned_in_place(turn: Callable[..., Array]) -> Callable[..., Array]:
    """The in-place variant of ``turn``: the tensor itself gets the view's shape and strides.

    NumPy refuses strides that reach beyond an array's memory. A view's memory is that of its base; any other array's is
    what its present strides reach, which therefore stays the same.
    """

    def run(x: Array, *dims: int) -> Array:
        check_writable(x, one_value=True)
        turned = turn(x, *dims)
        shape, strides = turned.shape, turned.strides
        if isinstance(x.base, np.ndarray) or not x.size:
            between = [0] * x.ndim
        elif is_dense(x):
            between = [x.itemsize * math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
        else:
            raise Error("IRC424", "NumPy cannot turn a tensor with gaps in place; clone it first")
        # NumPy advises against setting these and has nothing else that turns an array others hold.
        x.strides = tuple(between)  # type: ignore[reportDeprecated]  # from which any shape can be taken
        x.shape = shape  # type: ignore[reportDeprecated]
        x.strides = strides  # type: ignore[reportDeprecated]
        return x

    return run


# -- parts ---------------------------------------------------------------------


def select(x: Array, dim: int, index: int) -> Array:
    dim = axis_in(dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise Error("IRC420", f"index {index} is out of range for dimension {dim} of size {x.shape[dim]}")
    return x[(slice(None),) * dim + (index, ...)]


def part(x: Array, axis: int, start: int | None, end: int | None, step: int = 1) -> Array:
    """A slice of a tensor along one axis."""
    return x[(slice(None),) * axis + (slice(start, end, step),)]


_SLICE_DEFAULTS: tuple[Any, ...] = (0, None, None, 1)


def _slice(x: Any, *arguments: Any) -> Any:
    """``slice.Tensor(x, dim=0, start=None, end=None, step=1)``; of lists and strings without ``dim``."""
    if not is_array(x):
        start, end, step = (*arguments, *_SLICE_DEFAULTS[1 + len(arguments) :])
        found = x[slice(start, end, step)]
        return found if isinstance(x, str) else list(found)
    dim, start, end, step = (*arguments, *_SLICE_DEFAULTS[len(arguments) :])
    if step < 1:
        raise Error("IRC420", f"a slice's step must be positive; it is {step}")
    return part(x, axis_in(dim, x.ndim), start, end, step)


def narrow(x: Array, dim: int, start: Any, length: int) -> Array:
    axis, first = axis_in(dim, x.ndim), int(start)
    size = x.shape[axis]
    first += size if first < 0 else 0
    if length < 0 or first < 0 or first + length > size:
        raise Error("IRC420", f"{length} positions from {int(start)} on are not within dimension {dim} of size {size}")
    return part(x, axis, first, first + length)


def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """The diagonal of two dimensions, as the last one; a view that may be written."""
    view = np.diagonal(x, offset, axis_in(dim1, x.ndim), axis_in(dim2, x.ndim))
    view.flags.writeable = x.flags.writeable
    return view


def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    """All windows of ``size`` positions along a dimension, ``step`` apart, as a new last axis."""
    axis = axis_in(dimension, max(x.ndim, 1))
    places = x.shape[axis] if x.ndim else 1
    if size < 0 or step < 1 or size > places:
        raise Error("IRC420", f"no windows of {size} by {step} in dimension {dimension} of size {places}")
    if not x.ndim:
        return layout.strided(x, (size,), (1,))
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis, writeable=bool(x.flags.writeable))
    return part(windows, axis, None, None, step)


# -- repetition ----------------------------------------------------------------


def expand(x: Array, size: Sequence[int], implicit: bool = False) -> Array:
    """A view in which dimensions of 1, and new ones before all others, repeat; -1 keeps a size."""
    extra = len(size) - x.ndim
    shape = [x.shape[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(size)]
    try:
        view = np.broadcast_to(x, check_size(shape, x.dtype))
    except ValueError:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} cannot expand to {list(size)}") from None
    if x.flags.writeable:
        view.flags.writeable = True  # a view of it may be written, though not the expanded tensor itself
    return view


def broadcast_tensors(tensors: Sequence[Array]) -> list[Array]:
    shape = common_shape(*(x.shape for x in tensors))
    return [x if x.shape == shape else expand(x, shape) for x in tensors]  # of that shape, torch gives it itself


def meshgrid(tensors: Sequence[Array], indexing: str = "ij") -> list[Array]:
    if indexing not in ("ij", "xy"):
        raise Error("IRC423", f"meshgrid's indexing is {indexing!r}; it must be 'ij' or 'xy'")
    if not tensors or any(x.ndim > 1 for x in tensors):
        raise Error("IRC421", f"meshgrid takes vectors and 0-d tensors; the shapes are {shapes_of(*tensors)}")
    swap = indexing == "xy" and len(tensors) > 1
    axes = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = [x.size for x in axes]
    grids = [expand(x.reshape(-1, *(1,) * (len(axes) - 1 - i)), shape) for i, x in enumerate(axes)]
    return [grids[1], grids[0], *grids[2:]] if swap else grids


# -- parts in lists ------------------------------------------------------------


def _check_views(count: int) -> None:
    """Check a number of views before they are made."""
    check_bytes(count * VIEW_BYTES)


def _pieces(x: Array, axis: int, ends: Sequence[int]) -> list[Array]:
    return [part(x, axis, a, b) for a, b in zip([0, *ends], ends)]


def split(x: Any, sizes: Any = None, dim: Any = 0) -> list[Any]:
    """By one size or a list of them; of strings, at a separator."""
    if isinstance(x, str):
        return x.split(sizes, dim or -1)
    axis = axis_in(dim, x.ndim)
    total = x.shape[axis]
    if not isinstance(sizes, int):
        given = list(sizes)
        if sum(given) != total or min(given, default=0) < 0:
            raise Error("IRC421", f"sizes {given} do not add up to {total}, the size of dimension {dim}")
        _check_views(len(given))
        return _pieces(x, axis, [sum(given[: i + 1]) for i in range(len(given))])
    if sizes < 1 and total:
        raise Error("IRC420", f"a tensor cannot be split into parts of {sizes}")
    _check_views(-(-total // max(sizes, 1)))
    return _pieces(x, axis, [min(end, total) for end in range(sizes, total + sizes, sizes)] if total else [0])


def chunk(x: Array, chunks: int, dim: int = 0) -> list[Array]:
    axis = axis_in(dim, x.ndim)
    if chunks < 1:
        raise Error("IRC420", f"a tensor cannot be cut into {chunks} chunks")
    size = -(-x.shape[axis] // chunks)
    if size:
        return split(x, size, dim)
    _check_views(chunks)
    return [part(x, axis, 0, 0)] * chunks


def tensor_split(x: Array, where: Any, dim: int = 0) -> list[Array]:
    """Split at indices, or into parts, the first ones longer by one if they cannot be equal."""
    axis = axis_in(dim, x.ndim)
    if is_array(where):
        if where.dtype != np.int64:
            raise Error("IRC423", f"places to split at are of int64, not of {where.dtype.name}; convert them")
        where = where.tolist()
    total = x.shape[axis]
    if not isinstance(where, int):
        _check_views(len(where))
        starts: list[Any] = [None, *where]
        return [part(x, axis, a, b) for a, b in zip(starts, [*where, None])]
    if where < 1:
        raise Error("IRC420", f"a tensor cannot be split into {where} parts")
    _check_views(where)
    size, longer = divmod(total, where)
    ends = [(i + 1) * size + min(i + 1, longer) for i in range(where)]
    return _pieces(x, axis, ends)


def _evenly_split(x: Array, where: Any, dim: int, least: int) -> list[Array]:
    """As `tensor_split`, for at least ``least`` dimensions, into equal parts if their number is given."""
    if x.ndim < max(least, 1):
        raise Error("IRC421", f"the split takes {least} dimensions or more; the shape is {list(x.shape)}")
    if isinstance(where, int) and (where < 1 or x.shape[dim] % where):
        raise Error("IRC421", f"dimension {dim} of size {x.shape[dim]} has no {where} parts of one size")
    return tensor_split(x, where, dim)


def unbind(x: Array, dim: int = 0) -> list[Array]:
    axis = axis_in(dim, x.ndim)
    _check_views(x.shape[axis])
    return [select(x, axis, i) for i in range(x.shape[axis])]


# -- the same tensor -----------------------------------------------------------


def _alias(x: Array, *ignored: Any) -> Array:
    return x.view()


def _itself(x: Any, *ignored: Any) -> Any:
    return x


def at_least(x: Any, rank: int) -> Any:
    """``x``, or each of several, with dimensions added as ``atleast_nd`` does."""
    if isinstance(x, (list, tuple)):
        return [at_least(v, rank) for v in x]  # type: ignore[reportUnknownVariableType]
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return unsqueeze(x, -1)
    return x.reshape((1, -1, 1) if rank == 3 else (1,) * (rank - 1) + (-1,))


def _same_size(x: Array, size: Any, memory_format: int | None = None) -> Array:
    """``resize_`` to the tensor's own size, or to another's; irc's tensors cannot change theirs."""
    wanted = list(size.shape) if is_array(size) else sizes_of(size)
    if list(wanted) != list(x.shape):
        raise Error("IRC424", f"irc cannot resize a tensor of shape {list(x.shape)} in place, to {list(wanted)}")
    return x


def _conjugate(x: Array) -> Array:
    """For real numbers, the tensor itself; Error for complex ones, whose conjugates are views in torch."""
    if x.dtype.kind == "c":
        view = "NumPy has no conjugate views of complex tensors"
        raise Error("IRC423", f"{view}; the pass canonicalize makes copies of those that nothing writes")
    return x


def _real(x: Array) -> Array:
    return x.real if x.dtype.kind == "c" else x


def imag(x: Array) -> Array:
    return x.imag


def view_as_real(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1) if not x.size else layout.paired(x)


def view_as_complex(x: Array) -> Array:
    """Pairs in the last dimension as complex numbers."""
    if is_half(x.dtype):
        raise Error("IRC423", f"irc has no complex numbers whose parts are of {x.dtype.name}; convert it first")
    if not x.ndim or x.shape[-1] != 2 or x.strides[-1] != x.itemsize:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} has no pairs side by side in memory")
    return x.view(np.dtype(f"c{2 * x.itemsize}"))[..., 0]


table(
    view=_view,
    view_as=two(lambda x, other: _view(x, other.shape)),
    reshape_as=two(lambda x, other: reshape(x, other.shape)),
    ravel=one(lambda x: layout.in_format(x, layout.CONTIGUOUS).reshape(-1)),  # copies what has gaps, too
    **dict.fromkeys(("resize_", "resize_as_"), _same_size),
    transpose_=_turned_in_place(transpose),
    t_=_turned_in_place(t),
    numpy_T=one(lambda x: x.T),
    **dict.fromkeys(("mH", "matrix_H"), one(lambda x: mT(_conjugate(x)))),
    **dict.fromkeys(("conj", "_conj"), _conjugate),
    conj_physical=one(lambda x: np.asarray(np.conjugate(x)) if x.dtype.kind == "c" else x),
    slice=_slice,
    as_strided=layout.strided,
    expand_as=two(lambda x, other: expand(x, other.shape)),
    broadcast_to=expand,
    **dict.fromkeys("split_with_sizes unsafe_split".split(), split),
    unsafe_chunk=chunk,
    hsplit=two(lambda x, where: _evenly_split(x, where, 0 if x.ndim == 1 else 1, 1)),
    vsplit=two(lambda x, where: _evenly_split(x, where, 0, 2)),
    dsplit=two(lambda x, where: _evenly_split(x, where, 2, 3)),
    **dict.fromkeys("alias data detach".split(), _alias),
    **dict.fromkeys("lift_fresh positive detach_ requires_grad_ resolve_conj resolve_neg cpu cuda".split(), _itself),
    real=_real,
    **{f"atleast_{rank}d": partial(at_least, rank=rank) for rank in (1, 2, 3)},
)
