"""How arrays lie in memory: layouts and their copies, aligned bytes, and who else refers to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ctypes import addressof, c_char
from itertools import accumulate
from operator import mul
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irc.errors import Error
from irc.ir.objects import is_dense
from irc.runtime.values import Array


def copy_as_it_lies(array: Array) -> Array:
    """A copy in which the same axes as in ``array``, and no others, follow each other without a gap.

    This decides whether flattening gives a view, through which a program then writes. Gaps are of one element, however
    large those of ``array`` are; steps of 0 and backward steps become gaps too, for each element has its own place.
    """
    if array.flags.forc or is_dense(array):
        return array.copy("K")
    strides = [0] * array.ndim
    # From the innermost axis out: `extent` is what the axes so far span in the copy, in elements; `step` is the stride
    # of the original's next axis, in bytes, if there is no gap. Axes of stride 0 repeat elements, and come last.
    extent, step = 1, array.itemsize
    axes = [i for i, size in enumerate(array.shape) if size > 1]
    for i in sorted(axes, key=lambda i: (not array.strides[i], abs(array.strides[i]), -i)):
        strides[i] = extent if array.strides[i] == step else extent + 1
        step = array.strides[i] * array.shape[i]
        extent = strides[i] * array.shape[i]
    memory = np.empty(extent, array.dtype)
    copy = as_strided(memory, array.shape, [n * array.itemsize for n in strides])
    copy[...] = array
    return copy


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of an array in C order, in bytes."""
    steps = tuple(accumulate(reversed(shape), mul, initial=itemsize))  # the last is the size of all elements
    return steps[-2::-1]


def lies_as_new(array: Array) -> bool:
    """Whether ``array`` has the strides of a new array: C order, also along axes of one element."""
    return array.strides == c_strides(array.shape, array.itemsize)


def overlaps_itself(array: Array) -> bool:
    """Whether two elements may lie in one place; False for sure, True for all layouts that are not simple."""
    extent = array.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape) if size > 1):
        if stride < extent:
            return array.size > 0
        extent += stride * (size - 1)
    return False


ANY, ANY_STRIDE = -1, -(1 << 63)
"""Stand for a size, and a stride, that differ from run to run."""


class ArrayType(NamedTuple):
    """The element type and the shape of an array; of arrays of several runs, sizes may be `ANY`."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @staticmethod
    def of(array: Array) -> ArrayType:
        """The type of ``array``."""
        return ArrayType(array.dtype, array.shape)

    @property
    def varies(self) -> bool:
        """Whether a size is `ANY`."""
        return ANY in self.shape

    @property
    def nbytes(self) -> int:
        """The bytes of all elements; no size is `ANY`."""
        return math.prod(self.shape) * self.dtype.itemsize


ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector registers."""


def aligned(count: int) -> int:
    """``count`` bytes, rounded up to a multiple of `ALIGNMENT`."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def aligned_bytes(count: int) -> Array:
    """``count`` bytes at a multiple of `ALIGNMENT`, with any contents; of 0 bytes, no memory.

    Raises:
        Error: IRC403 if there is not so much memory.
    """
    try:
        memory = np.empty(count + ALIGNMENT if count else 0, np.uint8)
    except MemoryError as error:
        raise Error("IRC403", f"out of memory: {error}") from None
    start = -address_of(memory) % ALIGNMENT
    return memory[start : start + count]


def address_of(memory: Array) -> int:
    """The address of writable contiguous ``memory``; 0 if empty. Five times faster than `ctypes.data`."""
    return addressof(c_char.from_buffer(memory.data)) if memory.size else 0


def is_alone(holder: Mapping[Any, Any] | Sequence[Any], key: Any) -> bool:
    """Whether only ``holder`` refers to its item at ``key``."""
    return getrefcount(holder[key]) <= _ONE


def is_shown_alone(view: Array) -> bool:
    """Whether ``view`` is the only view of the array that it is a view of."""
    return getrefcount(view.base) <= _ONE


_HOLDER = [object()]
_ONE = getrefcount(_HOLDER[0])
"""What Python counts for an object that one container, or view, refers to: versions differ in what asking adds."""
