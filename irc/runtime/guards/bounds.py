"""Where kernels ask before they allocate much, or work for long.

A run with limits puts a *guard* here, for its own thread; without one, only
what is absurd is refused (`irc.runtime.kernels.support.check_size`).
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Guard(Protocol):
    """Decides what a run may still use; each method raises an Error if that is too much."""

    def allocate(self, size: int) -> None:
        """``size`` bytes are about to be allocated."""
        ...

    def work(self, products: int) -> None:
        """So many multiplications are about to be made, without a chance to stop meanwhile."""
        ...

    def pace(self) -> None:
        """A part of a long piece of work is done."""
        ...


class _Current(threading.local):
    guard: Guard | None = None


CURRENT = _Current()
"""The guard of the run on this thread, or None."""


@contextmanager
def guarded(guard: Guard | None) -> Generator[None]:
    """While this is open, kernels on this thread ask ``guard``; with None, nobody."""
    before = CURRENT.guard
    CURRENT.guard = guard
    try:
        yield
    finally:
        CURRENT.guard = before


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
