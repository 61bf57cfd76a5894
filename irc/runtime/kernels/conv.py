"""Conv and its integer form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array
from irc.runtime.kernels.windows import Window, resolver

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::Conv")
def conv(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        return convolve(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), out)

    return run


@kernel("onnx::ConvInteger")
def conv_integer(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
        kind = exact_float(w[0].size if len(w) else 0)
        if w_zero is not None and w_zero.ndim == 1:  # one an output channel
            w_zero = w_zero.reshape(-1, *(1,) * (w.ndim - 1))
        product = convolve(
            centred(x, x_zero, kind), centred(w, w_zero, kind), None, group, resolve(x.shape[2:], w.shape[2:])
        )
        return product.astype(np.int64).astype(np.int32)

    return run


def exact_float(terms: int) -> type[np.floating]:
    """The float type in which a sum of ``terms`` products of two centred 8-bit integers is exact.

    BLAS multiplies floats only, and is many times faster than integer arithmetic. A product is at
    most 255 * 255; float32 holds integers up to 2**24 exactly, float64 up to 2**53.
    """
    return np.float32 if terms * 255 * 255 <= 1 << 24 else np.float64


def centred(x: Array, zero: Array | None, dtype: type[np.floating]) -> Array:
    """``x`` less its zero point, as floats."""
    values = x.astype(dtype)
    if zero is not None:
        values -= zero.astype(dtype)
    return values
