"""Functions of float16 that NumPy computes one number after the other, in float32: here, in float32 too, by blocks.

So results are the same, to the last bit: both convert the operands, compute and round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irc.runtime.kernels.halves import BLOCK, FLOAT, HALF, narrowed, widened
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, broadcast_shape, chosen

MANY = 1 << 14
"""Elements from which on that takes less time; of 200,000 a half, of maxima a quarter. (Without blocks, sums take as
long up to a million elements and maxima 1.3 times, then all 1.6 times.)"""

_ROUNDED = (
    *(np.add, np.subtract, np.multiply, np.divide),
    *(np.ceil, np.floor, np.reciprocal, np.rint, np.sqrt, np.square),
)
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal)
_SELECTIONS: dict[Any, Callable[[Array, Array], Any]] = {np.maximum: np.greater_equal, np.minimum: np.less_equal}


def of_halves(ufunc: Callable[..., Any]) -> Callable[..., Array] | None:
    """``(*operands, out=None)`` for operands of float16 that broadcast; None if ``ufunc`` is not known here."""
    select = _SELECTIONS.get(ufunc)
    if select is None and ufunc not in _ROUNDED and ufunc not in _COMPARISONS:
        return None
    dtype = np.dtype(np.bool_) if ufunc in _COMPARISONS else HALF

    def run(*operands: Array, out: Array | None = None) -> Array:
        shape = broadcast_shape(*[x.shape for x in operands])
        size = math.prod(shape)
        found: Array = np.empty(shape, dtype) if out is None else out
        # What is repeated is converted once, before `out`, which may be its memory, is written.
        wide = [np.broadcast_to(widened(x), shape) if x.size < size else None for x in operands]
        whole = [np.broadcast_to(x, shape) for x in operands]
        for part in _parts(shape):
            given, result = [x[part] for x in whole], found[part]
            numbers = [
                widened(x, scratch(purpose, x.shape, FLOAT)) if w is None else w[part]
                for purpose, x, w in zip(("a half", "another half"), given, wide, strict=False)
            ]
            if select is not None:
                x, y = numbers
                chosen(select(x, y) | (x != x), *given, out=result)
            elif dtype == HALF:
                narrowed(ufunc(*numbers, scratch("a half", result.shape, FLOAT)), HALF, result)  # over an operand
            else:
                ufunc(*numbers, result)
        return found

    return run


def _parts(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Blocks of an array: along one axis, where an element of those before it is not larger."""
    axis = next(i for i in range(len(shape)) if math.prod(shape[i + 1 :]) <= BLOCK)
    step = max(1, BLOCK // max(1, math.prod(shape[axis + 1 :])))
    for before in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*before, slice(start, start + step))
