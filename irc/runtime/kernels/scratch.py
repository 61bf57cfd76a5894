"""Work memory for kernels, kept from run to run.

Fresh memory costs page faults and cold caches; columns and padded images need
it at every convolution. Each thread has its own, so kernels may run in several
threads at once. A run that begins in the middle of another one on the same
thread, in a signal handler or a finalizer, gets others.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy as np

from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.support import AnyDType, Array, check_size

KEEP_BYTES = 32 << 20
"""Larger buffers are not kept."""


class _Local(threading.local):
    def __init__(self) -> None:
        self.buffers: dict[str, Array] = {}
        self.idle: dict[str, Array] | None = {}  # those of a run, while there is none


_LOCAL = _Local()


class OwnScratch:
    """While this is open, the buffers are those of one run on this thread; to be held around it."""

    __slots__ = ("_around",)

    def __enter__(self) -> None:
        local = _LOCAL
        self._around, idle, local.idle = local.buffers, local.idle, None
        local.buffers = {} if idle is None else idle

    def __exit__(self, *_: object) -> None:
        local = _LOCAL
        local.idle, local.buffers = local.buffers, self._around


def scratch(purpose: str, shape: Sequence[int], dtype: AnyDType) -> Array:
    """An uninitialised C-order array, valid until this thread asks for the same ``purpose`` again.

    Must not become part of a result.
    """
    size = math.prod(shape) * dtype.itemsize
    buffer = _LOCAL.buffers.get(purpose)
    if buffer is None or buffer.size < size or CURRENT.guard is not None:
        check_size(shape, dtype)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        if size <= KEEP_BYTES:
            _LOCAL.buffers[purpose] = buffer
    return np.ndarray(shape, dtype, buffer)
