"""A fast path for most calls: float tensors of one type, in order in memory, or one of them and a number.

Then everything is known that `pointwise` determines anew for each call (the element type of the result, that to compute
in, the layout of the result), which takes longer than computing a small tensor: 5 microseconds of 6, measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.runtime.kernels.aten.element_types import FLOAT32, FLOAT64, takes_floats
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array

_NDARRAY = np.ndarray

_EXACT = 1 << 24
"""Integers up to this are float32's as they are."""


def shortened(name: str, operands: int, compute: Kernel, rest: tuple[Any, ...], run: Kernel) -> Kernel:
    """``run``, the kernel of torch's operator ``name``, replaced by ``compute`` for most calls.

    Args:
        name: without ``aten::``.
        operands: how many operands there are, one or two.
        compute: what ``run`` computes of floats: a new array, which lies in order if all operands do.
        rest: further arguments with which ``run`` still only computes that.
        run: for all arguments.
    """
    if not takes_floats(name):
        return run
    return _of_one(run, compute) if operands == 1 else _of_two(run, compute, rest)


def _is_plain(x: Array) -> bool:
    """Whether what has the element type and the order of ``x`` is computed as it is."""
    return (x.dtype is FLOAT32 or x.dtype is FLOAT64) and x.ndim > 0 and x.flags.c_contiguous


def _of_one(run: Kernel, compute: Kernel) -> Kernel:
    def kernel(x: Any, *more: Any, out: Array | None = None) -> Any:
        if x.__class__ is _NDARRAY and not more and _is_plain(x):
            return compute(x) if out is None else compute(x, out=out)  # naming it takes a tenth of the time
        return run(x, *more, out=out)

    return kernel


def _of_two(run: Kernel, compute: Kernel, rest: tuple[Any, ...]) -> Kernel:
    takes_numbers = isinstance(compute, np.ufunc)  # takes a number in the type of the array

    def kernel(x: Any, y: Any, *more: Any, out: Array | None = None) -> Any:
        if x.__class__ is _NDARRAY and (not more or more == rest) and _is_plain(x):
            if y.__class__ is _NDARRAY:
                if y.dtype is x.dtype and y.flags.c_contiguous:
                    try:
                        return compute(x, y) if out is None else compute(x, y, out=out)
                    except ValueError:  # shapes that do not broadcast: ``run`` says so
                        pass
            elif takes_numbers and (y.__class__ is float or (y.__class__ is int and -_EXACT <= y <= _EXACT)):
                return compute(x, y) if out is None else compute(x, y, out=out)
        return run(x, y, *more, out=out)

    return kernel
