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

from irc.runtime.kernels.float16 import HALF, MANY, of_halves
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, shapes_differ

_NDARRAY = np.ndarray  # looked up at each call

_UFUNC = "ufunc"


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


def copy(x: Array, out: Array | None) -> Array:
    """``x`` written to ``out``, or to a new array."""
    if out is None:
        return x.copy()
    np.copyto(out, x)
    return out
