"""Copies: into another layout or element type, into existing memory, joined, and rearranged."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ops.aten.promotion import promote
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.containers import copy_container
from irc.runtime.kernels.aten.element_types import (
    INT64,
    check_same_type,
    check_writable,
    dtype_of,
    element_of,
    overwrite,
)
from irc.runtime.kernels.aten.registering import one, table, two
from irc.runtime.kernels.aten.views import at_least, part, sizes_of
from irc.runtime.kernels.registry import Kernel, bound, kernel
from irc.runtime.kernels.shape import depth_to_space, space_to_depth
from irc.runtime.kernels.support import (
    AnyDType,
    Array,
    axes_in,
    axis_in,
    check_size,
    counting,
    filled,
    fresh,
    placed,
    shapes_of,
)
from irc.runtime.values import is_array

# -- layout and element type ---------------------------------------------------


def contiguous(x: Array, memory_format: int = layout.CONTIGUOUS) -> Array:
    return layout.in_format(x, memory_format)


def clone(x: Array, memory_format: int | None = None, *, out: Array | None = None) -> Array:
    return placed(x, layout.empty_like(x, x.dtype, memory_format) if out is None else out)


def convert(x: Array, dtype: AnyDType, memory_format: int | None = None) -> Array:
    """A copy of ``x`` as ``dtype``. Complex numbers lose their imaginary part, except as bools."""
    out = layout.empty_like(x, dtype, memory_format)
    np.copyto(out, _real(x, dtype), casting="unsafe")
    return out


def _real(x: Array, dtype: AnyDType) -> Array:
    """The real part of ``x``, unless ``dtype`` holds complex numbers, or bools: 1j is true."""
    return x.real if x.dtype.kind == "c" and dtype.kind not in "bc" else x


def to(x: Any, *arguments: Any) -> Any:
    """Another element type, device or memory format: ``x`` itself if it has them, unless told to copy.

    Devices are all the same here. Overloads: ``to(x, device, dtype, non_blocking, copy, memory_format)``,
    ``to(x, dtype, ...)``, ``to(x, other, ...)``, ``to(x, dtype, layout, device, pin_memory, non_blocking, copy, ...)``
    and ``prim``'s, in which device and dtype may be left out.
    """
    if not is_array(x):
        return x
    dtype, rest = _wanted(x, arguments)
    _, copy, memory_format = filled(rest, False, False, None)[:3]
    kept = memory_format is None or memory_format == layout.PRESERVE or layout.format_of(x) == memory_format
    if dtype == x.dtype and kept and not copy:
        return x
    return convert(x, dtype, memory_format)


def _wanted(x: Array, arguments: tuple[Any, ...]) -> tuple[AnyDType, tuple[Any, ...]]:
    """The element type, and the arguments after those that say it."""
    first = arguments[0] if arguments else None
    if is_array(first):
        return first.dtype, arguments[1:]
    if len(arguments) == 7:  # dtype, layout, device, pin_memory
        return dtype_of(first, x.dtype), arguments[4:]
    if isinstance(first, bool) or not arguments:
        return x.dtype, arguments
    if isinstance(first, str) or (first is None and len(arguments) in (4, 5)):  # a device, then a dtype
        return dtype_of(arguments[1] if len(arguments) > 1 else None, x.dtype), arguments[2:]
    return dtype_of(first, x.dtype), arguments[1:]


def type_as(x: Array, other: Array) -> Array:
    return x if x.dtype == other.dtype else convert(x, other.dtype)


# -- into existing memory ------------------------------------------------------


def copy_(x: Array, source: Any, non_blocking: bool = False) -> Array:
    check_writable(x)
    if source is x:  # it was made here
        return x
    array: Array = source if is_array(source) else element_of(source, x.dtype)
    if array.ndim > x.ndim:
        raise Error("IRC421", f"a tensor of shape {list(array.shape)} does not fit into one of {list(x.shape)}")
    try:
        np.copyto(x, _real(array, x.dtype), casting="unsafe")
    except ValueError:
        raise Error("IRC421", f"a tensor of shape {list(array.shape)} does not fit into {list(x.shape)}") from None
    return x


def copy(x: Any, *arguments: Any) -> Any:
    """For a tensor, a second one's contents in memory like the first's; for a container, a copy."""
    if not is_array(x):
        return copy_container(x)
    return copy_(layout.empty(x.shape, x.dtype, (x,)), *arguments)


@kernel("irc::overwrite")
def overwritten(node: Node) -> Kernel:
    """As ``irc::overwrite_``, in memory of its own in which elements lie as in the first input."""
    write = overwriting(node)
    return two(lambda x, source: write(layout.empty_at(x), source))


@kernel("irc::overwrite_")
def overwriting(node: Node) -> Kernel:
    """The second input written into the first, as far as results in place may be converted, or not at all."""
    if not node.attributes.get("same_type"):
        return overwrite

    def write(x: Array, source: Array) -> Array:
        check_same_type(x, source)
        return overwrite(x, source)

    return write


def fill_(x: Array, value: Any) -> Array:
    check_writable(x, one_value=True)
    number = _real(value, x.dtype) if is_array(value) else element_of(value, x.dtype)
    if number.ndim:
        raise Error("IRC421", f"a tensor of shape {list(number.shape)} is not a single value to fill with")
    np.copyto(x, number, casting="unsafe")
    return x


# -- joining -------------------------------------------------------------------


def _joined_type(tensors: Sequence[Array]) -> AnyDType:
    """Joining goes by element types alone: a tensor without dimensions counts as much as any other."""
    if not tensors:
        raise Error("IRC421", "expected at least one tensor to join")
    dtype = tensors[0].dtype
    for x in tensors[1:]:
        dtype = promote(dtype, x.dtype)
    return dtype


def concatenate(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Tensors one after the other along a dimension."""
    dtype = _joined_type(tensors)
    parts = [x for x in tensors if x.shape != (0,)]  # torch skips empty vectors
    if not parts:
        return np.empty(0, dtype)
    axis = axis_in(dim, parts[0].ndim)
    rests = {(*x.shape[:axis], *x.shape[axis + 1 :]) for x in parts if x.ndim == parts[0].ndim}
    if len(rests) > 1 or any(x.ndim != parts[0].ndim for x in parts):
        raise Error("IRC421", f"tensors of shapes {shapes_of(*parts[:8])} cannot be joined along dimension {dim}")
    shape = [*parts[0].shape]
    shape[axis] = sum(x.shape[axis] for x in parts)
    memory_format = layout.format_of(parts[0])
    if any(layout.format_of(x) != memory_format for x in parts):
        memory_format = layout.CONTIGUOUS
    out = layout.empty_in_format(shape, dtype, memory_format)
    np.concatenate(parts, axis, out=out, casting="unsafe")
    return out


def stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Tensors of one shape along a new dimension."""
    _joined_type(tensors)
    shape = tensors[0].shape
    axis = axis_in(dim, len(shape) + 1)
    if any(x.shape != shape for x in tensors):
        raise Error("IRC421", f"tensors of shapes {shapes_of(*tensors[:8])} cannot be stacked: they must be the same")
    joined = np.empty(check_size((*shape[:axis], len(tensors), *shape[axis:]), tensors[0].dtype), _joined_type(tensors))
    for i, x in enumerate(tensors):
        np.copyto(joined[(slice(None),) * axis + (i, ...)], x, casting="unsafe")
    return joined


def column_stack(tensors: Sequence[Array]) -> Array:
    return concatenate([x.reshape(-1, 1) if x.ndim < 2 else x for x in tensors], 1)


def hstack(tensors: Sequence[Array]) -> Array:
    raised = at_least([*tensors], 1)
    return concatenate(raised, 0 if raised[:1] and raised[0].ndim == 1 else 1)


# -- repetition and order ------------------------------------------------------


def repeat(x: Array, repeats: Sequence[int]) -> Array:
    if len(repeats) < x.ndim:
        raise Error("IRC421", f"{len(repeats)} repeats for {x.ndim} dimensions")
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    check_size([n * r for n, r in zip(shape, repeats, strict=True)], x.dtype)
    return np.array(np.tile(x, tuple(repeats)), order="C")


def tile(x: Array, dims: Sequence[int]) -> Array:
    return repeat(x, [1] * (x.ndim - len(dims)) + list(dims))


def repeat_interleave(x: Array, *arguments: Any) -> Array:
    """Each element ``repeats`` times; of one tensor alone, each index as often as it says."""
    if len(arguments) < 2 and not any(map(is_array, arguments)):
        check_size((int(x.sum()),), INT64)
        return np.repeat(counting(x.size), x)
    repeats: Any
    repeats, dim = [*arguments, None][:2]
    source: Array = x.reshape(-1) if dim is None else x
    axis = 0 if dim is None else axis_in(dim, x.ndim)
    if is_array(repeats) and repeats.size not in (1, source.shape[axis]):
        raise Error("IRC421", f"{repeats.size} repeats for {source.shape[axis]} positions")
    total = int(np.sum(np.broadcast_to(repeats, source.shape[axis]))) if source.ndim else 0
    check_size((*source.shape[:axis], total, *source.shape[axis + 1 :]), x.dtype)
    return np.asarray(np.repeat(source, repeats, axis), order="C")


def flip(x: Array, dims: Any) -> Array:
    axes = axes_in(sizes_of(dims), max(x.ndim, 1))
    return placed(np.flip(x, axes) if x.ndim else x, layout.empty(x.shape, x.dtype, (x,)))


def _turned(x: Array, dim: int) -> Array:
    if x.ndim <= dim:
        raise Error("IRC421", f"there is no dimension {dim} to flip in the shape {list(x.shape)}")
    return flip(x, (dim,))


def roll(x: Array, shifts: Any, dims: Any = ()) -> Array:
    by, along = sizes_of(shifts), sizes_of(dims)
    if not along:
        if len(by) != 1:
            raise Error("IRC420", f"{len(by)} shifts need as many dimensions")
        flat: Array = np.roll(x.reshape(-1), by[0])
        return flat.reshape(x.shape)
    if len(by) != len(along):
        raise Error("IRC420", f"{len(by)} shifts for {len(along)} dimensions")
    for shift, dim in zip(by, along):
        axis = axis_in(dim, x.ndim)
        middle = -shift % max(x.shape[axis], 1)
        x = concatenate([part(x, axis, middle, None), part(x, axis, 0, middle)], axis)
    return x


def rot90(x: Array, k: int = 1, dims: Sequence[int] = (0, 1)) -> Array:
    first, second = axes_in(dims, x.ndim)
    if k % 4 == 0:
        return np.array(x, order="C")
    if k % 2 == 0:
        return flip(x, (first, second))
    return np.array(np.rot90(x, k, (first, second)))


def diff(x: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """Neighbours' differences along a dimension, taken ``n`` times."""
    if not x.ndim or n < 0:
        raise Error("IRC421", f"no differences of order {n} of a tensor of shape {list(x.shape)}")
    axis = axis_in(dim, x.ndim)
    if n == 0:
        return layout.copy(x)
    joined = [v for v in (prepend, x, append) if v is not None]
    x = concatenate(joined, axis) if len(joined) > 1 else x
    subtract = np.not_equal if x.dtype.kind == "b" else np.subtract
    for _ in range(min(n, x.shape[axis])):
        later, earlier = part(x, axis, 1, None), part(x, axis, 0, -1)
        x = subtract(later, earlier, out=layout.empty(later.shape, x.dtype, (later, earlier)))
    return x


# -- triangles and diagonals ---------------------------------------------------


def _triangle(x: Array, diagonal: int = 0, *, kept: Callable[[Any, Any], Any]) -> Array:
    if x.ndim < 2:
        raise Error("IRC421", f"a triangle needs at least 2 dimensions; the shape is {list(x.shape)}")
    rows, columns = x.shape[-2:]
    offset = counting(columns) - counting(rows)[:, None]
    return np.ascontiguousarray(np.where(kept(offset, diagonal), x, x.dtype.type(0)))


def diag(x: Array, diagonal: int = 0) -> Array:
    """A vector as the diagonal of a matrix, or a copy of a matrix's diagonal."""
    if x.ndim > 2 or not x.ndim:
        raise Error("IRC421", f"diag needs 1 or 2 dimensions; the shape is {list(x.shape)}")
    if x.ndim == 1:
        n = x.size + abs(diagonal)
        check_size((n, n), x.dtype)
    return np.array(np.diag(x, diagonal))


def _shuffle(shuffle: Callable[..., Array], x: Array, factor: int) -> Array:
    """Channels become squares of pixels (Shi et al., 2016), or the reverse."""
    if x.ndim < 3 or factor < 1:
        raise Error("IRC421", f"squares of {factor} × {factor} do not fit an image of shape {list(x.shape)}")
    found = shuffle(x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:]), blocksize=factor, mode="CRD")
    return _rearranged(x, found, (*x.shape[:-3], *found.shape[1:]))


def channel_shuffle(x: Array, groups: int) -> Array:
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise Error("IRC421", f"{groups} groups do not divide the channels of the shape {list(x.shape)}")
    cells = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return _rearranged(x, cells.swapaxes(1, 2), x.shape)


def _rearranged(x: Array, elements: Array, shape: Sequence[int]) -> Array:
    """The elements of ``x`` in another order: new memory, in its memory format."""
    return layout.in_format(fresh(elements, x).reshape(tuple(shape)), layout.format_of(x))


table(
    zero_=one(lambda x: fill_(x, 0)),
    fill=two(lambda x, value: fill_(layout.empty(x.shape, x.dtype, (x,)), value)),
    cat=concatenate,
    vstack=one(lambda tensors: concatenate(at_least([*tensors], 2), 0)),
    dstack=one(lambda tensors: concatenate(at_least([*tensors], 3), 2)),
    fliplr=one(lambda x: _turned(x, 1)),
    flipud=one(lambda x: _turned(x, 0)),
    tril=bound(_triangle, kept=operator.le),
    triu=bound(_triangle, kept=operator.ge),
    pixel_shuffle=partial(_shuffle, depth_to_space),
    pixel_unshuffle=partial(_shuffle, space_to_depth),
)
