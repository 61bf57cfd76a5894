"""Worker threads that all models of a process share.

Work is cut into numbered pieces that may run in any order. The thread that has
the work takes pieces too, and takes all of them if no worker is free. So work may
be shared from inside of shared work without two threads waiting for each other.
NumPy releases the GIL inside its loops, so pieces of a hundred
thousand elements run side by side; smaller ones only get in each other's way.

Interrupts: from Python 3.12 on, the backward jump of a loop that ends by a condition, or
of a comprehension with one, is covered by no `try` and no `with`, wherever the loop
stands. An interrupt at that jump skips `finally` and leaves locks taken. So code
that must clean up afterwards contains no such loop, but calls functions that do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from threading import Lock, RLock, Thread

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
        """Do the work with up to so many ``helpers``; return when none of them works any more."""
        try:
            if helpers > 0:
                _shared.grow(helpers)
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
        """Let no worker begin any more, and wait for those that have begun; False if the caller is to ask again."""
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
    """Call ``piece`` with each number below ``pieces``, in any order, on up to ``threads`` threads, this one included.

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


"""The pool of this process."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
