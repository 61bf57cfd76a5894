"""Work memory for kernels, kept from run to run.

Fresh memory costs page faults and cold caches; columns and padded images need
it at every convolution. Each thread has its own, so kernels may run in several
threads at once. A run that begins in the middle of another one on the same
thread gets others (`irc.runtime.bounds.in_own_scope`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.support import AnyDType, Array, check_size

KEEP_BYTES = 32 << 20
"""Larger buffers are not kept."""


def scratch(purpose: str, shape: Sequence[int], dtype: AnyDType) -> Array:
    """An uninitialised C-order array, valid until this thread asks for the same ``purpose`` again.

    Must not become part of a result.
    """
    size = math.prod(shape) * dtype.itemsize
    scope = CURRENT.scope
    buffer = scope.scratch.get(purpose)
    if buffer is None or buffer.size < size or scope.guard is not None:
        check_size(shape, dtype)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        if size <= KEEP_BYTES:
            scope.scratch[purpose] = buffer
    return np.ndarray(shape, dtype, buffer)
