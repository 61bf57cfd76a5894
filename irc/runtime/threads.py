"""Threads of runs: one process-wide pool, one BLAS thread, the number of usable processors.

Work is cut into numbered pieces that may run in any order. The thread that has
the work takes pieces too, and takes all of them if no worker is free. So work may
be shared from inside of shared work without two threads waiting for each other.
NumPy releases the GIL inside its loops, so pieces of a hundred
thousand elements run side by side; smaller ones only get in each other's way.

Interrupts: from Python 3.12 on, the backward jump of a loop that ends by a condition, or
of a comprehension with one, is covered by no `try` and no `with`, wherever the loop
stands. An interrupt at that jump skips `finally` and leaves locks taken. So code
that must clean up afterwards contains no such loop, but calls functions that do.

NumPy's wheels include OpenBLAS, which shares each product from some 250,000 multiplications on among as many threads
as there are processors. They wait for each other: on a busy machine, until the operating system has given the last of
them a processor, which takes longer than most products. So a run uses one, and large products are cut into parts that
whichever thread is free makes (`irc.runtime.kernels.numerics`). The number is one of the whole process: it is as before
when no run is going on. Another BLAS is left as it is.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import count, product
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from threading import Lock, RLock, Thread, current_thread
from typing import Any, TypeVar

import numpy as np

MOST = 64
"""No more threads than this, whatever is asked for."""

Piece = Callable[[int], None]
"""Does the piece of that number."""


class Pool:
    """Threads that wait for work, started when first needed. They never keep the process from ending."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = RLock()
        self._avoided: int | None = None

    @property
    def size(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def grow(self, size: int) -> None:
        """Start threads until there are ``size``."""
        with self._lock:
            for number in range(self.size, min(size, MOST)):
                thread = Thread(target=_serve, args=(self._waiting,), name=f"irc-worker-{number}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return  # there cannot be more of them: the thread that has work does it itself
                self._threads.append(thread)
                self._avoided = None  # it runs where the thread may that has started it

    def make_way(self) -> None:
        """Keep the threads off the calling thread's processor.

        Linux often wakes a thread where the one that wakes it runs, and which goes on running there. On another
        system, nothing is done.
        """
        own = processor()
        if own == self._avoided or current_thread() in self._threads:
            return
        self._avoided = own
        others = os.sched_getaffinity(0) - {own}
        for number in [thread.native_id for thread in self._threads if others and thread.native_id]:
            with suppress(OSError):  # it may have ended
                os.sched_setaffinity(number, others)

    def submit(self, task: Callable[[], None]) -> None:
        """Have a worker call ``task``, which must not raise, as soon as one is free."""
        self._waiting.put(task)


def _serve(waiting: SimpleQueue[Callable[[], None]]) -> None:
    with np.errstate(all="ignore"):  # as around the run whose work this is; the setting is each thread's own
        while True:
            waiting.get()()  # not kept in a variable: it holds the arrays of a run


class _Crew:
    """The thread that has the work, and workers that help it until the work is done.

    The thread waits for the helpers at a lock that the last of them opens. `threading.Condition` does the same, but in
    Python: an interrupt in the middle of it leaves its lock taken, or releases it twice. The interpreter looks for
    interrupts neither between taking a lock of C's and the body of its `with`, nor between the body and releasing it.
    (Only the main thread is interrupted: a helper never is.)
    """

    def __init__(self, pieces: int, piece: Piece) -> None:
        self._pieces = pieces
        self._piece = piece
        self._take = count().__next__  # taking a number is atomic
        self._failure: BaseException | None = None  # no thread goes on after it
        self._lock = Lock()
        self._is_closed = False
        self._helpers = 0
        self._gate: Lock | None = None  # locked while the thread waits for the last helper

    def run(self, helpers: int) -> None:
        """Do the work with up to ``helpers`` helper threads; return when all of them have finished."""
        try:
            if helpers > 0:
                _shared.grow(helpers)
                _shared.make_way()
                for _ in range(min(helpers, _shared.size)):
                    _shared.submit(self._help)
            self._work()
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure

    def _help(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._helpers += 1
        self._work()
        with self._lock:
            self._helpers -= 1
            if not self._helpers and self._gate is not None:
                self._gate.release()
                self._gate = None

    def _work(self) -> None:
        try:
            self._take_pieces()
        except BaseException as error:
            self._failure = self._failure or error

    def _take_pieces(self) -> None:
        while self._failure is None and (number := self._take()) < self._pieces:
            self._piece(number)

    def _end(self) -> None:
        """Return only when no helper works any more, whatever interrupts that."""
        while True:
            try:
                for _ in iter(self._is_over, True):
                    pass
            except BaseException as error:  # in between two calls
                self._failure = self._failure or error
            else:
                return

    def _is_over(self) -> bool:
        """Stop workers from beginning and wait for those at work; False if the caller must ask again."""
        try:
            with self._lock:
                self._is_closed = True
                if not self._helpers:
                    return True
                gate = Lock()
                gate.acquire()
                self._gate = gate  # locked: whatever interrupts this, a helper may open it
            gate.acquire()
        except BaseException as error:  # an interrupt; nothing that another one could interrupt is called here
            self._failure = self._failure or error
        return False


def share(pieces: int, piece: Piece, threads: int) -> None:
    """Call ``piece`` with each number below ``pieces``, in any order, on up to ``threads`` threads.

    Raises:
        BaseException: what a piece raised, or an interrupt. No piece runs any more then, and not all have run.
    """
    _Crew(pieces, piece).run(min(threads, pieces, MOST) - 1)


_shared = Pool()
"""The pool of this process."""


def _forget() -> None:
    """In a child process: the threads stayed with the parent."""
    global _shared
    _shared = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


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
    found = functions_of_blas("openblas_get_num_threads", "openblas_set_num_threads")
    return OneThread(*found) if found else OneThread(lambda: 1, lambda number: None)


def blas_core() -> str | None:
    """The processor that NumPy's OpenBLAS computes for; None if the BLAS is not known."""
    found = functions_of_blas("openblas_get_corename")
    if found is None:
        return None
    (core,) = found
    core.restype = ctypes.c_char_p
    return core().decode()


def functions_of_blas(*names: str, suffixes: Sequence[str] = ("64_", "")) -> list[Any] | None:
    """Functions of NumPy's own OpenBLAS; None if there is none. ``64_`` means 64-bit sizes."""
    home = Path(np.__file__).parent
    for path in (path for folder in _FOLDERS for path in sorted((home / folder).glob("*openblas*"))):
        try:
            library = ctypes.CDLL(str(path))  # it is loaded already
        except OSError:
            continue
        for prefix, suffix in product(("scipy_", ""), suffixes):
            found = [getattr(library, f"{prefix}{name}{suffix}", None) for name in names]
            if None not in found:
                return found
    return None


_LIBC = ctypes.CDLL(None) if hasattr(os, "sched_setaffinity") else None

processor: Callable[[], int | None] = getattr(_LIBC, "sched_getcpu", lambda: None)
"""The processor that the calling thread runs on; None if that is not known."""

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def usable_processors() -> int:
    """CPUs that this process may use: its affinity, capped by the cgroups' quota, rounded up.

    In a container with a share of two processors' time, more threads than two would be stopped whenever that is used
    up, all of them at once and in the middle of a product.
    """
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(number, share_of_time() or number)


@cache
def share_of_time() -> int | None:
    """CPU quota of this process's cgroups, rounded up to whole CPUs; None if unlimited.

    Source: Linux's documentation of control groups, ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1.
    """
    shares = [quota / period for quota, period in _limits(_GROUPS, _OWN) if quota > 0 and period > 0]
    return math.ceil(min(shares)) if shares else None


def _limits(groups: Path, own: Path) -> Iterator[tuple[int, int]]:
    """Quotas of the process's cgroups: (microseconds allowed, microseconds of the period).

    In a container, the names of its groups are those outside, where it cannot look; but then the first group that it
    sees is its own.
    """
    for line in _read(own).splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers:
            top, files = groups, ("cpu.max",)
        elif "cpu" in controllers.split(","):
            top, files = groups / controllers, ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        else:
            continue
        path = PurePosixPath(name.lstrip("/"))
        for folder in (path, *path.parents):  # a group has no more than those around it
            numbers = " ".join(_read(top / folder / file) for file in files).split()
            if len(numbers) == 2 and all(number.isdecimal() for number in numbers):  # not "max", not -1
                yield int(numbers[0]), int(numbers[1])


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):  # another system, or another version
        return ""
