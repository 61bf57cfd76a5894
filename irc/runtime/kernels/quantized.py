"""Linear quantization, and products of quantized tensors.

Scales and zero points are one for the tensor, one for each index of an axis, or
one for each block along an axis.

BLAS multiplies floats only, and is many times faster than NumPy's integer
arithmetic: 8-bit integers are multiplied as floats that hold every sum exactly,
which float32 does more often than not: weights are mostly small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir.types import DType
from irc.runtime.bounds import CURRENT, check_work
from irc.runtime.kernels.cast import conversion
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.numerics import at_least, at_most, constant
from irc.runtime.kernels.registry import PREPARES, F, Kernel, computes
from irc.runtime.kernels.support import AnyDType, Array, axis_in, check_size, filled, numpy_dtype, placed, shapes_of
from irc.runtime.kernels.windows import resolver


def _spread(scale: Array, x: Array, axis: int, block: int) -> Array:
    """``scale`` (or a zero point) in a shape that broadcasts against ``x``."""
    if scale.size == 1 and not block:
        return scale.reshape(())
    along = axis_in(axis, x.ndim)
    if block < 0:
        raise Error("IRC320", f"block_size is {block}; it must not be negative")
    if block:
        wide = scale.repeat(min(block, x.shape[along]), along) if scale.ndim == x.ndim else scale
        covering = wide[(slice(None),) * along + (slice(0, x.shape[along]),)] if wide.ndim == x.ndim else wide
        if covering.shape != x.shape:
            raise Error("IRC421", f"scales {list(scale.shape)} in blocks of {block} do not cover {list(x.shape)}")
        return covering
    if scale.shape != (x.shape[along],):
        raise Error("IRC421", f"scales of shape {list(scale.shape)} do not fit axis {axis} of {list(x.shape)}")
    return scale.reshape((-1,) + (1,) * (x.ndim - along - 1))


def _limits(dtype: AnyDType) -> tuple[int, int] | None:
    """The range of an integer type, of whatever width; None for floats."""
    found = DType.from_numpy(dtype)
    if not found.is_integer:
        return None
    unsigned = found.numpy_name.startswith("u")
    return (0, (1 << found.bits) - 1) if unsigned else (-(1 << (found.bits - 1)), (1 << (found.bits - 1)) - 1)


def _linear(x: Array, scale: Array, zero: Array | None, axis: int, block: int, dtype: AnyDType) -> Array | None:
    """``x`` as ``dtype`` by machine code; None if there is none for it."""
    along = axis if scale.size == 1 else axis_in(axis, x.ndim)
    is_one = scale.size == 1 or scale.shape == (x.shape[along],)
    if block or not is_one or (zero is not None and (zero.size != scale.size or zero.dtype not in (x.dtype, dtype))):
        return None
    made = np.empty(check_size(x.shape, dtype), dtype)
    return made if CURRENT.scope.loops.linear(x, scale, zero, along, made) else None


@computes("onnx::QuantizeLinear")
def quantize_linear(
    x: Array,
    scale: Array,
    zero: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: bool = True,
) -> Array:
    """saturate(round(x / scale) + zero point), rounding half to even; floats are not rounded to integers."""
    dtype = numpy_dtype(output_dtype) if output_dtype else np.dtype(np.uint8) if zero is None else zero.dtype
    # Before version 23 all have one type; then the scale's type, or the attribute, is the division's.
    exact = numpy_dtype(precision) if precision else x.dtype if scale.dtype.kind in "iu" else scale.dtype
    if DType.from_numpy(exact) is DType.FLOAT8E8M0 or exact.kind in "iu":
        exact = np.dtype(np.float32)
    if exact == scale.dtype and (made := _linear(x, scale, zero, axis, block_size, dtype)) is not None:
        return made
    divided = np.asarray(x.astype(exact, copy=False) / _spread(scale, x, axis, block_size).astype(exact))
    wide: Array = divided.astype(np.float32, copy=False) if exact != np.float64 else divided
    limits = _limits(dtype)
    if limits is not None:
        np.rint(wide, out=wide)
    if zero is not None:
        offset = _spread(zero, x, axis, block_size).astype(np.float32)
        if limits is None or offset.any():  # of floats, 0 loses its sign
            wide += offset
    if limits is None:
        return conversion(dtype, saturate)(wide)
    np.clip(wide, *limits, out=wide)
    return wide.astype(np.int32).astype(dtype, order="C")


@computes("onnx::DequantizeLinear")
def dequantize_linear(
    x: Array, scale: Array, zero: Array | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Array:
    """(x - zero point) scale, in the type of the scale or of ``output_dtype``."""
    dtype = numpy_dtype(output_dtype) if output_dtype else scale.dtype
    if (made := _linear(x, scale, zero, axis, block_size, dtype)) is not None:
        return made
    exact = x.dtype.kind in "iu" and x.itemsize > 2  # floats hold the differences of smaller integers
    wide = np.dtype(np.int64 if exact else np.float32)
    shifted = x.astype(wide)
    if zero is not None:
        shifted = shifted - _spread(zero, x, axis, block_size).astype(wide)
    scaled = shifted.astype(np.float32, copy=False) * _spread(scale, x, axis, block_size).astype(np.float32)
    return np.asarray(scaled).astype(dtype, order="C", copy=False)


_UINT8 = np.dtype(np.uint8)


@computes("onnx::DynamicQuantizeLinear")
def dynamically_quantized(x: Array, outs: tuple[Array, Array, Array] | None = None) -> tuple[Array, Array, Array]:
    """``x`` as uint8 by its range, widened to hold 0; the scale, float32; the zero point, uint8."""
    made = outs or (np.empty(check_size(x.shape, _UINT8), _UINT8), np.empty((), np.float32), np.empty((), _UINT8))
    if CURRENT.scope.loops.quantize(x, *made):
        return made
    low = np.minimum(x.min(initial=np.float32(0)), np.float32(0))
    high = np.maximum(x.max(initial=np.float32(0)), np.float32(0))
    scale = np.asarray((high - low) / np.float32(255), np.float32)
    if scale == 0:
        scale = np.array(1, np.float32)
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255)).astype(np.uint8)
    quantized = np.clip(np.rint(x / scale) + zero.astype(np.float32), 0, 255)
    for out, each in zip(made, (quantized, scale, zero)):
        np.copyto(out, each, casting="unsafe")
    return made


_INT32 = np.dtype(np.int32)

_EXACT = 1 << 24
"""Integers up to this are exact in float32."""


class Weights(NamedTuple):
    """The second operand of products, less its zero point.

    Attributes:
        values: as float32.
        most: the largest sum of magnitudes over what one output adds up: times the first operand's largest one, it
            bounds all sums on the way.
    """

    values: Array
    most: Array


def _filters(w: Array, zero: Array | None = None) -> Weights:
    return _weights(w, None if zero is None else _column(zero, w.ndim), tuple(range(1, w.ndim)))


def columns(b: Array, zero: Array | None = None) -> Weights:
    """The second operand of a matrix product, less its zero point: one, or one a column."""
    return _weights(b, zero, -2 if b.ndim > 1 else 0)


def _weights(w: Array, zero: Array | None, axes: int | tuple[int, ...]) -> Weights:
    values = centred(w, zero, np.dtype(np.float32))
    return Weights(values, np.asarray(np.abs(values).sum(axis=axes, dtype=np.float64).max(initial=0)))


def _operands(x: Array, zero: Array | None, weights: Weights) -> tuple[Array, Array]:
    """Both as floats whose products have exact sums.

    Float8 operands have no exact sums; float32 is the best there is to promise.
    """
    dtype = np.dtype(np.float32)
    if x.dtype.kind in "iu":
        limits, zeros = np.iinfo(x.dtype), [0] if zero is None or not zero.size else [int(zero.min()), int(zero.max())]
        if float(weights.most) * max(limits.max - zeros[0], zeros[-1] - limits.min) > _EXACT:
            dtype = np.dtype(np.float64)
    return centred(x, zero, dtype), weights.values.astype(dtype, copy=False)


def centred(x: Array, zero: Array | None, dtype: AnyDType) -> Array:
    """``x`` less its zero point, as floats."""
    values = x.astype(dtype)
    if zero is None:
        return values
    try:
        values -= zero.astype(dtype)
    except ValueError:
        raise Error("IRC421", f"a zero point of shape {list(zero.shape)} does not fit {list(x.shape)}") from None
    return values


def _column(value: Array, rank: int) -> Array:
    """A vector with one entry for each row or output channel, so that it broadcasts against ``rank`` axes."""
    return value if value.ndim != 1 or value.size == 1 else value.reshape(-1, *(1,) * (rank - 1))


def _int32(sums: Array) -> Array:
    """Exact sums as int32, which overflows as in 32 bits."""
    is_wide = sums.dtype.itemsize > _INT32.itemsize
    return (sums.astype(np.int64) if is_wide else sums).astype(np.int32, copy=False)


def _requantized(sums: Array, scales: tuple[Array, Array], y_scale: Array, zero: Array) -> Array:
    """``saturate(round(sums * scales / y_scale) + zero)`` in the type of ``zero``, rounding half to even."""
    try:
        factor = scales[0].astype(np.float32) * scales[1].astype(np.float32) / y_scale.astype(np.float32)
        scaled: Array = sums.astype(np.float32, copy=False)
        scaled *= factor
        if zero.dtype.kind in "iu":
            np.rint(scaled, out=scaled)
        scaled += zero.astype(np.float32)
    except ValueError:
        shapes = shapes_of(*scales, y_scale, zero)
        raise Error("IRC421", f"scales and zero point of shapes {shapes} do not fit {list(sums.shape)}") from None
    if zero.dtype.kind not in "iu":
        return conversion(zero.dtype, True)(scaled)
    limits = np.iinfo(zero.dtype)
    at_least(scaled, constant(limits.min), scaled)
    at_most(scaled, constant(limits.max), scaled)
    return scaled.astype(zero.dtype)


def _conv_sums(
    x: Array, w: Array | Weights, zeros: Sequence[Array | None], group: int, resolve: Any, b: Array | None = None
) -> Array:
    x_zero, w_zero = zeros
    weights = w if isinstance(w, Weights) else _filters(w, w_zero)
    values, filters = _operands(x, x_zero, weights)
    if b is not None and not np.array_equal(b.astype(values.dtype), b):
        values, filters = values.astype(np.float64), filters.astype(np.float64)
    bias = None if b is None else b.astype(values.dtype)
    return convolve(values, filters, bias, group, resolve(x.shape[2:], filters.shape[2:]), exact=True)


def _preparing(weights: int, make: Kernel) -> Callable[[F], F]:
    """Mark a kernel whose operand ``weights``, with its zero point two further on, ``make`` prepares."""

    def mark(run: F) -> F:
        setattr(run, PREPARES, ((weights, weights + 2), make))
        return run

    return mark


@computes("onnx::ConvInteger", since=10, resolve=resolver)
@_preparing(1, _filters)
def conv_integer(x: Array, w: Array | Weights, *zeros: Array | None, resolve: Any, group: int = 1) -> Array:
    return _int32(_conv_sums(x, w, filled(zeros, None, None), group, resolve))


@computes("onnx::QLinearConv", since=10, resolve=resolver)
@_preparing(3, _filters)
def qlinear_conv(*operands: Any, resolve: Any, group: int = 1) -> Array:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b = filled(operands, *[None] * 9)
    sums = _conv_sums(x, w, (x_zero, w_zero), group, resolve, b)
    return _requantized(sums, (x_scale, _column(w_scale, x.ndim - 1)), y_scale, y_zero)


def matmul_sums(a: Array, b: Array | Weights, a_zero: Array | None, b_zero: Array | None = None) -> Array:
    """The exact product of integer matrices less their zero points, in a type that holds all sums."""
    weights = b if isinstance(b, Weights) else columns(b, b_zero)
    values = weights.values
    is_one = a_zero is None or (a_zero.size == 1 and a_zero.dtype == a.dtype)
    if values.ndim == 2 and a.ndim and a.shape[-1] == len(values) and is_one:
        check_work(a.size * values.shape[1])
        sums = np.empty(check_size((*a.shape[:-1], values.shape[1]), _INT32), _INT32)
        if CURRENT.scope.loops.integers(a, 0 if a_zero is None else int(a_zero.item()), values, sums):
            return sums
    return matrix_product(*_operands(a, None if a_zero is None else _column(a_zero, 2), weights))


@computes("onnx::MatMulInteger", since=10)
@_preparing(1, columns)
def matmul_integer(
    a: Array,
    b: Array | Weights,
    a_zero: Array | None = None,
    b_zero: Array | None = None,
    out: Array | None = None,
) -> Array:
    return placed(_int32(matmul_sums(a, b, a_zero, b_zero)), out)


@computes("onnx::QLinearMatMul", since=10)
@_preparing(3, columns)
def qlinear_matmul(*operands: Any) -> Array:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = operands
    return _requantized(matmul_sums(a, b, a_zero, b_zero), (_column(a_scale, 2), b_scale), y_scale, y_zero)
