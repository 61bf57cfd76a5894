"""Conv."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
