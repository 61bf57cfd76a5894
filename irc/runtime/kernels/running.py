"""Running totals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from irc.runtime.kernels.support import Array

SIDE_BY_SIDE, LINES, SIZE = 16, 128, 1 << 13
"""How many adjacent numbers, lines, and elements in all are worth a call of NumPy for each step."""


def accumulate(ufunc: np.ufunc, x: Array, axis: int, out: Array) -> None:
    """``ufunc.accumulate(x, axis, out.dtype, out)``, to the last bit.

    NumPy follows one line after the other. All go a step at once here, where they lie side by side.
    """
    lines = x.size // max(x.shape[axis], 1)
    if x.size < SIZE or lines < LINES or math.prod(x.shape[axis + 1 :]) < SIDE_BY_SIDE:
        ufunc.accumulate(x, axis, dtype=out.dtype, out=out)
        return
    steps = np.array(np.moveaxis(x, axis, 0), out.dtype, order="C")
    for before, step in pairwise(steps.reshape(len(steps), lines)):
        ufunc(before, step, step)
    np.copyto(np.moveaxis(out, axis, 0), steps)
