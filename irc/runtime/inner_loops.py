"""Loops inside of kernels that NumPy has no function for: a backend may have machine code for them.

A kernel asks those of its scope (`irc.runtime.bounds.Scope.loops`) before it does the same with NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.tensor import Array
    from irc.runtime.kernels.windows import Axes


class InnerLoops:
    """A base class that declines everything.

    Each method returns whether it has made the result, in ``out``, which is in C order and shares memory with no
    operand. Sizes are the caller's to check.
    """

    def depthwise(self, x: Array, w: Array, b: Array | None, axes: Axes, out: Array) -> bool:
        """The convolution of ``x`` (N, C, spatial...) with ``w`` (O, 1, kernel...), O a multiple of C."""
        return False

    def maxima(self, x: Array, axes: Axes, out: Array) -> bool:
        """The greatest element of each window of ``x`` (N, C, spatial...)."""
        return False

    def means(self, x: Array, axes: Axes, include: bool, divisor: int | None, out: Array) -> bool:
        """The means of the windows of ``x`` (N, C, spatial...): see `irc.runtime.kernels.pool.means`."""
        return False

    def columns(self, x: Array, axes: Axes, start: int, out: Array) -> bool:
        """What windows see: see `irc.runtime.kernels.columns.columns`."""
        return False

    def copy(self, x: Array, out: Array) -> bool:
        """``x``, of which rows lie across, if machine code is faster than NumPy."""
        return False

    def pad(self, x: Array, added: Sequence[tuple[int, int]], mode: str, constant: Array, out: Array) -> bool:
        """``x`` with elements added at both ends of each axis: see `irc.runtime.kernels.pieces.padded`."""
        return False


NONE = InnerLoops()
"""No loops but NumPy's."""
