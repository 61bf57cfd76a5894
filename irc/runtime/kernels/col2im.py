"""Col2Im: blocks back into an image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, c_order, check_size, ints

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::Col2Im")
def col2im(node: Node) -> Kernel:
    """Of blocks [n, c * elements of a block, blocks] the sums where they overlap, [n, c, *image]."""
    given = {name: node.attributes.get(name) for name in ("dilations", "strides", "pads")}

    def run(x: Array, image: Array, block: Array) -> Array:
        sizes, kernel_sizes = ints(image), ints(block)
        rank = len(sizes)
        dilations, strides = (given[name] or [1] * rank for name in ("dilations", "strides"))
        pads: list[int] = given["pads"] or [0] * (2 * rank)
        lengths = (len(kernel_sizes), len(dilations), len(strides), len(pads))
        if lengths != (rank, rank, rank, 2 * rank) or not rank or min(*dilations, *strides) < 1 or min(pads) < 0:
            raise Error("IRC421", f"block_shape {kernel_sizes}, {given} do not fit an image of shape {sizes}")
        if min(kernel_sizes) < 1 or min(sizes) < 1:
            raise Error("IRC422", f"an image of shape {sizes} has no blocks of shape {kernel_sizes}")
        padded = [s + pads[i] + pads[i + rank] for i, s in enumerate(sizes)]
        axes = zip(padded, kernel_sizes, dilations, strides, strict=True)
        blocks = [(size - (k - 1) * d - 1) // s + 1 for size, k, d, s in axes]
        taps = math.prod(kernel_sizes)
        if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != math.prod(blocks) or min(blocks) < 1:
            wanted = f"[n, a multiple of {taps}, {math.prod(blocks) if min(blocks) > 0 else 'a number of blocks'}]"
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be {wanted}")
        channels = x.shape[1] // taps
        sums = np.zeros(check_size([len(x), channels, *padded], x.dtype), x.dtype)
        columns = x.reshape(len(x), channels, taps, *blocks)
        for tap, offset in enumerate(np.ndindex(*kernel_sizes)):
            steps = zip(offset, dilations, strides, blocks, strict=True)
            at = [slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, s, n in steps]
            sums[(..., *at)] += columns[:, :, tap]
            pace()
        return c_order(sums[(..., *(slice(pads[i], pads[i] + s) for i, s in enumerate(sizes)))])

    return run
