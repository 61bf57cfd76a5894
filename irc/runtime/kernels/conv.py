"""Conv and its integer form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.matmul import centred, exact_float
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
