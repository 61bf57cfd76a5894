"""How elementwise functions become kernels that take ``out=``.

Every pointwise kernel has the form ``run(*inputs, out=None)``: it broadcasts its
inputs, and with ``out`` (of the result's shape and dtype; it may be one of the
inputs) writes there instead of into a new array.

NumPy finds a function for any types, with a result of one that holds both, but ONNX's
operators have operands of certain types, mostly all of one. ``casting="equiv"`` leaves
only functions of just the types given; else a result would be of another type where
it is made in a new array than where it overwrites an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.runtime.kernels.half_ufuncs import MANY, of_halves
from irc.runtime.kernels.halves import BLOCK as HALVES
from irc.runtime.kernels.halves import HALF, narrowed, widened
from irc.runtime.kernels.numerics import Function
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, broadcast_shape, is_half, shapes_differ

_NDARRAY = np.ndarray  # looked up at each call

_UFUNC = "ufunc"

BLOCK_BYTES = 1 << 20
"""Of an operand that a function of several steps treats at once, so that what lies between the steps stays in cache. No
block of a fusion group is larger: to cut these again would take a twentieth longer on two threads."""


def of_one(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that is one ufunc of one input."""
    halves = of_halves(ufunc)

    def run(x: Array, out: Array | None = None) -> Array:
        if x.dtype is HALF and halves is not None and x.size >= MANY:
            return halves(x, out=out)
        if out is None:
            result = ufunc(x, order="C", casting="equiv")
            return result if type(result) is _NDARRAY else np.asarray(result)  # a ufunc of 0-d arrays returns a scalar
        return ufunc(x, out)

    setattr(run, _UFUNC, ufunc)
    return run


def of_two(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that is one ufunc of two inputs."""
    halves = of_halves(ufunc)

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        try:
            if x.dtype is HALF is y.dtype and halves is not None and max(x.size, y.size) >= MANY:
                return halves(x, y, out=out)
            if out is None:
                result = ufunc(x, y, order="C", casting="equiv")
                return result if type(result) is _NDARRAY else np.asarray(result)
            return ufunc(x, y, out=out, casting="equiv")
        except ValueError as error:
            raise shapes_differ(error, x, y) from None

    if ufunc not in (np.maximum, np.minimum):  # NumPy deprecates `out` as their third argument
        setattr(run, _UFUNC, ufunc)
    return run


def ufunc_of(kernel: Kernel) -> Callable[..., Any] | None:
    """The ufunc that ``kernel`` is, to be called with the array for the result last, which is the fastest way."""
    return getattr(kernel, _UFUNC, None)


def of_many(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that folds any number of inputs, at least one, with a ufunc of two."""
    pair = of_two(ufunc)

    def run(*inputs: Array, out: Array | None = None) -> Array:
        if len(inputs) == 1:
            return copy(inputs[0], out)
        total = inputs[0]
        for x in inputs[1:-1]:  # not in `out` yet, which may be an input that is still to be read
            total = pair(total, x)
        return pair(total, inputs[-1], out)

    return run


def of_function(function: Function) -> Kernel:
    """A kernel that applies a function of `numerics`.

    What is neither float32 nor float64 is computed in float32 (small floats) or
    float64 (integers) and rounded once, at the end.
    """

    def run(x: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(x.shape, x.dtype)
        if x.dtype.char in "fd":
            _blockwise(function, x, out)
        else:
            _blockwise(lambda x, out: _computed_widely(function, x, out), x, out, HALVES)
        return out

    return run


def _computed_widely(function: Function, x: Array, out: Array) -> None:
    wide = scratch("wide", x.shape, wide_dtype(x))
    _widely(x, wide)
    function(wide, wide)
    narrowed(wide, out.dtype, out)


def of_function_of_two(function: Callable[[Array, Array, Array], Any]) -> Kernel:
    """A kernel that applies ``function(x, y, out)``, which broadcasts its inputs; widened as in `of_function`."""

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        try:
            if out is None:
                out = np.empty(broadcast_shape(x.shape, y.shape), x.dtype)
            if x.dtype.char in "fd":
                function(x, y, out)
            else:
                wide = np.empty(out.shape, wide_dtype(x))
                left, right = (_widely(a, np.empty(a.shape, wide.dtype)) for a in (x, y))
                function(left, right, wide)
                narrowed(wide, out.dtype, out)
        except ValueError as error:
            raise shapes_differ(error, x, y) from None
        return out

    return run


def copy(x: Array, out: Array | None) -> Array:
    """``x`` written to ``out``, or to a new array."""
    if out is None:
        return x.copy()
    np.copyto(out, x)
    return out


def wide_dtype(x: Array) -> np.dtype[Any]:
    """The element type to compute in, for functions of several steps: float32 for small floats, else float64."""
    return np.dtype(np.float32 if is_half(x.dtype) else np.float64)


def _widely(x: Array, out: Array) -> Array:
    if is_half(x.dtype):
        return widened(x, out)
    np.copyto(out, x)
    return out


def _blockwise(function: Function, x: Array, out: Array, block: int = 0) -> None:
    block = block or max(1, BLOCK_BYTES // x.itemsize)
    if x.size <= block or not (x.flags.c_contiguous and out.flags.c_contiguous):
        function(x, out)
        return
    source, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, block):
        function(source[start : start + block], target[start : start + block])
