"""A run's scope on its thread: guard, work memory, helper threads, machine code, no warnings.

Kernels ask the *guard* of a run with limits (`irc.runtime.limits.LimitGuard`) before they allocate much or work
for long: `check_bytes`, `check_work`, `pace`. Without a guard, only absurd sizes are refused
(`irc.runtime.kernels.support.check_size`). They ask the *inner loops* of their scope before they do the same with
NumPy.

A run may begin in the middle of another one on the same thread, in a signal handler or a finalizer: it has a scope of
its own, and the one around it is restored at its end, however it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irc.ir.tensor import Array

if TYPE_CHECKING:
    from irc.runtime.kernels.ml import Decide, Machine
    from irc.runtime.kernels.ml_trees import TreeTables, Vote
    from irc.runtime.kernels.recurrent import Cells, Recurrence
    from irc.runtime.kernels.windows import Axes
    from irc.runtime.limits import LimitGuard


class InnerLoops:
    """A base class that declines everything: its methods return nothing.

    Most return True if they have made the result, in ``out``, which is in C order and shares memory with no operand.
    Sizes are the caller's to check.
    """

    def depthwise(self, x: Array, w: Array, b: Array | None, axes: Axes, out: Array) -> bool | None:
        """The convolution of ``x`` (N, C, spatial...) with ``w`` (O, 1, kernel...), O a multiple of C."""

    def convolution(
        self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array, exact: bool = False
    ) -> bool | None:
        """See `irc.runtime.kernels.convolution.convolve`."""

    def product(self, a: Array, b: Array, out: Array) -> bool | None:
        """``a`` (..., M, K) times the constant ``b`` (K, N), if machine code is faster than NumPy's BLAS."""

    def integers(self, a: Array, zero: int, b: Array, out: Array) -> bool | None:
        """``(a - zero) @ b`` as int32: ``a`` (..., K) of 8-bit integers, ``b`` (K, N) of integral floats."""

    def linear(self, x: Array, scale: Array, zero: Array | None, axis: int, out: Array) -> bool | None:
        """``x`` quantized, or, where it has integers, dequantized; by scales along ``axis``, or one."""

    def quantize(self, x: Array, out: Array, scale: Array, zero: Array) -> bool | None:
        """All that `irc.runtime.kernels.quantized.dynamically_quantized` makes of ``x``, of float32."""

    def maxima(self, x: Array, axes: Axes, out: Array) -> bool | None:
        """The greatest element of each window of ``x`` (N, C, spatial...)."""

    def means(self, x: Array, axes: Axes, include: bool, divisor: int | None, out: Array) -> bool | None:
        """The means of the windows of ``x`` (N, C, spatial...): see `irc.runtime.kernels.pool.means`."""

    def columns(self, x: Array, axes: Axes, start: int, out: Array) -> bool | None:
        """What windows see: see `irc.runtime.kernels.windows.columns`."""

    def copy(self, x: Array, out: Array) -> bool | None:
        """``x``, of which rows lie across, if machine code is faster than NumPy."""

    def pad(self, x: Array, added: Sequence[tuple[int, int]], mode: str, constant: Array, out: Array) -> bool | None:
        """``x`` with elements added at both ends of each axis: see `irc.runtime.kernels.shape.padded`."""

    def attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        scale: float,
        out: Array,
        bias: Array | None,
        mask: Array | None,
        fill: float,
    ) -> bool | None:
        """Attention of few rows a head: ``softmax(query @ key^T * scale + bias) @ value``.

        The query is (..., H, L, E), or (..., K, G, L, E) where G heads share keys and values (..., K, S, E). Bias and
        mask broadcast to the scores; those that the mask excludes are ``fill`` instead.
        """

    def recurrence(self, cells: Cells, share: Array, out: Array) -> Recurrence | None:
        """What computes all steps of a recurrent layer in one direction, for arrays that lie like these.

        Args:
            cells: what a step computes.
            share: as `irc.runtime.kernels.recurrent.Recurrence` says; steps may lie anywhere.
            out: likewise.
        """

    def fused(self, text: str, operands: Sequence[Array]) -> Array | None:
        """The result of the graph with this text, of pointwise operators and reductions of arrays in C order."""

    def decider(self, rows: int, machine: Machine) -> Decide | None:
        """What decides for ``rows`` of similarities, by a support vector machine that classifies."""

    def voter(self, x: Array, trees: TreeTables, found: Array) -> Vote | None:
        """What adds votes for the rows of arrays that lie like ``x`` to arrays like ``found`` (N, targets)."""


NONE = InnerLoops()
"""No loops but NumPy's."""


T = TypeVar("T")

Share = Callable[[int, Callable[[int], None]], None]
"""Does as many pieces of work as the number says, each by calling the function with its number."""


def in_turn(pieces: int, piece: Callable[[int], None]) -> None:
    """Do all pieces on this thread, one after the other."""
    for number in range(pieces):
        piece(number)


@dataclass(slots=True, eq=False)
class Scope:
    """What belongs to the run on one thread.

    Attributes:
        guard: its guard, or None.
        loops: machine code for what kernels would do with NumPy.
        share: does pieces of work that may run at once, on as many threads as the run may use.
        scratch: its work memory (`irc.runtime.kernels.support`), which the next run takes over.
        is_busy: whether a run is going on. One that begins in the middle of it has work memory of its own.
    """

    guard: LimitGuard | None = None
    share: Share = in_turn
    scratch: dict[str, Array] = field(default_factory=dict[str, Array])
    is_busy: bool = False
    loops: InnerLoops = NONE


class _Current(threading.local):
    def __init__(self) -> None:
        self.scope = Scope()


CURRENT = _Current()
"""The scope of the run on this thread."""


def float_errors() -> tuple[ContextVar[Any], Any]:
    """NumPy's context variable of floating-point error handling, and its value for "ignore all".

    To set it takes 0.1 µs, to enter `numpy.errstate` 0.7. NumPy does not document its name, so `numpy.errstate` is
    watched: it changes this variable and no other.
    """
    before = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    ((variable, value),) = [(v, inside[v]) for v in inside if before.get(v) is not inside[v]]
    return variable, value


ERRORS, IGNORED = float_errors()


def in_own_scope(guard: LimitGuard | None, share: Share, function: Callable[..., T], *arguments: Any) -> T:
    """The result of ``function``, called as a run of its own on this thread, with this guard and share.

    Infinities and NaNs are results like any other: NumPy does not warn of them.
    """
    around, errors = CURRENT.scope, ERRORS.get()
    scope = Scope(guard, share, {} if around.is_busy else around.scratch, is_busy=True)
    try:
        CURRENT.scope = scope
        ERRORS.set(IGNORED)
        return function(*arguments)
    finally:
        CURRENT.scope = around
        ERRORS.set(errors)  # last: once a call has returned, a handler may raise


def check_bytes(size: int) -> None:
    """Check ``size`` bytes before allocating them other than as an array; Error if the run lacks them."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.allocate(size)


def pace() -> None:
    """To be called between the parts of a kernel's long work; Error if the run's time is over."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.pace()


def check_work(products: int) -> None:
    """Check multiplications before doing them in one piece; Error if the run has no time for them."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.work(products)
