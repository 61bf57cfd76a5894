"""Where kernels ask before they allocate much, or work for long.

A run with limits puts a *guard* here, for its own thread. Without one, only
absurd sizes are refused (`irc.runtime.kernels.support.check_size`).
"""

from __future__ import annotations

import threading
from typing import Protocol


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
    guard: Guard | None = None


CURRENT = _Current()
"""The guard of the run on this thread, or None."""


class Guarded:
    """While this is open, kernels on this thread ask ``guard``; if that is None, they ask no guard."""

    __slots__ = ("_before", "_guard")

    def __init__(self, guard: Guard | None) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._before, CURRENT.guard = CURRENT.guard, self._guard

    def __exit__(self, *_: object) -> None:
        CURRENT.guard = self._before


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
