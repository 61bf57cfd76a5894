"""Arrays in memory next to pages that may not be touched, so that a stray access ends the process.

Tests of native code take operands by `placed` and results by `fresh`; `tests.native.test_faults` runs these tests in
another process, in which those are such arrays.
"""

import ctypes
import mmap
import os
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
End = Literal["first", "last"]
END: Any = os.environ.get("IRC_GUARDED", "")
"""Which byte of arrays is next to such a page; "": arrays are plain."""

PAGE = mmap.PAGESIZE
_NONE, _READ, _WRITE = 0, 1, 2  # of mprotect

_mprotect: Any = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(x: Array, end: End, *, is_read_only: bool = False) -> Array:
    """A copy of ``x`` with its strides, whose first or last byte is next to a page that may not be touched.

    Bytes in gaps between elements are copied, too. An empty array begins in a page that may not be touched.
    """
    low, high = _bounds(x)
    size = high - low
    pages = -(-size // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    first = PAGE if end == "first" and size else (pages + 1) * PAGE - size
    ctypes.memmove(start + first, low, size)
    offset = first + x.ctypes.data - low if size else first
    made = np.ndarray(x.shape, x.dtype, memory, offset if size else PAGE, x.strides)
    _protect(start, PAGE, _NONE)
    _protect(start + (pages + 1) * PAGE, PAGE, _NONE)
    if is_read_only:
        made.flags.writeable = False
        if pages:
            _protect(start + PAGE, pages * PAGE, _READ)
    return made


def guarded_empty(shape: tuple[int, ...], dtype: np.dtype[Any], end: End) -> Array:
    """An array in C order for results, likewise, of bytes that are hardly results."""
    size = int(np.prod(shape)) * dtype.itemsize
    return guarded(np.full(size, 0xA5, np.uint8).view(dtype).reshape(shape), end)


def placed(x: Array) -> Array:
    """``x``, as an operand of native code."""
    return guarded(x, END, is_read_only=True) if END else x


def fresh(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array for results."""
    return guarded_empty(shape, np.dtype(dtype), END) if END else np.full(shape, 7, dtype)


def _bounds(x: Array) -> tuple[int, int]:
    """The addresses of the first byte of ``x`` and of the one behind the last."""
    if not x.size:
        return x.ctypes.data, x.ctypes.data
    return np.lib.array_utils.byte_bounds(x)


def _protect(address: int, size: int, access: int) -> None:
    if _mprotect(address, size, access):
        raise OSError(ctypes.get_errno(), "mprotect")
