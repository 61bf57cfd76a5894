"""The scope of a run on its thread: guard, work memory, other threads and machine code that help, no warnings.

Kernels ask the *guard* of a run with limits (`irc.runtime.guards.limits.LimitGuard`) before they allocate much or work
for long: `check_bytes`, `check_work`, `pace`. Without a guard, only absurd sizes are refused
(`irc.runtime.kernels.support.check_size`).

A run may begin in the middle of another one on the same thread, in a signal handler or a finalizer: it has a scope of
its own, and the one around it is restored at its end, however it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from irc.ir.tensor import Array
from irc.runtime.inner_loops import NONE, InnerLoops

if TYPE_CHECKING:
    from irc.runtime.guards.limits import LimitGuard

T = TypeVar("T")

Share = Callable[[int, Callable[[int], None]], None]
"""Does as many pieces of work as the number says, each by calling the function with its number."""


def in_turn(pieces: int, piece: Callable[[int], None]) -> None:
    """Do all pieces on this thread, one after the other."""
    for number in range(pieces):
        piece(number)


class Scope:
    """What belongs to the run on one thread.

    Attributes:
        guard: its guard, or None.
        loops: machine code for what kernels would do with NumPy.
        share: does pieces of work that may run at once, on as many threads as the run may use.
        scratch: its work memory (`irc.runtime.kernels.scratch`), which the next run takes over.
        is_busy: whether a run is going on. One that begins in the middle of it has work memory of its own.
    """

    __slots__ = ("guard", "is_busy", "loops", "scratch", "share")

    def __init__(self) -> None:
        self.guard: LimitGuard | None = None
        self.loops: InnerLoops = NONE
        self.share: Share = in_turn
        self.scratch: dict[str, Array] = {}
        self.is_busy = False


class _Current(threading.local):
    def __init__(self) -> None:
        self.scope = Scope()


CURRENT = _Current()
"""The scope of the run on this thread."""


def float_errors() -> tuple[ContextVar[Any], Any]:
    """The context variable that says what NumPy does about floating-point errors, and its value for "ignore all".

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
    """The result of ``function``, called as a run of its own on this thread, with these ``guard`` and ``share``.

    Infinities and NaNs are results like any other: NumPy does not warn of them.
    """
    scope, errors = CURRENT.scope, ERRORS.get()
    around = scope.guard, scope.share, scope.scratch, scope.is_busy, scope.loops
    # From here to `try` nothing is called, so no signal handler can raise in between.
    scope.guard, scope.share, scope.scratch, scope.is_busy = guard, share, {} if scope.is_busy else scope.scratch, True
    scope.loops = NONE
    try:
        ERRORS.set(IGNORED)
        return function(*arguments)
    finally:
        scope.guard, scope.share, scope.scratch, scope.is_busy, scope.loops = around
        ERRORS.set(errors)  # last: once a call has returned, a handler may raise


def check_bytes(size: int) -> None:
    """To be called before ``size`` bytes are allocated that are no array; Error if that is too much for the run."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.allocate(size)


def pace() -> None:
    """To be called between the parts of a kernel's long work; Error if the run's time is over."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.pace()


def check_work(products: int) -> None:
    """To be called before so many multiplications are made in one piece; Error if the run has no time for them."""
    if CURRENT.scope.guard is not None:
        CURRENT.scope.guard.work(products)
