"""Products of vectors, Kronecker's, diagonals, and what NumPy's linear algebra computes of square matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.aten.element_types import result_type
from irc.runtime.kernels.aten.matmul import product
from irc.runtime.kernels.aten.pointwise import of_two
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import diagonal
from irc.runtime.kernels.support import Array, axis_in, check_size

_times = of_two(np.multiply)


def _inner(x: Array, y: Array) -> Array:
    """Over the last dimension of both, of which none is summed with another."""
    if not x.ndim or not y.ndim:
        return pointwise.run(_times(x, y))
    if x.shape[-1] != y.shape[-1]:
        raise Error("IRC421", f"inner needs equal last sizes; the shapes are {list(x.shape)} and {list(y.shape)}")
    columns = y.reshape(-1, y.shape[-1]).T if y.size else np.empty((y.shape[-1], y.size), y.dtype)
    rows = x.reshape(-1, x.shape[-1]) if x.size else np.empty((x.size, x.shape[-1]), x.dtype)
    return product(rows, columns).reshape((*x.shape[:-1], *y.shape[:-1]))


def _vector_product(x: Array, y: Array) -> Array:
    if x.ndim != 1 or y.ndim != 1:
        raise Error("IRC421", f"vdot is of vectors; the shapes are {list(x.shape)} and {list(y.shape)}")
    return product(np.conjugate(x), y)


def _kronecker(x: Array, y: Array) -> Array:
    """Each element of ``x`` times all of ``y``."""
    rank = max(x.ndim, y.ndim)
    a, b = ((1,) * (rank - v.ndim) + v.shape for v in (x, y))
    check_size([m * n for m, n in zip(a, b)], result_type(x, y))
    spread = [n for size in a for n in (size, 1)], [n for size in b for n in (1, size)]
    return pointwise.run(_times(x.reshape(spread[0]), y.reshape(spread[1]))).reshape([m * n for m, n in zip(a, b)])


@aten("diag_embed")
def diag_embed(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """The last dimension as the diagonal of matrices in two new ones."""
    if not x.ndim:
        raise Error("IRC421", "diag_embed needs at least one dimension")
    low, high = sorted(axis_in(dim, x.ndim + 1) for dim in (dim1, dim2))
    if low == high:
        raise Error("IRC420", f"a matrix needs two dimensions; {dim1} and {dim2} are one")
    size = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    shape.insert(low, size)
    shape.insert(high, size)
    out = np.zeros(check_size(shape, x.dtype), x.dtype)
    np.copyto(diagonal(out, offset, dim1, dim2), x)
    return out


def _square(x: Array, what: str) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise Error("IRC421", f"{what} is of square matrices; the shape is {list(x.shape)}")
    if x.dtype.char not in "fdFD":
        raise Error("IRC423", f"{what} is of float32 or float64, not of {x.dtype.name}; convert it first")
    return x


def _column_major(x: Array) -> Array:
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2)


def _solved(compute: Callable[[], Any]) -> Array:
    try:
        return np.asarray(compute())
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None


def _inverse(x: Array) -> Array:
    return _column_major(_solved(lambda: np.linalg.inv(_square(x, "an inverse"))))


def _determinant(x: Array) -> Array:
    return np.asarray(np.linalg.det(_square(x, "a determinant")))


def _cholesky(x: Array, upper: bool = False) -> Array:
    """Of the lower triangle."""
    lower = _solved(lambda: np.linalg.cholesky(_square(x, "Cholesky's decomposition")))
    return _column_major(np.conjugate(np.swapaxes(lower, -1, -2)) if upper else lower)


table(
    {
        "inner": _inner,
        "vdot": _vector_product,
        "kron": _kronecker,
        "inverse": _inverse,
        "linalg_inv": _inverse,
        "det": _determinant,
        "linalg_det": _determinant,
        "cholesky": _cholesky,
        "linalg_cholesky": _cholesky,
    }
)
