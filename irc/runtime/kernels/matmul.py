"""Matrix products: MatMul, Gemm, Einsum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size, fresh, is_half

if TYPE_CHECKING:
    from irc.ir import Node

EINSUM_ELEMENTS = 1 << 28
"""No intermediate of a contraction may be larger; NumPy then contracts in another order, or all at once."""


def matrix_product(a: Array, b: Array, out: Array | None = None) -> Array:
    """``a @ b`` by the rules of ``numpy.matmul``, in ``out`` if given (which must share with neither).

    float16 and smaller floats are multiplied and summed in float32.
    """
    if is_half(a.dtype):
        result = matrix_product(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
        if out is None:
            return result
        np.copyto(out, result)
        return out
    check_size(_product_shape(a, b), a.dtype)
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous and (out is None or out.flags.c_contiguous):
        # One product of tall matrices instead of a batch of flat ones.
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        product = np.matmul(rows, b, out=None if out is None else out.reshape(len(rows), b.shape[1]))
        return product.reshape(*a.shape[:-1], b.shape[1]) if out is None else out
    return np.asarray(np.matmul(a, b, out=out))


def _product_shape(a: Array, b: Array) -> tuple[int, ...]:
    """The shape of ``a @ b``; Error if the shapes do not fit."""
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    try:
        if a.shape[-1] != (b.shape[-2] if b.ndim > 1 else b.shape[0]):
            raise ValueError
        return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *rows, *columns)
    except (ValueError, IndexError):
        raise Error("IRC421", f"matrices of shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied") from None


@kernel("onnx::MatMul")
def matmul(node: Node) -> Kernel:
    return matrix_product


@kernel("onnx::Gemm")
def gemm_6(node: Node) -> Kernel:
    run = gemm(node)
    broadcast = bool(node.attributes.get("broadcast", 0))

    def run_6(a: Array, b: Array, c: Array, out: Array | None = None) -> Array:
        result = run(a, b, c, out)
        if not broadcast and c.shape != result.shape:
            raise Error(
                "IRC421", f"C has shape {list(c.shape)}, the product {list(result.shape)}: that needs broadcast=1"
            )
        return result

    return run_6


@kernel("onnx::Gemm", since=7)
def gemm(node: Node) -> Kernel:
    alpha, beta = float(node.attributes.get("alpha", 1.0)), float(node.attributes.get("beta", 1.0))
    flip_a, flip_b = bool(node.attributes.get("transA", 0)), bool(node.attributes.get("transB", 0))

    def run(a: Array, b: Array, c: Array | None = None, out: Array | None = None) -> Array:
        if a.ndim != 2 or b.ndim != 2:
            raise Error("IRC421", f"A and B must be matrices; their shapes are {list(a.shape)} and {list(b.shape)}")
        wide = np.dtype(np.float32) if is_half(a.dtype) else a.dtype
        left, right = a.astype(wide, copy=False), b.astype(wide, copy=False)
        into = out if wide == a.dtype else None
        result = matrix_product(left.T if flip_a else left, right.T if flip_b else right, into)
        if alpha != 1:
            np.multiply(result, _factor(alpha, wide), out=result, casting="unsafe")
        if c is not None and beta != 0:
            scaled = c.astype(wide, copy=False)
            if beta != 1:
                scaled = (scaled * _factor(beta, wide)).astype(wide, copy=False)
            try:
                result += scaled
            except ValueError:
                raise Error(
                    "IRC421", f"C has shape {list(c.shape)}, which does not broadcast to {list(result.shape)}"
                ) from None
        if wide == a.dtype:
            return result
        if out is None:
            return result.astype(a.dtype)
        np.copyto(out, result, casting="same_kind")
        return out

    return run


def _factor(value: float, dtype: np.dtype[Any]) -> Any:
    """``value`` as what to multiply an array of ``dtype`` with: integers are scaled in float64, then truncated."""
    return dtype.type(value) if dtype.kind == "f" else np.float64(value)


@kernel("onnx::Einsum")
def einsum(node: Node) -> Kernel:
    equation = str(node.attributes.get("equation", "")).replace(" ", "")

    def run(*operands: Array) -> Array:
        dtype = operands[0].dtype
        wide = [x.astype(np.float32) for x in operands] if is_half(dtype) else operands
        try:
            check_size(_einsum_shape(equation, operands), dtype)
            result = np.asarray(np.einsum(equation, *wide, optimize=("greedy", EINSUM_ELEMENTS)))
        except ValueError as error:
            shapes = ", ".join(str(list(x.shape)) for x in operands)
            raise Error("IRC421", f"equation {equation!r} does not fit shapes {shapes}: {error}") from None
        return fresh(result.astype(dtype, copy=False), *operands)

    return run


def _einsum_shape(equation: str, operands: tuple[Array, ...]) -> tuple[int, ...]:
    """The shape that an explicit equation gives, or () if NumPy will refuse the equation or sum everything else."""
    terms, _, result = equation.partition("->")
    sizes: dict[str, int] = {}
    dots: tuple[int, ...] = ()
    for term, x in zip(terms.split(","), operands, strict=False):
        head, ellipsis, tail = term.partition("...")
        sizes |= {c: max(n, sizes.get(c, 1)) for c, n in zip(head, x.shape, strict=False)}
        sizes |= {c: max(n, sizes.get(c, 1)) for c, n in zip(tail[::-1], x.shape[::-1], strict=False)}
        if ellipsis:
            dots = np.broadcast_shapes(dots, x.shape[len(head) : x.ndim - len(tail)])
    if "->" not in equation:
        letters = terms.replace("...", "").replace(",", "")
        result = "..." * ("..." in terms) + "".join(c for c in letters if letters.count(c) == 1)
    return (*dots, *(sizes.get(c, 1) for c in result.replace("...", "")))
