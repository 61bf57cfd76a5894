"""Linear algebra: products of matrices and vectors, inverses, norms, diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.aten.promotion import promote
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.aten.element_types import (
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


def solved(compute: Callable[..., Any], *arguments: Any) -> Any:
    """What ``compute`` gives; IRC424 if NumPy reports that there is no result."""
    try:
        return compute(*arguments)
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None


def inverse(x: Array) -> Array:
    return column_major(solved(np.linalg.inv, square(x, "an inverse")))


# -- decompositions and what follows from them -----------------------------------


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
    diagflat=two(lambda x, offset=0: diag_embed(np.ascontiguousarray(x).reshape(-1), offset)),
    linalg_diagonal=one(lambda x, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2)),
)
