"""The scope of a run on its thread: its guard, its scratch memory, and NumPy's silence about floating-point errors.

Kernels ask the *guard* of a run with limits before they allocate much or work for long (`check_bytes`, `check_work`,
`pace`). Without a guard, only absurd sizes are refused (`irc.runtime.kernels.support.check_size`).

A run may begin in the middle of another one on the same thread, in a signal handler or a finalizer: it has a scope of
its own, and the one around it is restored at its end, however it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, Protocol, TypeVar

import numpy as np

from irc.ir.tensor import Array

T = TypeVar("T")


class Guard(Protocol):
    """Decides what a run may still use; each method raises an Error if that is too much.

    Attributes:
        most_bytes: what the run may use; infinite without a limit.
    """

    most_bytes: float

    def allocate(self, size: int) -> None:
        """``size`` bytes are about to be allocated."""
        ...

    def work(self, products: int) -> None:
        """``products`` multiplications are about to be made, without a chance to stop in between."""
        ...

    def pace(self) -> None:
        """A part of a long piece of work is done."""
        ...


class _Current(threading.local):
    """What belongs to the run on this thread.

    Attributes:
        guard: its guard, or None.
        scratch: its work memory (`irc.runtime.kernels.scratch`).
        idle: the work memory that the next run takes over; None while one is going on.
    """

    guard: Guard | None = None

    def __init__(self) -> None:
        self.scratch: dict[str, Array] = {}
        self.idle: dict[str, Array] | None = {}


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


_ERRORS, _IGNORED = float_errors()


def in_own_scope(guard: Guard | None, function: Callable[..., T], *arguments: Any) -> T:
    """The result of ``function``, called as a run of its own on this thread; kernels in it ask ``guard``, if any.

    Infinities and NaNs are results like any other: NumPy does not warn of them.
    """
    current = CURRENT
    errors, guard_around, scratch_around, idle = _ERRORS.get(), current.guard, current.scratch, current.idle
    # From here to `try` nothing is called, so no signal handler can raise in between.
    current.guard, current.scratch, current.idle = guard, {} if idle is None else idle, None
    try:
        _ERRORS.set(_IGNORED)
        return function(*arguments)
    finally:
        current.guard, current.idle, current.scratch = guard_around, current.scratch, scratch_around
        _ERRORS.set(errors)  # last: once a call has returned, a handler may raise


def check_bytes(size: int) -> None:
    """To be called before ``size`` bytes are allocated that are no array; Error if that is too much for the run."""
    if CURRENT.guard is not None:
        CURRENT.guard.allocate(size)


def pace() -> None:
    """To be called between the parts of a kernel's long work; Error if the run's time is over."""
    if CURRENT.guard is not None:
        CURRENT.guard.pace()


def check_work(products: int) -> None:
    """To be called before so many multiplications are made in one piece; Error if the run has no time for them."""
    if CURRENT.guard is not None:
        CURRENT.guard.work(products)
