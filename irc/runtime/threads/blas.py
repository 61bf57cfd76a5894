"""How many threads NumPy's matrix products use, so that simultaneous products do not slow each other down.

NumPy's wheels include OpenBLAS, which starts as many threads as there are
processors and shares them among all callers. While two units run side by side,
each gets half of the threads; a run with a limit on its threads uses no more of
them than that. Another BLAS is left as it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import RLock

import numpy as np

from irc.runtime.threads.processors import share_of_time

_FOLDERS = ("../numpy.libs", ".dylibs")
_SUFFIXES = ("64_", "")


class Threads:
    """Shares the threads of the BLAS among its present users.

    Args:
        get: returns how many there are.
        put: sets how many there are.
    """

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self._get = get
        self._put = put
        self._lock = RLock()
        self._users: dict[object, int | None] = {}  # with the limits of those that set one
        self._all = 1

    def enter(self, user: object, limit: int | None = None) -> None:
        """``user`` is about to use some of the threads, or limits them for all users; call `leave` afterwards."""
        with self._lock:
            if not self._users:
                self._all = self._get()
            self._users[user] = limit
            self._share()

    def leave(self, user: object) -> None:
        """``user`` needs no threads any more; after the last user, the number is as before the first."""
        with self._lock:
            if user in self._users:
                del self._users[user]
                self._share()

    @contextmanager
    def at_most(self, number: int) -> Generator[None]:
        """While this is open, there are no more than ``number`` for all users together."""
        user = object()
        try:
            self.enter(user, number)
            yield
        finally:
            self.leave(user)

    def _share(self) -> None:
        if self._all > 1:
            limits = [limit for limit in self._users.values() if limit is not None]
            sharing = len(self._users) - len(limits)
            self._put(max(1, min([self._all, *limits]) // max(1, sharing)))


@cache
def threads() -> Threads:
    """The threads of NumPy's BLAS; if that BLAS is not known, setting their number has no effect."""
    found = _functions()
    return Threads(*found) if found else Threads(lambda: 1, lambda number: None)


def at_most(number: int | None) -> AbstractContextManager[None]:
    """While this is open, the BLAS has no more than ``number`` threads; None: than this process can keep busy."""
    number = number or share_of_time()
    return nullcontext() if number is None else threads().at_most(number)


def _functions() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    home = Path(np.__file__).parent
    for path in (path for folder in _FOLDERS for path in sorted((home / folder).glob("*openblas*"))):
        try:
            library = ctypes.CDLL(str(path))  # it is loaded already
        except OSError:
            continue
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in _SUFFIXES:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return get, put
    return None
