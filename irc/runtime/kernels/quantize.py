"""Linear quantization: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

Scales and zero points are one for the tensor, one for each index of an axis, or
one for each block along an axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.ir.types import DType
from irc.runtime.kernels.cast import conversion
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.support import AnyDType, Array, axis_in, numpy_dtype

if TYPE_CHECKING:
    pass


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
    exact = x.dtype.kind in "iu" and x.itemsize > 2  # floats hold the differences of smaller integers
    wide = np.dtype(np.int64 if exact else np.float32)
    shifted = x.astype(wide)
    if zero is not None:
        shifted = shifted - _spread(zero, x, axis, block_size).astype(wide)
    scaled = shifted.astype(np.float32, copy=False) * _spread(scale, x, axis, block_size).astype(np.float32)
    return np.asarray(scaled).astype(dtype, order="C", copy=False)


@computes("onnx::DynamicQuantizeLinear")
def dynamically_quantized(x: Array) -> tuple[Array, Array, Array]:
    """``x`` as uint8 by its range, widened to hold 0; the scale, float32; the zero point, uint8."""
    low = np.minimum(x.min(initial=np.float32(0)), np.float32(0))
    high = np.maximum(x.max(initial=np.float32(0)), np.float32(0))
    scale = np.asarray((high - low) / np.float32(255), np.float32)
    if scale == 0:
        scale = np.array(1, np.float32)
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255)).astype(np.uint8)
    quantized = np.clip(np.rint(x / scale) + zero.astype(np.float32), 0, 255)
    return np.asarray(quantized).astype(np.uint8, order="C"), scale, zero
