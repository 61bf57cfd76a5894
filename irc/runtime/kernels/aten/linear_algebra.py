"""Products of vectors, Kronecker's, diagonals, and what NumPy's linear algebra computes of square matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.aten.element_types import (
    FLOAT32,
    dtype_of,
    is_integral,
    promote,
    real_type,
    result_type,
    tensor,
)
from irc.runtime.kernels.aten.matmul import product
from irc.runtime.kernels.aten.pointwise import Computation, of_two
from irc.runtime.kernels.aten.reductions import vector_norm
from irc.runtime.kernels.aten.registering import aten, table, two
from irc.runtime.kernels.aten.views import diagonal
from irc.runtime.kernels.support import Array, axes_in, axis_in, check_size, in_rows, is_half

_times = of_two(np.multiply)


def _inner(x: Array, y: Array) -> Array:
    """Products summed over the last dimension of both operands; other dimensions are not summed."""
    if not x.ndim or not y.ndim:
        return pointwise.run(_times(x, y))
    if x.shape[-1] != y.shape[-1]:
        raise Error("IRC421", f"inner needs equal last sizes; the shapes are {list(x.shape)} and {list(y.shape)}")
    return product(in_rows(x), in_rows(y).T).reshape((*x.shape[:-1], *y.shape[:-1]))


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


def _check_square(x: Array, what: str) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise Error("IRC421", f"{what} is of square matrices; the shape is {list(x.shape)}")


def square(x: Array, what: str) -> Array:
    """``x``; Error for ``what`` if it does not hold square matrices of floats."""
    _check_square(x, what)
    if x.dtype.char not in "fdFD":
        raise Error("IRC423", f"{what} is of float32 or float64, not of {x.dtype.name}; convert it first")
    return x


def column_major(x: Array) -> Array:
    """Matrices whose columns lie one after the other."""
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2)


def solved(compute: Callable[[], Any]) -> Array:
    """The result of ``compute``; IRC424 if NumPy reports that there is none."""
    try:
        return np.asarray(compute())
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None


def inverse(x: Array) -> Array:
    return column_major(solved(lambda: np.linalg.inv(square(x, "an inverse"))))


def _determinant(x: Array) -> Array:
    return np.asarray(np.linalg.det(square(x, "a determinant")))


def cholesky(x: Array, upper: bool = False) -> Array:
    """Of the lower triangle."""
    lower = solved(lambda: np.linalg.cholesky(square(x, "Cholesky's decomposition")))
    return column_major(np.conjugate(np.swapaxes(lower, -1, -2)) if upper else lower)


table(
    {
        "inner": _inner,
        "vdot": _vector_product,
        "kron": _kronecker,
        "linalg_inv": inverse,
        "linalg_det": _determinant,
        "cholesky": cholesky,
        "linalg_cholesky": cholesky,
    }
)


# -- decompositions and what follows from them -----------------------------------


def matrices(x: Array, what: str) -> Array:
    """As `square`, of matrices of any size."""
    if x.ndim < 2:
        raise Error("IRC421", f"{what} is of matrices; the shape is {list(x.shape)}")
    if x.dtype.char not in "fdFD":
        raise Error("IRC423", f"{what} is of float32 or float64, not of {x.dtype.name}; convert it first")
    return x


def solve(a: Array, b: Array, left: bool = True) -> Array:
    """``x`` in ``a x = b``, or in ``x a = b``; b holds matrices, or vectors if its shape is that of rows of ``a``."""
    square(a, "a system of equations")
    if a.dtype != b.dtype:
        raise Error("IRC423", f"a system of equations of {a.dtype.name} and {b.dtype.name}: convert one")
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    columns = b[..., None] if is_vector else b
    if not left and is_vector:
        raise Error("IRC421", "vectors are solved for from the left only")
    if left:
        return _in_columns(solved(lambda: np.linalg.solve(a, columns)), is_vector)
    turned = solved(lambda: np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(columns, -1, -2)))
    return np.ascontiguousarray(np.swapaxes(turned, -1, -2))


def _in_columns(x: Array, is_vector: bool) -> Array:
    found = x[..., 0] if is_vector else x
    return column_major(found) if found.ndim > 1 else np.ascontiguousarray(found)


def _singular(x: Array, full_matrices: bool = True, driver: str | None = None) -> tuple[Array, Array, Array]:
    matrices(x, "a singular value decomposition")
    if full_matrices:
        check_size((*x.shape[:-2], *[max(x.shape[-2:])] * 2), x.dtype)
    try:
        u, s, vh = np.linalg.svd(x, full_matrices)
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None
    return column_major(u), s, column_major(vh)


def _singular_values(x: Array, driver: str | None = None) -> Array:
    return solved(lambda: np.linalg.svd(matrices(x, "a singular value"), compute_uv=False))


def _symmetric(x: Array, uplo: str = "L") -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors by the lower or upper triangle."""
    if uplo not in ("L", "U", "l", "u"):
        raise Error("IRC424", f"UPLO is {uplo!r}; it must be 'L' or 'U'")
    square(x, "an eigenvalue decomposition")
    try:
        values, vectors = np.linalg.eigh(x, "L" if uplo in "Ll" else "U")
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None
    return values, column_major(vectors)


def _sign_and_log(x: Array) -> tuple[Array, Array]:
    sign, log = np.linalg.slogdet(square(x, "a determinant"))
    return np.asarray(sign), np.asarray(log)


def _log_of_determinant(x: Array) -> Array:
    sign, log = _sign_and_log(x)
    if x.dtype.kind == "c":
        return np.asarray(log + np.log(sign))
    return np.where(sign < 0, x.dtype.type(np.nan), log)


def _matrix_power(x: Array, n: int) -> Array:
    what = "a power of a matrix"
    if is_half(x.dtype) and n >= 0:
        return _matrix_power(x.astype(FLOAT32), n).astype(x.dtype)
    if n < 0 or x.dtype.kind not in "iu":
        square(x, what)
    _check_square(x, what)
    return np.array(solved(lambda: np.linalg.matrix_power(x, n)), order="C")


_MATRIX_NORMS = {"fro": "fro", "nuc": "nuc", 1: 1, -1: -1, 2: 2, -2: -2, np.inf: np.inf, -np.inf: -np.inf}


def _matrix_norm(
    x: Array, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, dtype: int | None = None
) -> Array:
    element = dtype_of(dtype, x.dtype)
    if is_integral(x.dtype):
        raise Error("IRC423", f"a norm of matrices is of floats, not of {x.dtype.name}; convert them first")
    if ord not in _MATRIX_NORMS:
        raise Error("IRC424", f"there is no norm {ord!r} of matrices")
    if not is_half(element) or ord in ("nuc", 2, -2):  # which take singular values
        matrices(x.astype(element, copy=False), "a norm of matrices")
    axes = axes_in(dim, x.ndim)
    if len(axes) != 2:
        raise Error("IRC421", f"a matrix has two dimensions; {list(dim)} are given")
    wide_x = x.astype(np.complex128 if element.kind == "c" else np.float64)
    found = solved(lambda: np.linalg.norm(wide_x, _MATRIX_NORMS[ord], axes, keepdim))  # type: ignore[arg-type]
    return np.ascontiguousarray(found).astype(real_type(element)).reshape(found.shape)


def _norm(x: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Array:
    """The norm of all elements, of vectors along one dimension, or of matrices in two."""
    axes = None if dim is None else list(dim)
    if axes is not None and len(axes) not in (1, 2):
        raise Error("IRC421", f"a norm is of one dimension or of two, not of {axes}")
    if ord is not None and axes is None and x.ndim not in (1, 2):
        raise Error("IRC421", f"a norm with ord={ord} is of vectors and matrices; the shape is {list(x.shape)}")
    if isinstance(ord, str) or (ord is not None and (x.ndim == 2 if axes is None else len(axes) == 2)):
        return _matrix_norm(x, ord, [-2, -1] if axes is None else axes, keepdim, dtype)
    return vector_norm(x, 2 if ord is None else ord, axes, keepdim, dtype)


def _plus_outer(x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * a b^T``."""
    if a.ndim != 1 or b.ndim != 1:
        raise Error("IRC421", f"an outer product is of vectors; the shapes are {list(a.shape)} and {list(b.shape)}")
    check_size((a.size, b.size), x.dtype)
    dtype = promote(x.dtype, result_type(a, b))  # a number that is added counts as the matrix that it becomes
    if is_integral(dtype) and any(isinstance(factor, float) for factor in (alpha, beta)):
        raise Error("IRC423", f"integers are multiplied by integers, not by {alpha} or {beta}; convert to floats first")

    def compute(u: Array, v: Array, w: Array, out: Array | None = None) -> Any:
        scaled = v * w * tensor(alpha, v.dtype)
        return np.add(u.dtype.type(0) if beta == 0 else u * tensor(beta, u.dtype), scaled, out=out, dtype=v.dtype)

    return pointwise.run(Computation(compute, (x, a[:, None], b), dtype))


def _block_diagonal(blocks: Sequence[Array]) -> Array:
    """Matrices along the diagonal of one; vectors are rows."""
    if any(x.ndim > 2 for x in blocks):
        raise Error("IRC421", "block_diag takes tensors of up to 2 dimensions")
    if not blocks:
        return np.empty((1, 0), np.float32)
    matrices = [x.reshape((1,) * (2 - x.ndim) + x.shape) for x in blocks]
    dtype = result_type(*blocks)
    out = np.zeros(check_size([sum(m.shape[i] for m in matrices) for i in (0, 1)], dtype), dtype)
    row = column = 0
    for m in matrices:
        out[row : row + m.shape[0], column : column + m.shape[1]] = m
        row, column = row + m.shape[0], column + m.shape[1]
    return out


def _matrix_diagonal(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    return diagonal(x, offset, dim1, dim2)


def _flat_on_diagonal(x: Array, offset: int = 0) -> Array:
    return diag_embed(np.ascontiguousarray(x).reshape(-1), offset)


table(
    {
        "linalg_solve": solve,
        "linalg_svd": _singular,
        "linalg_svdvals": _singular_values,
        "linalg_eigh": _symmetric,
        "linalg_eigvalsh": two(lambda x, uplo="L": _symmetric(x, uplo)[0]),
        "linalg_slogdet": _sign_and_log,
        "slogdet": _sign_and_log,
        "logdet": _log_of_determinant,
        "linalg_matrix_power": _matrix_power,
        "linalg_matrix_norm": _matrix_norm,
        "linalg_norm": _norm,
        "addr": _plus_outer,
        "block_diag": _block_diagonal,
        "diagflat": _flat_on_diagonal,
        "linalg_diagonal": _matrix_diagonal,
    }
)


def _orthogonal(x: Array, mode: str = "reduced") -> tuple[Array, Array]:
    if mode not in ("reduced", "complete", "r"):
        raise Error("IRC424", f"qr's mode is {mode!r}; it must be 'reduced', 'complete' or 'r'")
    matrices(x, "a QR decomposition")
    if mode == "complete":
        check_size((*x.shape[:-1], x.shape[-2]), x.dtype)
    q, r = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return np.empty(0, x.dtype) if mode == "r" else column_major(q), column_major(r)


table({"linalg_qr": _orthogonal})
