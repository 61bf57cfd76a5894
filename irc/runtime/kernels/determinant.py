"""Det."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, is_half

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::Det")
def det(node: Node) -> Kernel:
    """Determinants of the matrices in the last two axes."""

    def run(x: Array) -> Array:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise Error("IRC421", f"the last two axes of the input, of shape {list(x.shape)}, must have one size")
        wide = x.astype(np.float32) if is_half(x.dtype) else x
        return np.asarray(np.linalg.det(wide), x.dtype)

    return run
