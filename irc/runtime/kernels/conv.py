"""Convolutions: Conv, ConvInteger, ConvTranspose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array
from irc.runtime.kernels.windows import Window, resolver

if TYPE_CHECKING:
    from irc.ir import Node


def check_ranks(x: Array, w: Array) -> None:
    """Error unless ``x`` is (N, C, spatial...) and ``w`` has as many dimensions."""
    if x.ndim < 3 or w.ndim != x.ndim:
        raise Error(
            "IRC423",
            f"the input has shape {list(x.shape)} and the weights {list(w.shape)}: both must have the same number "
            "of dimensions, at least 3 (batch, channels, spatial axes)",
        )


@kernel("onnx::Conv")
def conv(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        check_ranks(x, w)
        return convolve(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), out)

    return run
