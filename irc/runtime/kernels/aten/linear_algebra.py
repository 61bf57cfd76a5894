"""Linear algebra: products of matrices and vectors, solving, functions of matrices, factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.aten.promotion import promote
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.aten.element_types import (
    FLOAT32,
    INT64,
    dtype_of,
    is_integral,
    real_type,
    result_type,
    tensor,
    wide,
)
from irc.runtime.kernels.aten.pointwise import Computation, of_two
from irc.runtime.kernels.aten.reductions import vector_norm
from irc.runtime.kernels.aten.registering import one, table, two
from irc.runtime.kernels.aten.views import diagonal
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.numerics import widened
from irc.runtime.kernels.registry import bound
from irc.runtime.kernels.support import Array, axes_in, axis_in, check_size, common_shape, in_rows, is_half, shapes_of
from irc.runtime.values import is_array


def _checked(a: Array, b: Array, out_dtype: int | None = None, *, ranks: tuple[int, int]) -> Array:
    """A product of tensors of fixed ranks."""
    _check_ranks(a, b, *ranks)
    if out_dtype is None:
        return product(a, b)
    dtype = dtype_of(out_dtype, a.dtype)
    return product(a.astype(dtype), b.astype(dtype))


def _check_ranks(a: Array, b: Array, rank_a: int, rank_b: int) -> None:
    if a.ndim != rank_a or b.ndim != rank_b or a.shape[:-2] != b.shape[:-2]:
        alike = " and as many matrices" if rank_a == 3 else ""
        raise Error("IRC421", f"expected {rank_a} and {rank_b} dimensions{alike}, the shapes are {shapes_of(a, b)}")


def product(a: Array, b: Array) -> Array:
    """``a @ b``; both must have one element type."""
    if a.dtype != b.dtype:
        raise Error("IRC423", f"matrices of {a.dtype.name} and {b.dtype.name} cannot be multiplied; convert one")
    if not a.ndim or not b.ndim:
        raise Error("IRC421", f"both must have dimensions; the shapes are {list(a.shape)} and {list(b.shape)}")
    return np.asarray(matrix_product(a, b), order="C")


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``."""
    if bias is not None and is_half(x.dtype) and x.dtype == weight.dtype == bias.dtype:
        return linear(widened(x), widened(weight), widened(bias)).astype(x.dtype)
    found = product(x, weight.T)
    if bias is not None:
        found = np.add(found, bias.astype(found.dtype, copy=False), out=found if found.ndim else None)
    return np.asarray(found)


def _plus(x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; x broadcasts to the product; one element type for all three."""
    if not x.dtype == a.dtype == b.dtype:
        types = f"{x.dtype.name} and a product of {a.dtype.name} and {b.dtype.name}"
        raise Error("IRC423", f"{types} have no sum; convert them")
    dtype = wide(a.dtype)
    found = matrix_product(widened(a), widened(b).astype(dtype, copy=False))
    shape = found.shape
    if x.ndim > len(shape) or any(n not in (1, m) for n, m in zip(x.shape[::-1], shape[::-1])):
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} does not fit a product of shape {list(shape)}")
    if alpha != 1:
        found = found * tensor(alpha, dtype)
    if beta != 0:
        scaled = x.astype(dtype, copy=False)
        found = np.add(found, scaled if beta == 1 else scaled * tensor(beta, dtype))
    return np.asarray(found).astype(a.dtype, copy=False)


def _plus_of_type(x: Array, a: Array, b: Array, *arguments: Any, ranks: tuple[int, int]) -> Array:
    """``addmm(x, a, b, beta, alpha)`` or ``addmm(x, a, b, out_dtype, beta, alpha)``."""
    _check_ranks(a, b, *ranks)
    if len(arguments) == 3:
        dtype, arguments = dtype_of(arguments[0], a.dtype), arguments[1:]
        x, a, b = x.astype(dtype), a.astype(dtype), b.astype(dtype)
    return _plus(x, a, b, *arguments)


def addbmm(x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * sum(a @ b)``, over batches."""
    _check_ranks(a, b, 3, 3)
    joined = np.concatenate(list(a), 1) if len(a) else a.reshape(a.shape[1], 0)
    stacked = in_rows(b)
    return _plus(x, joined, stacked, beta, alpha)


def tensordot(a: Array, b: Array, dims_a: Sequence[int], dims_b: Sequence[int]) -> Array:
    """Products summed over pairs of axes; one of size 1 is repeated along the other, as in a broadcast."""
    if a.dtype != b.dtype:
        raise Error("IRC423", f"tensordot takes tensors of one element type, not {a.dtype.name} and {b.dtype.name}")
    x, y = a.astype(wide(a.dtype), copy=False), b.astype(wide(b.dtype), copy=False)
    try:
        for i, j in zip(dims_a, dims_b, strict=True):
            if (x.shape[i] == 1) != (y.shape[j] == 1):
                x, y = (v if v.shape[k] == 1 else v.sum(k, v.dtype, keepdims=True) for v, k in ((x, i), (y, j)))
        shared = math.prod(x.shape[i] for i in dims_a)
        check_bytes(x.size * y.size // max(shared, 1) ** 2 * x.itemsize)
        found = np.tensordot(x, y, (list(dims_a), list(dims_b)))
    except (ValueError, IndexError) as error:
        raise Error("IRC421", f"tensordot over {list(dims_a)} and {list(dims_b)}: {error}") from None
    return np.asarray(found).astype(a.dtype, copy=False)


def bilinear(x: Array, y: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x W_k y`` for each k."""
    if x.shape[:-1] != y.shape[:-1]:
        raise Error("IRC421", f"a bilinear form is of vectors in tensors alike; the shapes are {shapes_of(x, y)}")
    check_size((*x.shape[:-1], *weight.shape[:1]), x.dtype)
    found = np.einsum("...i,kij,...j->...k", x, weight, y, optimize=True)
    return np.asarray(found if bias is None else found + bias).astype(x.dtype, copy=False)


def _check_vectors(a: Array, b: Array, dtype: Any) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise Error("IRC421", f"an outer product is of vectors; the shapes are {shapes_of(a, b)}")
    check_size((a.size, b.size), dtype)


def outer(a: Array, b: Array) -> Array:
    dtype = result_type(a, b)
    _check_vectors(a, b, dtype)
    return np.multiply.outer(a.astype(dtype, copy=False), b.astype(dtype, copy=False))


def cross(a: Array, b: Array, dim: int | None = None) -> Array:
    """Along ``dim``, or the first dimension of size 3."""
    if a.ndim != b.ndim:
        raise Error("IRC421", f"a cross product is of tensors of {a.ndim} dimensions each, not {a.ndim} and {b.ndim}")
    shape = common_shape(a.shape, b.shape)
    axis = next((i for i, n in enumerate(shape) if n == 3), -1) if dim is None else dim
    if not -len(shape) <= axis < len(shape) or shape[axis] != 3:
        raise Error("IRC421", f"a cross product needs a dimension of size 3; the shape is {list(shape)}")
    dtype = result_type(a, b)
    x, y = (np.moveaxis(np.broadcast_to(v, shape), axis, 0).astype(dtype) for v in (a, b))
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    return np.ascontiguousarray(np.stack(parts, axis))


_times = of_two(np.multiply)


def inner(x: Array, y: Array) -> Array:
    """Products summed over the last dimension of both operands; other dimensions are not summed."""
    if not x.ndim or not y.ndim:
        return pointwise.run(_times(x, y))
    if x.shape[-1] != y.shape[-1]:
        raise Error("IRC421", f"inner needs equal last sizes; the shapes are {shapes_of(x, y)}")
    return product(in_rows(x), in_rows(y).T).reshape((*x.shape[:-1], *y.shape[:-1]))


def vdot(x: Array, y: Array) -> Array:
    if x.ndim != 1 or y.ndim != 1:
        raise Error("IRC421", f"vdot is of vectors; the shapes are {shapes_of(x, y)}")
    return product(np.conjugate(x), y)


def kron(x: Array, y: Array) -> Array:
    """Each element of ``x`` times all of ``y``."""
    rank = max(x.ndim, y.ndim)
    a, b = ((1,) * (rank - v.ndim) + v.shape for v in (x, y))
    shape = check_size([m * n for m, n in zip(a, b)], result_type(x, y))
    spread = [n for size in a for n in (size, 1)], [n for size in b for n in (1, size)]
    return pointwise.run(_times(x.reshape(spread[0]), y.reshape(spread[1]))).reshape(shape)


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


def square(x: Array, what: str, any_type: bool = False) -> Array:
    """``x``; Error for ``what`` if it does not hold square matrices of floats, or of ``any_type``."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise Error("IRC421", f"{what} is of square matrices; the shape is {list(x.shape)}")
    return x if any_type else matrices(x, what)


def matrices(x: Array, what: str) -> Array:
    """As `square`, of matrices of any size."""
    if x.ndim < 2:
        raise Error("IRC421", f"{what} is of matrices; the shape is {list(x.shape)}")
    if x.dtype.char not in "fdFD":
        raise Error("IRC423", f"{what} is of float32 or float64, not of {x.dtype.name}; convert it first")
    return x


def column_major(x: Array) -> Array:
    """Matrices whose columns lie one after the other; a vector in order."""
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(x, -1, -2)), -1, -2) if x.ndim > 1 else np.ascontiguousarray(x)


def _adjoint(x: Array) -> Array:
    return np.conjugate(np.swapaxes(x, -1, -2))


def solved(compute: Callable[..., Any], *arguments: Any) -> Any:
    """What ``compute`` gives; IRC424 if NumPy reports that there is no result."""
    try:
        return compute(*arguments)
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None


def inverse(x: Array) -> Array:
    return column_major(solved(np.linalg.inv, square(x, "an inverse")))


def cholesky(x: Array, upper: bool = False) -> Array:
    """Of the lower triangle."""
    lower = solved(np.linalg.cholesky, square(x, "Cholesky's decomposition"))
    return column_major(_adjoint(lower) if upper else lower)


# -- decompositions and what follows from them -----------------------------------


def solve(a: Array, b: Array, left: bool = True) -> Array:
    """The solution of ``a x = b`` or ``x a = b``; b is matrices, or vectors if shaped like rows of ``a``."""
    square(a, "a system of equations")
    if a.dtype != b.dtype:
        raise Error("IRC423", f"a system of equations of {a.dtype.name} and {b.dtype.name}: convert one")
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if not left and is_vector:
        raise Error("IRC421", "vectors are solved for from the left only")
    if not left:
        turned = solved(np.linalg.solve, np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))
        return np.ascontiguousarray(np.swapaxes(turned, -1, -2))
    found = solved(np.linalg.solve, a, b[..., None] if is_vector else b)
    return column_major(found[..., 0] if is_vector else found)


def linalg_svd(x: Array, full_matrices: bool = True, driver: str | None = None) -> tuple[Array, Array, Array]:
    matrices(x, "a singular value decomposition")
    if full_matrices:
        check_size((*x.shape[:-2], *[max(x.shape[-2:])] * 2), x.dtype)
    u, s, vh = solved(np.linalg.svd, x, full_matrices)
    return column_major(u), s, column_major(vh)


def linalg_svdvals(x: Array, driver: str | None = None) -> Array:
    return solved(partial(np.linalg.svd, compute_uv=False), matrices(x, "a singular value"))


def linalg_eigh(x: Array, uplo: str = "L") -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors by the lower or upper triangle."""
    if uplo not in ("L", "U", "l", "u"):
        raise Error("IRC424", f"UPLO is {uplo!r}; it must be 'L' or 'U'")
    values, vectors = solved(np.linalg.eigh, square(x, "an eigenvalue decomposition"), uplo.upper())
    return values, column_major(vectors)


def linalg_slogdet(x: Array) -> tuple[Array, Array]:
    sign, log = np.linalg.slogdet(square(x, "a determinant"))
    return np.asarray(sign), np.asarray(log)


def logdet(x: Array) -> Array:
    sign, log = linalg_slogdet(x)
    if x.dtype.kind == "c":
        return np.asarray(log + np.log(sign))
    return np.where(sign < 0, x.dtype.type(np.nan), log)


def linalg_matrix_power(x: Array, n: int) -> Array:
    if is_half(x.dtype) and n >= 0:
        return linalg_matrix_power(x.astype(FLOAT32), n).astype(x.dtype)
    square(x, "a power of a matrix", any_type=n >= 0 and x.dtype.kind in "iu")
    return np.array(solved(np.linalg.matrix_power, x, n), order="C")


_MATRIX_NORMS = ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def linalg_matrix_norm(
    x: Array, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, dtype: int | None = None
) -> Array:
    element = dtype_of(dtype, x.dtype)
    if ord not in _MATRIX_NORMS:
        raise Error("IRC424", f"there is no norm {ord!r} of matrices")
    if not is_half(element) or ord in ("nuc", 2, -2):  # which take singular values
        matrices(x.astype(element, copy=False), "a norm of matrices")
    axes = axes_in(dim, x.ndim)
    if len(axes) != 2:
        raise Error("IRC421", f"a matrix has two dimensions; {list(dim)} are given")
    wide_x = x.astype(np.complex128 if element.kind == "c" else np.float64)
    found = np.asarray(solved(np.linalg.norm, wide_x, ord, axes, keepdim))
    return np.ascontiguousarray(found).astype(real_type(element)).reshape(found.shape)


def linalg_norm(x: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Array:
    """The norm of all elements, of vectors along one dimension, or of matrices in two."""
    axes = None if dim is None else list(dim)
    if axes is not None and len(axes) not in (1, 2):
        raise Error("IRC421", f"a norm is of one dimension or of two, not of {axes}")
    if ord is not None and axes is None and x.ndim not in (1, 2):
        raise Error("IRC421", f"a norm with ord={ord} is of vectors and matrices; the shape is {list(x.shape)}")
    if isinstance(ord, str) or (ord is not None and (x.ndim == 2 if axes is None else len(axes) == 2)):
        return linalg_matrix_norm(x, ord, [-2, -1] if axes is None else axes, keepdim, dtype)
    return vector_norm(x, 2 if ord is None else ord, axes, keepdim, dtype)


def addr(x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * a b^T``."""
    _check_vectors(a, b, x.dtype)
    dtype = promote(x.dtype, result_type(a, b))  # a number that is added counts as the matrix that it becomes
    if is_integral(dtype) and any(isinstance(factor, float) for factor in (alpha, beta)):
        raise Error("IRC423", f"integers are multiplied by integers, not by {alpha} or {beta}; convert to floats first")

    def compute(u: Array, v: Array, w: Array, out: Array | None = None) -> Any:
        scaled = v * w * tensor(alpha, v.dtype)
        return np.add(u.dtype.type(0) if beta == 0 else u * tensor(beta, u.dtype), scaled, out=out, dtype=v.dtype)

    return pointwise.run(Computation(compute, (x, a[:, None], b), dtype))


def block_diag(blocks: Sequence[Array]) -> Array:
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


def linalg_qr(x: Array, mode: str = "reduced") -> tuple[Array, Array]:
    if mode not in ("reduced", "complete", "r"):
        raise Error("IRC424", f"qr's mode is {mode!r}; it must be 'reduced', 'complete' or 'r'")
    matrices(x, "a QR decomposition")
    if mode == "complete":
        check_size((*x.shape[:-1], x.shape[-2]), x.dtype)
    q, r = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return np.empty(0, x.dtype) if mode == "r" else column_major(q), column_major(r)


# -- equations, eigenvalues, pseudoinverses ------------------------------------


def linalg_eigvals(x: Array) -> Array:
    found: Array = solved(np.linalg.eigvals, square(x, "an eigenvalue"))
    return found.astype(np.result_type(x.dtype, np.complex64))


def of_many(factors: Sequence[Array]) -> Array:
    """The product of several matrices in the cheapest order; the first may be a row, the last a column."""
    if len(factors) < 2:
        raise Error("IRC421", f"multi_dot takes two tensors or more, not {len(factors)}")
    if any(x.dtype != factors[0].dtype for x in factors):
        raise Error("IRC423", "multi_dot takes tensors of one element type; convert them")
    if any(x.ndim != 2 for x in factors[1:-1]) or not {factors[0].ndim, factors[-1].ndim} <= {1, 2}:
        raise Error("IRC421", f"multi_dot takes matrices, and vectors at its ends, not {shapes_of(*factors[:8])}")
    if any(a.shape[-1] != b.shape[0] for a, b in pairwise(factors)):
        raise Error("IRC421", f"tensors of shapes {shapes_of(*factors[:8])} cannot be multiplied")
    dtype = factors[0].dtype
    check_size((*factors[0].shape[:-1], *factors[-1].shape[1:]), dtype)
    found = np.linalg.multi_dot([x.astype(wide(dtype), copy=False) for x in factors])
    return np.asarray(found, order="C").astype(dtype, copy=False)


# -- triangular matrices -------------------------------------------------------


def linalg_solve_triangular(a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """``x`` in ``a x = b``, or in ``x a = b``, of the element type of ``a``.

    Only one triangle of ``a`` is read, perhaps without its diagonal. Singular matrices give infinities and NaNs.
    """
    square(a, "a system of equations")
    if b.ndim < 2 or b.shape[-2 if left else -1] != a.shape[-1]:
        raise Error("IRC421", f"no system of equations has the shapes {list(a.shape)} and {list(b.shape)}")
    if left:
        return column_major(_substituted(a, b, upper, unitriangular))
    turned = _substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper, unitriangular)
    return column_major(np.swapaxes(turned, -1, -2))


def _substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    x = np.empty(check_size((*batch, *b.shape[-2:]), a.dtype), a.dtype)
    np.copyto(x, b.real if b.dtype.kind == "c" != a.dtype.kind else b, casting="unsafe")
    n = a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, None) if upper else slice(None, i)
        x[..., i : i + 1, :] -= a[..., i : i + 1, known] @ x[..., known, :]
        if not unitriangular:
            x[..., i, :] /= a[..., i, i, None]
    return x


def triangular_solve(
    b: Array, a: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    if a.dtype != b.dtype:
        raise Error("IRC423", f"a system of equations of {a.dtype.name} and {b.dtype.name}: convert one")
    square(a, "a system of equations")
    turned = np.swapaxes(a, -1, -2) if transpose else a
    solution = linalg_solve_triangular(turned, b, upper != transpose, True, unitriangular)
    return solution, column_major(np.broadcast_to(a, (*solution.shape[:-2], *a.shape[-2:])).copy())


# -- pseudoinverses ------------------------------------------------------------


def linalg_pinv(x: Array, *given: Any) -> Array:
    """``linalg_pinv(x, rcond, hermitian)`` or ``linalg_pinv(x, atol, rtol, hermitian)``."""
    tolerances = [v for v in given if not isinstance(v, bool)]
    atol, rtol = tolerances if len(tolerances) == 2 else (0.0, *tolerances) if tolerances else (None, None)
    is_hermitian = len(given) > len(tolerances) and bool(given[-1])
    matrices(x, "a pseudoinverse")
    rows, columns = x.shape[-2:]
    if is_hermitian:
        square(x, "a pseudoinverse of a Hermitian matrix")
    if not x.size:
        return np.empty((*x.shape[:-2], columns, rows), x.dtype)
    if rtol is None:
        least = np.finfo(x.dtype).eps * max(rows, columns)
        rtol = least if atol is None else np.where(np.greater(atol, 0), 0, least)
    if is_hermitian:
        values, right = solved(np.linalg.eigh, x)
        left = _adjoint(right)
    else:
        u, values, vh = solved(np.linalg.svd, x, False)
        left, right = _adjoint(u), _adjoint(vh)
    sizes = np.abs(values)
    limit = np.maximum(_column(0.0 if atol is None else atol), _column(rtol) * sizes.max(-1, keepdims=True))
    inverted = np.where(sizes > limit, 1 / values, 0).astype(values.dtype)
    return np.asarray((right * inverted[..., None, :]) @ left, order="C")


def _column(tolerance: Any) -> Any:
    """A tolerance for each matrix, as it goes with a row of values for each."""
    return tolerance[..., None] if is_array(tolerance) else tolerance


# -- exponentials --------------------------------------------------------------

_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_REACH = 5.371920351148152
"""Up to this norm the quotient of polynomials with these coefficients is exact to the last digit (Higham, 2005)."""


def linalg_matrix_exp(x: Array) -> Array:
    """Scaled down until the quotient is exact, then squared as often as it was halved."""
    if x.dtype.kind == "V":
        return linalg_matrix_exp(x.astype(FLOAT32)).astype(x.dtype)
    square(x, "an exponential of a matrix")
    if not x.size:
        return x.copy()
    a = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    norms = np.abs(a).sum(-2).max(-1)
    is_finite = np.isfinite(norms)
    a[~is_finite] = 0
    halvings = np.ceil(np.log2(np.maximum(np.where(is_finite, norms, 0) / _REACH, 1))).astype(np.int64)
    a = a / 2.0 ** halvings[..., None, None]
    even, odd, power = np.zeros_like(a), np.zeros_like(a), np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for i, coefficient in enumerate(_PADE):
        if i % 2:
            odd = odd + coefficient * power
            power = power @ (a @ a)
        else:
            even = even + coefficient * power
    odd = a @ odd
    found: Array = solved(np.linalg.solve, even - odd, even + odd)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(int(halvings.max(initial=0))):
            found = np.where((i < halvings)[..., None, None], found @ found, found)
        found[~is_finite] = np.nan
        return found.astype(x.dtype)


# -- least squares -------------------------------------------------------------

_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


def linalg_lstsq(
    a: Array, b: Array, rcond: float | None = None, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """``x`` that makes ``a x - b`` least, what is left of it, the rank of ``a``, and its singular values."""
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise Error("IRC424", f"lstsq's driver is {driver!r}; it must be one of {', '.join(_DRIVERS)}")
    matrices(a, "a least squares problem")
    is_vector = b.ndim == a.ndim - 1
    columns = b[..., None] if is_vector else b
    rows, n = a.shape[-2:]
    if a.dtype != b.dtype or columns.ndim < 2 or columns.shape[-2] != rows:
        types = f"{a.dtype.name} and {b.dtype.name}, {shapes_of(a, b)}"
        raise Error("IRC421", f"no least squares problem has operands of {types}")
    batch = common_shape(a.shape[:-2], columns.shape[:-2])
    check_size((*batch, max(rows, n), columns.shape[-1]), a.dtype)
    left = np.broadcast_to(a, (*batch, rows, n))
    u, s, vh = solved(np.linalg.svd, left, False)
    limit = (np.finfo(a.dtype).eps * max(rows, n) if rcond is None else rcond) * s.max(-1, keepdims=True, initial=0)
    kept = s > (np.zeros_like(limit) if driver == "gels" else limit)
    turned = _adjoint(u) @ columns
    x = _adjoint(vh) @ np.where(kept[..., None], turned / np.where(kept, s, 1)[..., None], 0)
    rank = kept.sum(-1)
    residuals = np.empty(0, real_type(a.dtype))
    if rows > n and driver != "gelsy" and (rank == n).all():
        residuals = np.square(np.abs(left @ x - columns)).sum(-2)
    nothing = np.empty(0, INT64)
    values = s if driver in ("gelsd", "gelss") else np.empty(0, s.dtype)
    solution = np.ascontiguousarray(x[..., 0]) if is_vector else column_major(x)
    return solution.astype(a.dtype, copy=False), residuals, nothing if driver == "gels" else np.asarray(rank), values


# -- chains --------------------------------------------------------------------


def chain_matmul(factors: Sequence[Array]) -> Any:
    """The product of one matrix or more."""
    if not factors or any(x.ndim != 2 for x in factors):
        raise Error("IRC421", f"chain_matmul takes matrices, at least one; there are {len(factors)} tensors")
    return factors[0].copy() if len(factors) == 1 else of_many(factors)


# -- with a number that is 0 where all went well ---------------------------------


def _telling(compute: Callable[..., Array], a: Array, *arguments: Any) -> tuple[Array, Array]:
    """``compute`` without its last argument, whether to check for errors: that is always done."""
    return compute(a, *arguments[:-1]), np.zeros(a.shape[:-2], np.int32)


def linalg_cholesky_ex(x: Array, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """The factor, and 1 plus the place of the first pivot that is not a number, 0 without one."""
    factor = cholesky(x, upper)
    is_nan = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1))
    place = np.argmax(is_nan, -1) + 1 if is_nan.shape[-1] else np.zeros(is_nan.shape[:-1])
    return factor, np.where(is_nan.any(-1), place, 0).astype(np.int32)


# -- by Cholesky's factors -------------------------------------------------------


def _product_of(factor: Array, upper: bool) -> Array:
    """The matrix whose triangular factor is given."""
    square(factor, "a factor of Cholesky")
    lower = _adjoint(np.triu(factor)) if upper else np.tril(factor)
    return np.asarray(lower @ _adjoint(lower))


def cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    if b.ndim < 2 or b.dtype != factor.dtype or b.shape[-2] != factor.shape[-1]:
        types = f"{b.dtype.name} and {factor.dtype.name}, {shapes_of(b, factor)}"
        raise Error("IRC421", f"no system of equations has operands of {types}")
    return column_major(solved(np.linalg.solve, _product_of(factor, upper), b))


def cholesky_inverse(factor: Array, upper: bool = False) -> Array:
    if (np.diagonal(factor, axis1=-2, axis2=-1) == 0).any():
        raise Error("IRC424", "there is no inverse: a factor has a 0 on its diagonal")
    return column_major(solved(np.linalg.inv, _product_of(factor, upper)))


# -- products --------------------------------------------------------------------


def _together(x: Array, y: Array) -> tuple[Array, Array]:
    if x.dtype != y.dtype:
        raise Error("IRC423", f"a product of {x.dtype.name} and {y.dtype.name}: convert one")
    shape = common_shape(x.shape, y.shape)
    return np.broadcast_to(x, shape), np.broadcast_to(y, shape)


def linalg_cross(x: Array, y: Array, dim: int = -1) -> Array:
    a, b = _together(x, y)
    axis = axis_in(dim, a.ndim)
    if x.ndim != y.ndim or x.shape[axis] != 3 or y.shape[axis] != 3:
        raise Error("IRC421", f"a cross product is of 3 elements; the shapes are {shapes_of(x, y)}")
    return np.ascontiguousarray(np.cross(a, b, axis=axis))


def linalg_vecdot(x: Array, y: Array, dim: int = -1) -> Array:
    a, b = _together(x, y)
    axis = axis_in(dim, max(a.ndim, 1))
    products = np.asarray(np.conjugate(a) * b)
    return np.asarray(products.sum(axis) if a.ndim else products).astype(a.dtype)


table(
    matmul=product,
    mm=bound(_checked, ranks=(2, 2)),
    bmm=bound(_checked, ranks=(3, 3)),
    mv=bound(_checked, ranks=(2, 1)),
    dot=bound(_checked, ranks=(1, 1)),
    addmm=bound(_plus_of_type, ranks=(2, 2)),
    addmv=bound(_plus_of_type, ranks=(2, 1)),
    baddbmm=bound(_plus_of_type, ranks=(3, 3)),
    linalg_inv=inverse,
    linalg_det=one(lambda x: np.asarray(np.linalg.det(square(x, "a determinant")))),
    linalg_cholesky=cholesky,
    linalg_solve=solve,
    linalg_eigvalsh=two(lambda x, uplo="L": linalg_eigh(x, uplo)[0]),
    slogdet=linalg_slogdet,
    diagflat=two(lambda x, offset=0: diag_embed(np.ascontiguousarray(x).reshape(-1), offset)),
    linalg_diagonal=one(lambda x, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2)),
    linalg_multi_dot=of_many,
    pinverse=two(lambda x, rcond=1e-15: linalg_pinv(x, rcond, False)),
    linalg_inv_ex=partial(_telling, inverse),
    linalg_solve_ex=partial(_telling, solve),
)
