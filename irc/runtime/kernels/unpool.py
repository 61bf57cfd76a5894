"""MaxUnpool: maxima back to where MaxPool found them, zeros elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.pool import check_spatial
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size, ints
from irc.runtime.kernels.windows import Window

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::MaxUnpool")
def max_unpool(node: Node) -> Kernel:
    window = Window.of(node)

    def run(x: Array, indices: Array, output_shape: Array | None = None) -> Array:
        check_spatial(x)
        if indices.shape != x.shape:
            raise Error("IRC421", f"the indices have shape {list(indices.shape)}, the maxima {list(x.shape)}")
        rank = x.ndim - 2
        kernel_shape, strides, _, pads = window.parameters(rank)
        sides = zip(x.shape[2:], kernel_shape, strides, pads[:rank], pads[rank:], strict=True)
        sizes = [(size - 1) * s + k - begin - end for size, k, s, begin, end in sides]
        shape = check_size((*x.shape[:2], *sizes), x.dtype)
        flat = np.zeros(math.prod(shape), x.dtype)
        if indices.size and not (indices.min() >= 0 and indices.max() < flat.size):
            raise Error("IRC423", f"an index is outside the result, which has shape {list(shape)}")
        flat[indices.ravel()] = x.ravel()
        result = flat.reshape(shape)
        return result if output_shape is None else _within(result, ints(output_shape))

    return run


def _within(x: Array, shape: list[int]) -> Array:
    """``x`` at the origin of a tensor of zeros.

    The indices count in the shape that the attributes give, whatever ``output_shape`` says: so in
    the node suite's ``test_maxunpool_export_with_output_shape``.
    """
    if len(shape) != x.ndim or any(n < m for n, m in zip(shape, x.shape, strict=False)):
        raise Error("IRC421", f"output_shape {shape} is smaller than the unpooled shape {list(x.shape)}")
    result = np.zeros(check_size(shape, x.dtype), x.dtype)
    result[tuple(slice(0, n) for n in x.shape)] = x
    return result
