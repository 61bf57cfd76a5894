"""Bounds that keep the sign of zero, and negation: what NumPy's own ufuncs do otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from irc.runtime.kernels.support import Array


def constant(value: float) -> Array:
    """``value`` as a 0-d float32 array."""
    return np.array(value, np.float32)


FILLED = 1 << 14
"""Elements of a block filled with a number."""

WORTH_FILLING = 1 << 13
"""Elements from which on such a block saves more time than it takes."""


BY = "by"
"""Attribute of what `bounded` returns: makes the same function for a bound that is known."""


def bounded(ufunc: Callable[..., Any]) -> Callable[..., Array]:
    """``np.maximum`` or ``np.minimum`` of an array and a bound that broadcasts to it: ``(x, bound, out=None)``.

    Where both are zero, the result is ``x``, with its sign, as comparisons define it (``x < bound ? bound : x``).
    NumPy's loops take four times as long for an array and a number as for two arrays, so a large array meets a block
    filled with the number.
    """
    kept = _Kept(ufunc)

    def pair(x: Array, bound: Array, out: Array | None = None) -> Array:
        which = kept[x.dtype]
        if which == 1:
            return ufunc(bound, x, out=out, order="C")
        if which == 0:
            return ufunc(x, bound, out=out, order="C")
        equal = np.equal(x, bound)
        zeros = np.broadcast_to(x, equal.shape)[equal]  # before `out`, which may be `x`, is written
        found = np.asarray(ufunc(x, bound, out=out, order="C"))
        found[equal] = zeros
        return found

    def function(x: Array, bound: Array, out: Array | None = None) -> Array:
        is_large = x.size >= WORTH_FILLING and not bound.ndim and x.dtype == bound.dtype
        if not is_large or not (x.flags.c_contiguous and (out is None or out.flags.c_contiguous)):
            return np.asarray(pair(x, bound, out))
        found = np.empty(x.shape, x.dtype) if out is None else out
        filled = _filled(x.dtype, bound.tobytes())
        source, target, whole = x.reshape(-1), found.reshape(-1), x.size // FILLED * FILLED
        if whole:
            pair(source[:whole].reshape(-1, FILLED), filled, target[:whole].reshape(-1, FILLED))
        if whole < x.size:
            pair(source[whole:], filled[: x.size - whole], target[whole:])
        return found

    def by(bound: Array) -> Callable[..., Array]:
        dtype = bound.dtype if kept[bound.dtype] == 1 else None

        def of_one(x: Array, out: Array | None = None) -> Array:
            if x.dtype is dtype and x.ndim and x.size < WORTH_FILLING:  # as `pair`, without calls on the way
                return ufunc(bound, x, out=out, order="C")
            return function(x, bound, out)

        return of_one

    setattr(function, BY, by)
    return function


class _Kept(dict[np.dtype[Any], "int | None"]):
    """`_kept_zero` of a ufunc, by element type."""

    def __init__(self, ufunc: Callable[..., Any]) -> None:
        super().__init__()
        self.ufunc = ufunc

    def __missing__(self, dtype: np.dtype[Any]) -> int | None:
        found = self[dtype] = _kept_zero(self.ufunc, dtype)
        return found


def _kept_zero(ufunc: Callable[..., Any], dtype: np.dtype[Any]) -> int | None:
    """Which of two zeros of different signs ``ufunc`` gives: operand 0 or 1; None if it depends on signs or sizes.

    It is a matter of the processor's instructions and of NumPy's loops. Of integers there is one zero.
    """
    if dtype.kind not in "fV":
        return 1
    plus = np.zeros(2 * _PROBED, dtype)
    signs = set[bool]()
    for first, second in ((plus, -plus), (-plus, plus)):
        for step in (1, 2):
            for size in (1, 3, _PROBED):
                x, y = first[::step][:size], second[::step][:size]
                for left, right in ((x, y), (x[0], y), (x, y[0])):
                    is_first = np.signbit(ufunc(left, right)) == np.signbit(x)
                    signs.update(map(bool, is_first))
    return None if len(signs) > 1 else int(not signs.pop())


_PROBED = 67
"""More than the widest vectors hold, and not a multiple of them."""


@lru_cache(maxsize=16)
def _filled(dtype: np.dtype[Any], number: bytes) -> Array:
    """A block of one number, given by its bytes."""
    block = np.frombuffer(number, dtype).repeat(FILLED)
    block.flags.writeable = False
    return block


at_least, at_most = bounded(np.maximum), bounded(np.minimum)


def negative(x: Array, out: Array | None = None) -> Any:
    """-x. NumPy 2.4's own is wrong for some steps between elements, where operand and result both have them."""
    if out is None or x.flags.c_contiguous or out.flags.c_contiguous:
        return np.negative(x, out)
    np.copyto(out, np.negative(x))
    return out
