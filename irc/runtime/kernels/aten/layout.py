"""Memory layouts: in which order a result's elements lie in memory, as torch chooses it.

It decides whether a later ``view`` is possible and whether a ``reshape``
copies, so results must lie as torch's do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir.objects import address
from irc.runtime.kernels.support import AnyDType, Array, check_size, placed
from irc.runtime.values import is_array

CONTIGUOUS, PRESERVE, CHANNELS_LAST, CHANNELS_LAST_3D = range(4)
"""torch's numbers of memory formats (c10/core/MemoryFormat.h)."""

_AXES = {CHANNELS_LAST: (0, 2, 3, 1), CHANNELS_LAST_3D: (0, 2, 3, 4, 1)}
"""By format: axes from the slowest to the fastest."""


def empty(shape: Sequence[int], dtype: AnyDType, operands: Sequence[Any] = ()) -> Array:
    """A new array for the pointwise result of ``operands``, in the layout that torch gives it.

    Source: ``TensorIteratorBase::reorder_dimensions``, aten/src/ATen/TensorIterator.cpp.
    """
    sizes = check_size(shape, dtype)
    strided = [x for x in operands if is_array(x) and x.ndim and not x.flags.c_contiguous]
    if not strided:
        return np.empty(sizes, dtype)
    return empty_in_order(sizes, dtype, _order(sizes, [x for x in operands if is_array(x) and x.ndim]))


def empty_in_order(shape: Sequence[int], dtype: AnyDType, order: Sequence[int]) -> Array:
    """A new array whose axes lie in ``order``, from the slowest to the fastest."""
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return np.empty([shape[axis] for axis in order], dtype).transpose(back)


def _order(shape: Sequence[int], operands: Sequence[Array]) -> list[int]:
    """Axes from the slowest to the fastest. Of two axes, the first operand that has both tells them apart."""
    steps = [_steps(x, shape) for x in operands]
    order = list(range(len(shape)))[::-1]  # from the fastest
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            comparison = _compare(order[j], order[at], steps, shape)
            if comparison > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif comparison < 0:
                break
    return order[::-1]


def _steps(x: Array, shape: Sequence[int]) -> list[int]:
    """Strides along the axes of ``shape``; 0 where ``x`` is broadcast."""
    extra = len(shape) - x.ndim
    own = zip(x.strides, x.shape, shape[extra:], strict=True)
    return [0] * extra + [0 if n == 1 and wanted != 1 else s for s, n, wanted in own]


def _compare(a: int, b: int, steps: Sequence[Sequence[int]], shape: Sequence[int]) -> int:
    """1 if axis ``a`` is slower than ``b``, -1 if it is faster, 0 if nothing tells."""
    for strides in steps:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return 1 if strides[a] > strides[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0


def empty_at(x: Array) -> Array:
    """A new array with ``x``'s shape and strides, gaps included, but without overlaps."""
    extent = x.itemsize
    for stride, size in sorted(zip(x.strides, x.shape, strict=True)):
        if size > 1:
            if stride < extent:
                return empty(x.shape, x.dtype, (x,))
            extent += stride * (size - 1)
    if not x.size or extent == x.nbytes:
        return empty(x.shape, x.dtype, (x,))
    memory = np.empty(check_size((extent // x.itemsize,), x.dtype), x.dtype)
    return np.lib.stride_tricks.as_strided(memory, x.shape, x.strides)


def copy(x: Array, dtype: AnyDType | None = None) -> Array:
    """A copy that lies as ``x`` does, without the gaps and repetitions."""
    out = empty(x.shape, x.dtype if dtype is None else dtype, (x,))
    np.copyto(out, x, casting="unsafe")
    return out


def like(x: Array, source: Array) -> Array:
    """``x``, in ``source``'s shape and its pointwise result's layout; copied only if needed."""
    if source.flags.c_contiguous and x.flags.c_contiguous:
        return x
    out = empty(x.shape, x.dtype, (source,))
    if out.strides == x.strides:
        return x
    return placed(x, out)


# -- memory formats ------------------------------------------------------------


def format_of(x: Array) -> int:
    """The format that operators on images keep: channels last if ``x`` lies so, else contiguous."""
    if x.flags.c_contiguous and (x.ndim < 2 or x.shape[1] != 1):
        return CONTIGUOUS
    for number, axes in _AXES.items():
        if x.ndim == len(axes) and _lies_in(x, axes):
            return number
    return CONTIGUOUS


def _lies_in(x: Array, axes: Sequence[int]) -> bool:
    """Whether strides grow from the last of ``axes`` to the first. Source: is_channels_last_strides, c10."""
    if x.strides[1] == 0:
        return False
    least = 0
    for axis in reversed(axes):
        if x.shape[axis] == 0 or x.strides[axis] < least:
            return False
        if axis == 0 and least == x.strides[1]:
            return False  # N111 tensors and (N, 1, H, W) slices are ambiguous; the usual order wins
        least = x.strides[axis] * (x.shape[axis] if x.shape[axis] > 1 else 1)
    return True


def is_contiguous(x: Array, memory_format: int = CONTIGUOUS) -> bool:
    """Whether the elements of ``x`` lie in ``memory_format`` without gaps."""
    axes = _AXES.get(memory_format)
    if axes is None:
        return x.flags.c_contiguous
    return x.ndim == len(axes) and x.transpose(axes).flags.c_contiguous


def in_format(x: Array, memory_format: int) -> Array:
    """``x`` in ``memory_format``: itself if it lies so, else a copy.

    Raises:
        Error: IRC424 if tensors of this rank have no such format.
    """
    if is_contiguous(x, memory_format):
        return x
    return placed(x, empty_in_format(x.shape, x.dtype, memory_format))


def empty_in_format(shape: Sequence[int], dtype: AnyDType, memory_format: int) -> Array:
    """A new array in ``memory_format``."""
    sizes = check_size(shape, dtype)
    axes = _AXES.get(memory_format)
    if axes is None:
        return np.empty(sizes, dtype)
    if len(axes) != len(sizes):
        raise Error("IRC424", f"channels last is not a memory format for the shape {list(sizes)}")
    return empty_in_order(sizes, dtype, axes)


def empty_like(x: Array, dtype: AnyDType, memory_format: int | None = None) -> Array:
    """A new array of the shape of ``x``, in ``memory_format`` or, without one, laid out as ``x``."""
    if memory_format is None or memory_format == PRESERVE:
        return empty(x.shape, dtype, (x,))
    return empty_in_format(x.shape, dtype, memory_format)


# -- storage -------------------------------------------------------------------


def storage_of(x: Array) -> Array:
    """The array that owns the memory that ``x`` shows."""
    owner: Array = x
    base: Any = x.base
    while base is not None:  # not only arrays stand in between: NumPy's as_strided puts an object of its own there
        owner = base if is_array(base) else owner
        base = getattr(base, "base", None)
    return owner


def offset_of(x: Array) -> int:
    """How many elements lie between the beginning of the storage and the first of ``x``."""
    return (address(x) - address(storage_of(x))) // x.itemsize


def strided(x: Array, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Array:
    """A view of the storage of ``x``: strides and offset count elements.

    Raises:
        Error: IRC424 if it would reach beyond the storage.
    """
    owner = storage_of(x)
    first = offset_of(x) if offset is None else offset
    sizes = tuple(int(n) for n in shape)
    last = first + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if math.prod(sizes) else first
    if len(sizes) != len(strides) or min((*sizes, *strides, first)) < 0:
        raise Error("IRC424", f"there is no tensor of shape {list(shape)} with strides {list(strides)} from {offset}")
    if math.prod(sizes) and last * x.itemsize >= owner.nbytes:
        raise Error("IRC424", f"a view of {list(shape)} by {list(strides)} reaches beyond {owner.size} elements")
    steps = [s * x.itemsize for s in strides]
    if not math.prod(sizes):
        return np.empty(sizes, x.dtype)
    return np.lib.stride_tricks.as_strided(
        _flat(owner).view(x.dtype)[first:], sizes, steps, writeable=bool(x.flags.writeable)
    )


def copy_of_storage(x: Array) -> Array:
    """A tensor like ``x`` at its place in a copy of its storage; a mere copy if ``x`` is expanded."""
    if any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape)):
        return copy(x)
    storage = _flat(storage_of(x)).view(x.dtype).copy()
    return np.lib.stride_tricks.as_strided(storage[offset_of(x) :], x.shape, x.strides)


def _flat(owner: Array) -> Array:
    """All elements of an array that owns its memory, in the order in which they lie there."""
    slowest_first = sorted(range(owner.ndim), key=lambda axis: -owner.strides[axis])
    return owner.transpose(slowest_first).reshape(-1)


def paired(x: Array) -> Array:
    """A view of complex numbers as pairs of real ones, in a new last dimension."""
    half = np.dtype(f"f{x.itemsize // 2}")
    steps = (*x.strides, half.itemsize)
    return np.lib.stride_tricks.as_strided(x.real, (*x.shape, 2), steps, writeable=bool(x.flags.writeable))
