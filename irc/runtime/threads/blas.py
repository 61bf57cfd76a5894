"""How many threads NumPy's matrix products use, so that several at once do not get in each other's way.

NumPy's wheels bring OpenBLAS along, which starts as many threads as there are
processors and shares them among all callers. While two units run side by side,
each gets half of them. Another BLAS is left as it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import RLock

import numpy as np

_FOLDERS = ("../numpy.libs", ".dylibs")
_SUFFIXES = ("64_", "")


class Threads:
    """Shares the threads of the BLAS among who uses it at a time.

    Args:
        get: how many there are.
        put: sets how many there are.
    """

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self._get = get
        self._put = put
        self._lock = RLock()
        self._users: set[object] = set()
        self._all = 1

    def enter(self, user: object) -> None:
        """``user`` is about to use some of them; to be followed by `leave`, also after an interrupt."""
        with self._lock:
            if not self._users:
                self._all = self._get()
            self._users.add(user)
            self._share()

    def leave(self, user: object) -> None:
        """``user`` needs none any more; after the last, everything is as before the first."""
        with self._lock:
            if user in self._users:
                self._users.remove(user)
                self._share()

    def _share(self) -> None:
        if self._all > 1:
            self._put(max(1, self._all // max(1, len(self._users))))


@cache
def threads() -> Threads:
    """Those of the BLAS that NumPy uses; if it is not known, nothing happens."""
    found = _functions()
    return Threads(*found) if found else Threads(lambda: 1, lambda number: None)


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
