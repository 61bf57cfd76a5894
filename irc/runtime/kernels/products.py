"""Products of matrices by that function of BLAS which takes the least."""

from __future__ import annotations

import numpy as np

from irc.runtime.kernels.support import Array

FEW_ROWS = 3
"""Up to so many rows, each is multiplied by itself: gemm, for several rows, first packs all of the other matrix, which
gemv does not. Measured with OpenBLAS 0.3.31 on a processor with AVX2, matrices of 16 KiB to 16 MiB: two or three rows
take 0.3 to 0.8 of gemm's time, four 0.5 to 1.2, and on one thread, beyond the cache, up to twice as long."""

_ENOUGH = 1 << 12
"""Elements of the other matrix; with fewer, nothing is gained."""

_DEEP = 8
"""Numbers in a row; of less, gemm packs the matrix in no time."""


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """``np.matmul(a, b, out)``, whose last digits may differ."""
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
