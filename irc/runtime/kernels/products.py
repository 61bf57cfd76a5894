"""Products of matrices by that function of BLAS which takes the least, large ones in parts on several threads."""

from __future__ import annotations

import numpy as np

from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.support import Array

FEW_ROWS = 3
"""Up to so many rows, each is multiplied by itself: gemm, for several rows, first packs all of the other matrix, which
gemv does not. Measured with OpenBLAS 0.3.31 on a processor with AVX2, matrices of 16 KiB to 16 MiB: two or three rows
take 0.3 to 0.8 of gemm's time, four 0.5 to 1.2, and on one thread, beyond the cache, up to twice as long."""

_ENOUGH = 1 << 12
"""Elements of the other matrix; with fewer, nothing is gained."""

_DEEP = 8
"""Numbers in a row; of less, gemm packs the matrix in no time."""

LARGE = 1 << 25
"""Multiplications from which a product is made in parts, whatever the number of threads: its digits depend on how it is
cut. Of 0.6 ms on one thread, two threads save 0.2; of half of that, waking a thread takes all that it saves."""

_PARTS = 4
"""Into so many parts a product is cut at least: 4 in turn take 1.05 times as long as one, 8 take 1.1."""

_LARGEST_PART = 1 << 26
"""Multiplications in a part at the most."""

_UNIT = 16
"""Rows, or columns, that BLAS works on at a time, or a multiple of that: parts are of whole units."""


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.matmul(a, b, out)``, whose last digits may differ."""
    if a.ndim > 1 < b.ndim and a.size * b.shape[-1] >= LARGE and a.dtype == b.dtype and a.dtype.char in "fd":
        if out is None:
            shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            out = np.empty((*shape, a.shape[-2], b.shape[-1]), a.dtype)
        return _in_parts(a, b, out)
    return _whole(a, b, out)


def _in_parts(a: Array, b: Array, out: Array) -> Array:
    """``np.matmul(a, b, out)``, by parts of the longer side of the matrices, on the threads of the run."""
    rows, columns = a.shape[-2], b.shape[-1]
    parts = max(_PARTS, a.size * columns // _LARGEST_PART)
    units = -(-max(rows, columns) // _UNIT)
    step = -(-units // parts) * _UNIT

    def part(number: int) -> None:
        some = slice(number * step, (number + 1) * step)
        if rows >= columns:
            _whole(a[..., some, :], b, out[..., some, :])
        else:
            _whole(a, b[..., some], out[..., some])

    CURRENT.scope.share(-(-max(rows, columns) // step), part)
    return out


def _whole(a: Array, b: Array, out: Array | None) -> Array:
    if not _has_few_rows(a, b):
        return np.matmul(a, b, out=out)
    matrices = b if b.ndim == 2 else b[..., None, :, :]
    rows = np.matmul(a[..., None, :], matrices, out=None if out is None else out[..., None, :])
    return rows[..., 0, :] if out is None else out


def _has_few_rows(a: Array, b: Array) -> bool:
    return (
        a.ndim > 1 < b.ndim
        and 1 < a.shape[-2] <= FEW_ROWS
        and b.shape[-2] >= _DEEP
        and b.shape[-2] * b.shape[-1] >= _ENOUGH
        and a.dtype == b.dtype
        and a.dtype.char in "fd"
    )
