"""An inline cache of Conv: how the latest input was convolved, which one like it is without being looked at.

Most of what a small convolution takes is to find out what its operands are. Each Conv of a model mostly meets inputs of
one shape, and the same weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.inner_loops import LOOPS, Convolve
from irc.ops.algebra import SINGLE
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.convolution import repeats_one_filter
from irc.runtime.kernels.support import is_constant
from irc.runtime.kernels.windows import resolver

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel


class _Latest(NamedTuple):
    """Operands, and what convolves others like them.

    Attributes:
        shape: of the input.
        strides: likewise.
        w: the weights.
        b: the bias, or None.
        result: the shape of the result.
        convolve: of an input and an array for the result, whether it made that; None if there is no code.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    w: Array
    b: Array | None
    result: tuple[int, ...]
    convolve: Convolve | None


def convolving(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of the Conv ``node``, with an inline cache."""
    group, resolve = node.attributes.get("group", 1), resolver(node)
    latest: _Latest | None = None

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if (
            known is None
            or known.w is not w
            or known.b is not b
            or known.shape != x.shape
            or known.strides != x.strides
            or x.dtype != SINGLE
        ):
            made: Array = kernel(x, w, b, out=out)
            if x.dtype == SINGLE and x.flags.c_contiguous and made.size and _are_constant(w, b):
                convolve = LOOPS.convolver(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), made)
                latest = _Latest(x.shape, x.strides, w, b, made.shape, convolve)
            return made
        if known.convolve is not None and CURRENT.scope.guard is None:
            result = np.empty(known.result, SINGLE) if out is None else out
            if known.convolve(x, result):
                return result
        return kernel(x, w, b, out=out)

    return run


def _are_constant(w: Array, b: Array | None) -> bool:
    return is_constant(w) and (b is None or is_constant(b)) and w.dtype == SINGLE and not repeats_one_filter(w)
