"""Matrix products: MatMul, Gemm, Einsum; and determinants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ops.shape_rules import Axis, axes_of, is_equation
from irc.runtime.bounds import CURRENT, NONE, check_work, pace
from irc.runtime.kernels.numerics import LARGE, narrowed, product, shape_of_rows, widened
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.support import (
    MAX_BYTES,
    Array,
    broadcast_shape,
    check_size,
    fresh,
    is_constant,
    is_half,
    shapes_of,
)

EINSUM_ELEMENTS = 1 << 28
"""No intermediate of a contraction may be larger; NumPy then contracts in another order, or all at once."""

INTEGERS = 8
"""How many times as long as by BLAS NumPy takes for products of integers, at least; measured up to 100."""

PIECE = 1 << 24
"""Products of integers that a run under limits makes without looking at the clock: of a hundredth to a tenth of a
second."""


_SURELY_SMALL = MAX_BYTES // 16
"""With at most this many combinations of elements, a product of matrices is no larger than results may be."""


@computes("onnx::MatMul")
def matrix_product(a: Array, b: Array, out: Array | None = None) -> Array:
    """``a @ b`` by the rules of ``numpy.matmul``, in ``out`` if given (which must share with neither).

    float16 and smaller floats are multiplied and summed in float32, as which ``b`` may be given, too.
    """
    if a.dtype is b.dtype and a.dtype.char in "fd" and CURRENT.scope.guard is None:
        found = _of_rows(a, b, out)
        if found is not None:
            return found
    if is_half(a.dtype):
        return narrowed(matrix_product(widened(a), widened(b)), a.dtype, out)
    if CURRENT.scope.guard is not None or not 0 < a.size * b.size <= _SURELY_SMALL:
        shape = check_size(product_shape(a.shape, b.shape), a.dtype)
        if CURRENT.scope.guard is not None:
            if a.dtype.kind in "iu" and a.dtype == b.dtype and a.ndim > 1 < b.ndim:
                result = np.empty(shape, a.dtype) if out is None else out
                _in_pieces(a, b, result)
                return result
            check_work(math.prod(shape) * a.shape[-1])
    try:
        return _multiply(a, b, out)
    except ValueError:
        product_shape(a.shape, b.shape)  # says what is wrong
        raise


def _of_rows(a: Array, b: Array, out: Array | None) -> Array | None:
    """``a @ b`` for ``a`` of one row (a head), as decoders have; None if it is not, or does not fit.

    By what takes least to begin: for a matrix in order, `np.dot`, which calls the same function of BLAS as `np.matmul`
    in 1 to 3 µs less.
    """
    shape = a.shape
    if not shape or b.ndim < 2:
        return None
    if b.ndim == 2:
        if not 0 < a.size == len(b) == shape[-1] or not b.flags.forc or b.size >= LARGE:
            return None  # of what is in no order, np.dot makes a copy
        if CURRENT.scope.loops is not NONE and is_constant(b):
            return None  # `product` asks for loops
        row = np.dot(a.ravel(), b)
        if out is None:
            return row[None, None] if len(shape) == 3 else row.reshape(*shape[:-1], len(row))
        np.copyto(out, row)
        return out
    other = b.shape
    if shape[:-1] != (*other[:-2], 1) or shape[-1] != other[-2] or not 0 < a.size * b.size <= _SURELY_SMALL:
        return None
    return np.matmul(a, b, out)


def _multiply(a: Array, b: Array, out: Array | None) -> Array:
    """``a @ b``, whose rows that are multiplied by one matrix are those of one."""
    rows = shape_of_rows(a.shape, b.shape)
    if rows == a.shape or not a.flags.c_contiguous or not (out is None or out.flags.c_contiguous):
        return np.asarray(product(a, b, out))
    made = product(a.reshape(rows), b, None if out is None else out.reshape(*rows[:-1], b.shape[-1]))
    return made.reshape(*a.shape[:-1], b.shape[-1]) if out is None else out


def _in_pieces(a: Array, b: Array, out: Array) -> None:
    """Write an integer product to ``out`` in pieces, between which the run may stop.

    NumPy makes these without BLAS, at a hundredth of its pace, and the same in pieces.
    """
    pace()
    if out.size * a.shape[-1] <= PIECE or out.size == 1:
        np.matmul(a, b, out=out)
        return
    axis = max(range(-out.ndim, 0), key=lambda i: out.shape[i])
    half = out.shape[axis] // 2
    for part in (slice(half), slice(half, None)):
        _in_pieces(_cut(a, axis, part, -1), _cut(b, axis, part, -2), out[_along(axis, part)])


def _cut(x: Array, axis: int, part: slice, inner: int) -> Array:
    """The slice of an operand (summed over ``inner``) for a ``part`` of the product along ``axis``."""
    repeats = axis == inner or -axis > x.ndim or (axis < -2 and x.shape[axis] == 1)
    return x if repeats else x[_along(axis, part)]


def _along(axis: int, part: slice) -> tuple[Any, ...]:
    """An index of ``part`` along the axis ``axis``, counted from the last: -1, -2 and so on."""
    return (..., part, *[slice(None)] * (-1 - axis))


def product_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape of ``a @ b`` for arrays of these shapes; Error if they do not fit."""
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    try:
        if a[-1] != b[-2:][0]:
            raise ValueError
        return (*broadcast_shape(tuple(a[:-2]), tuple(b[:-2])), *rows, *columns)
    except (ValueError, IndexError):
        raise Error("IRC421", f"matrices of shapes {list(a)} and {list(b)} cannot be multiplied") from None


@computes("onnx::Gemm", broadcast=lambda node: bool(node.attributes.get("broadcast", 0)))
@computes("onnx::Gemm", since=7)
def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    out: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: bool = False,
    transB: bool = False,
    broadcast: bool = True,
) -> Array:
    if a.ndim != 2 or b.ndim != 2:
        raise Error("IRC421", f"A and B must be matrices; their shapes are {list(a.shape)} and {list(b.shape)}")
    half = is_half(a.dtype)
    wide = np.dtype(np.float32) if half else a.dtype
    left, right = (widened(a), widened(b)) if half else (a, b.astype(wide, copy=False))
    into = None if half else out
    result = matrix_product(left.T if transA else left, right.T if transB else right, into)
    if alpha != 1:
        np.multiply(result, _factor(alpha, wide), out=result, casting="unsafe")
    if c is not None and not broadcast and c.shape != result.shape:
        raise Error("IRC421", f"C has shape {list(c.shape)}, the product {list(result.shape)}: that needs broadcast=1")
    if c is not None and beta != 0:
        scaled = widened(c) if half else c.astype(wide, copy=False)
        if beta != 1:
            scaled = (scaled * _factor(beta, wide)).astype(wide, copy=False)
        try:
            result += scaled
        except ValueError:
            shapes = f"{list(c.shape)}, which does not broadcast to {list(result.shape)}"
            raise Error("IRC421", f"C has shape {shapes}") from None
    return narrowed(result, a.dtype, out) if half else result


def _factor(value: float, dtype: np.dtype[Any]) -> Any:
    """``value`` as a factor for ``dtype``: integers are scaled in float64, then truncated."""
    return dtype.type(value) if dtype.kind == "f" else np.float64(value)


def _equation(node: Node) -> str:
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    if not is_equation(equation):
        raise Error("IRC320", f"{equation!r} is not an equation of letters, commas, one '...' a term, and '->'")
    return equation


@computes("onnx::Einsum", since=12, equation=_equation)
def einsum(*operands: Array, out: Array | None = None, equation: str) -> Array:
    dtype = operands[0].dtype
    terms, axes, sizes = einsum_axes(equation, operands)
    check_size([sizes[axis] for axis in axes], dtype)
    wide = [widened(x) for x in operands] if is_half(dtype) else operands
    if CURRENT.scope.guard is not None:
        _check_contraction(equation, wide, terms, axes)
    into = None if is_half(dtype) else out
    result = np.einsum(equation, *wide, optimize=("greedy", EINSUM_ELEMENTS), out=into)
    result = narrowed(np.asarray(result), dtype, out)
    return fresh(result, *operands) if out is None else result


def _check_contraction(
    equation: str, operands: Sequence[Array], axes: Sequence[list[Axis]], result: list[Axis]
) -> None:
    """Ask for the time and the memory of the steps in which NumPy will contract ``operands``."""
    path: list[Any] = np.einsum_path(equation, *operands, optimize=("greedy", EINSUM_ELEMENTS))[0]
    terms = [_largest(zip(term, x.shape)) for term, x in zip(axes, operands, strict=True)]
    for taken in path[1:]:
        sizes = _largest(pair for position in sorted(taken, reverse=True) for pair in terms.pop(position).items())
        lasting = set(result).union(*terms)
        terms.append({axis: n for axis, n in sizes.items() if axis in lasting})
        check_size(tuple(terms[-1].values()), operands[0].dtype)
        check_work(math.prod(sizes.values()) * (INTEGERS if operands[0].dtype.kind in "iu" else 1))


def _largest(axes: Iterable[tuple[Axis, int]]) -> dict[Axis, int]:
    """The size of each axis, which in some tensors may be 1."""
    sizes: dict[Axis, int] = {}
    for axis, size in axes:
        sizes[axis] = max(size, sizes.get(axis, 0))
    return sizes


def einsum_axes(
    equation: str, operands: Sequence[Array], sums_ellipsis: bool = False
) -> tuple[list[list[Axis]], list[Axis], dict[Axis, int]]:
    """The axes of each of ``operands``, of the result, and their sizes, as `axes_of` finds them.

    Raises:
        Error: IRC421 if ``equation`` does not fit.
    """
    try:
        terms, result = axes_of(equation, [x.ndim for x in operands], sums_ellipsis)
        sizes: dict[Axis, int] = {}
        for term, x in zip(terms, operands, strict=True):
            for axis, size in zip(term, x.shape, strict=True):
                known = sizes.get(axis, 1)
                if 1 not in (size, known) and size != known:
                    of_ellipsis = "what '...' stands for does not broadcast"
                    raise ValueError(f"{axis!r} is both {known} and {size}" if isinstance(axis, str) else of_ellipsis)
                sizes[axis] = size if known == 1 else known
    except ValueError as error:
        fits = f"equation {equation!r} does not fit operands of shapes {shapes_of(*operands)}"
        raise Error("IRC421", f"{fits}: {error}") from None
    return terms, result, sizes


# -- Det -----------------------------------------------------------------------


@computes("onnx::Det")
def det(x: Array) -> Array:
    """Determinants of the matrices in the last two axes."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise Error("IRC421", f"the last two axes of the input, of shape {list(x.shape)}, must have one size")
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    return np.asarray(np.linalg.det(wide), x.dtype)
