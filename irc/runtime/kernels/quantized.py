"""Products of quantized tensors: ConvInteger, QLinearConv, MatMulInteger, QLinearMatMul.

BLAS multiplies floats only, and is many times faster than NumPy's integer
arithmetic: 8-bit integers are multiplied as floats that hold every sum exactly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.cast import conversion
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.kernels.windows import Axes, Window, resolver

if TYPE_CHECKING:
    from irc.ir import Node


def exact_float(terms: int, *dtypes: AnyDType) -> AnyDType:
    """The float type in which a sum of ``terms`` products of two centred 8-bit integers is exact.

    A product is at most 255 * 255; float32 holds integers up to 2**24 exactly, float64 up to 2**53.
    Float8 operands have no exact sums; float32 is the best there is to promise.
    """
    small = terms * 255 * 255 <= 1 << 24 or any(t.kind not in "iu" for t in dtypes)
    return np.dtype(np.float32 if small else np.float64)


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
    return sums.astype(np.int64).astype(np.int32)


def _requantized(sums: Array, scales: tuple[Array, Array], y_scale: Array, zero: Array) -> Array:
    """``saturate(round(sums * scales / y_scale) + zero)`` in the type of ``zero``, rounding half to even."""
    try:
        factor = scales[0].astype(np.float32) * scales[1].astype(np.float32) / y_scale.astype(np.float32)
        scaled = sums.astype(np.float32) * factor
        if scaled.shape != sums.shape:
            raise ValueError
        offset = np.broadcast_to(zero, scaled.shape).astype(np.float32)
    except ValueError:
        shapes = ", ".join(str(list(v.shape)) for v in (*scales, y_scale, zero))
        raise Error("IRC421", f"scales and zero point of shapes {shapes} do not fit {list(sums.shape)}") from None
    if zero.dtype.kind not in "iu":
        return conversion(zero.dtype, True)(scaled + offset)
    limits = np.iinfo(zero.dtype)
    return np.asarray(np.clip(np.rint(scaled) + offset, limits.min, limits.max)).astype(zero.dtype)


def _conv_sums(x: Array, w: Array, x_zero: Array | None, w_zero: Array | None, group: int, axes: Axes) -> Array:
    kind = exact_float(math.prod(w.shape[1:]))
    zero = None if w_zero is None else _column(w_zero, w.ndim)
    return convolve(centred(x, x_zero, kind), centred(w, zero, kind), None, group, axes)


@kernel("onnx::ConvInteger", since=10)
def conv_integer(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
        return _int32(_conv_sums(x, w, x_zero, w_zero, group, resolve(x.shape[2:], w.shape[2:])))

    return run


@kernel("onnx::QLinearConv", since=10)
def qlinear_conv(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(
        x: Array,
        x_scale: Array,
        x_zero: Array,
        w: Array,
        w_scale: Array,
        w_zero: Array,
        y_scale: Array,
        y_zero: Array,
        b: Array | None = None,
    ) -> Array:
        sums = _conv_sums(x, w, x_zero, w_zero, group, resolve(x.shape[2:], w.shape[2:]))
        if b is not None:
            if b.shape != w.shape[:1]:
                raise Error("IRC421", f"the bias has shape {list(b.shape)}, expected {list(w.shape[:1])}")
            sums = sums + b.astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))
        return _requantized(sums, (x_scale, _column(w_scale, x.ndim - 1)), y_scale, y_zero)

    return run


def _matmul_sums(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    kind = exact_float(a.shape[-1] if a.ndim else 0, a.dtype, b.dtype)
    zero = None if a_zero is None else _column(a_zero, 2)
    return matrix_product(centred(a, zero, kind), centred(b, b_zero, kind))


@kernel("onnx::MatMulInteger", since=10)
def matmul_integer(node: Node) -> Kernel:
    def run(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
        return _int32(_matmul_sums(a, b, a_zero, b_zero))

    return run


@kernel("onnx::QLinearMatMul", since=10)
def qlinear_matmul(node: Node) -> Kernel:
    def run(
        a: Array,
        a_scale: Array,
        a_zero: Array,
        b: Array,
        b_scale: Array,
        b_zero: Array,
        y_scale: Array,
        y_zero: Array,
    ) -> Array:
        return _requantized(_matmul_sums(a, b, a_zero, b_zero), (_column(a_scale, 2), b_scale), y_scale, y_zero)

    return run
