"""Products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels.aten.element_types import dtype_of, result_type, tensor, wide
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.float16 import widened
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, in_rows, is_half


def _checked(rank_a: int, rank_b: int) -> Any:
    """A product of tensors of fixed ranks."""

    def run(a: Array, b: Array, out_dtype: int | None = None) -> Array:
        _check_ranks(a, b, rank_a, rank_b)
        if out_dtype is not None:
            dtype = dtype_of(out_dtype, a.dtype)
            return product(a.astype(dtype), b.astype(dtype))
        return product(a, b)

    return run


def _check_ranks(a: Array, b: Array, rank_a: int, rank_b: int) -> None:
    if a.ndim != rank_a or b.ndim != rank_b or a.shape[:-2] != b.shape[:-2]:
        shapes = f"{list(a.shape)} and {list(b.shape)}"
        alike = " and as many matrices" if rank_a == 3 else ""
        raise Error("IRC421", f"expected {rank_a} and {rank_b} dimensions{alike}, the shapes are {shapes}")


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
    """``beta * x + alpha * (a @ b)``; x broadcasts to the product, and all three must have one element type."""
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


def _plus_of_type(rank_a: int, rank_b: int) -> Callable[..., Array]:
    """``addmm(x, a, b, beta, alpha)`` or ``addmm(x, a, b, out_dtype, beta, alpha)``."""

    def run(x: Array, a: Array, b: Array, *arguments: Any) -> Array:
        _check_ranks(a, b, rank_a, rank_b)
        if len(arguments) == 3:
            dtype = dtype_of(arguments[0], a.dtype)
            return _plus(x.astype(dtype), a.astype(dtype), b.astype(dtype), *arguments[1:])
        return _plus(x, a, b, *arguments)

    return run


def _sum_of_products(x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * sum(a @ b)``, over batches."""
    _check_ranks(a, b, 3, 3)
    joined = np.concatenate(list(a), 1) if len(a) else a.reshape(a.shape[1], 0)
    stacked = in_rows(b)
    return _plus(x, joined, stacked, beta, alpha)


def _tensordot(a: Array, b: Array, dims_a: Sequence[int], dims_b: Sequence[int]) -> Array:
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


def _bilinear(x: Array, y: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x W_k y`` for each k."""
    if x.shape[:-1] != y.shape[:-1]:
        shapes = f"{list(x.shape)} and {list(y.shape)}"
        raise Error("IRC421", f"a bilinear form is of vectors in tensors alike; the shapes are {shapes}")
    check_size((*x.shape[:-1], *weight.shape[:1]), x.dtype)
    found = np.einsum("...i,kij,...j->...k", x, weight, y, optimize=True)
    return np.asarray(found if bias is None else found + bias).astype(x.dtype, copy=False)


def _outer(a: Array, b: Array) -> Array:
    if a.ndim != 1 or b.ndim != 1:
        raise Error("IRC421", f"an outer product is of vectors; the shapes are {list(a.shape)} and {list(b.shape)}")
    dtype = result_type(a, b)
    check_size((a.size, b.size), dtype)
    return np.multiply.outer(a.astype(dtype, copy=False), b.astype(dtype, copy=False))


def _cross(a: Array, b: Array, dim: int | None = None) -> Array:
    if a.ndim != b.ndim:
        raise Error(
            "IRC421", f"a cross product is of tensors of {a.ndim} dimensions each, not of {a.ndim} and {b.ndim}"
        )
    shape = broadcast_shape(a.shape, b.shape)
    axis = next((i for i, n in enumerate(shape) if n == 3), -1) if dim is None else dim
    if axis < -len(shape) or axis >= len(shape) or shape[axis] != 3:
        raise Error("IRC421", f"a cross product needs a dimension of size 3; the shape is {list(shape)}")
    dtype = result_type(a, b)
    x, y = (np.moveaxis(np.broadcast_to(v, shape), axis, 0).astype(dtype) for v in (a, b))
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    return np.ascontiguousarray(np.stack(parts, axis))


table(
    {
        "matmul": product,
        "mm": _checked(2, 2),
        "bmm": _checked(3, 3),
        "mv": _checked(2, 1),
        "dot": _checked(1, 1),
        "linear": linear,
        "addmm": _plus_of_type(2, 2),
        "addmv": _plus_of_type(2, 1),
        "baddbmm": _plus_of_type(3, 3),
        "addbmm": _sum_of_products,
        "tensordot": _tensordot,
        "bilinear": _bilinear,
        "outer": _outer,
        "cross": _cross,
    }
)
