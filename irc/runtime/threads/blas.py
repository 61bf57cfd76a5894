"""One thread for NumPy's matrix products while models run.

NumPy's wheels include OpenBLAS, which shares each product from some 250,000 multiplications on among as many threads
as there are processors. They wait for each other: on a busy machine, until the operating system has given the last of
them a processor, which takes longer than most products. So a run uses one, and large products are cut into parts that
whichever thread is free makes (`irc.runtime.kernels.products`). The number is one of the whole process: it is as before
when no run is going on. Another BLAS is left as it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_FOLDERS = ("../numpy.libs", ".dylibs")


class OneThread:
    """Holds the BLAS to one thread while any of its users is at work.

    Args:
        get: returns how many threads there are.
        put: sets how many there are.
    """

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self._get = get
        self._put = put
        self._lock = RLock()  # which a signal handler that runs a model may find taken by its own thread
        self._users: set[object] = set()
        self._before: int | None = None  # how many there were before the first user

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """The result of ``function``, during which the BLAS has one thread."""
        user = object()
        try:
            with self._lock:
                self._users.add(user)
                threads = self._get()
                if self._before is None:  # asked last: a handler may have come until here
                    self._before = threads
                if threads > 1:
                    self._put(1)
            return function(*arguments)
        finally:
            with self._lock:
                self._users.discard(user)
                if not self._users and self._before is not None:
                    before, self._before = self._before, None
                    if before > 1:
                        self._put(before)


@cache
def one_thread() -> OneThread:
    """What holds NumPy's BLAS to one thread; if that BLAS is not known, it has no effect."""
    found = _functions()
    return OneThread(*found) if found else OneThread(lambda: 1, lambda number: None)


def _functions() -> tuple[Callable[[], int], Callable[[int], object]] | None:
    home = Path(np.__file__).parent
    for path in (path for folder in _FOLDERS for path in sorted((home / folder).glob("*openblas*"))):
        try:
            library = ctypes.CDLL(str(path))  # it is loaded already
        except OSError:
            continue
        for prefix, suffix in product(("scipy_openblas", "openblas"), ("64_", "")):
            get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
            put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
            if get is not None and put is not None:
                return get, put
    return None
