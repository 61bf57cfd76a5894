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

import atexit
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
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
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

    def close(self) -> None:
        """End all threads, each after what it is doing; they are started again when work comes."""
        with self._lock:
            for _ in self._threads:
                self._waiting.put(None)
            for thread in self._threads:
                thread.join(timeout=1)  # they are daemons: one that does not end delays nothing for long
            self._threads.clear()


def _serve(waiting: SimpleQueue[Callable[[], None] | None]) -> None:
    with np.errstate(all="ignore"):  # as around the run whose work this is; the setting is each thread's own
        while (task := waiting.get()) is not None:
            task()
            del task  # not kept while waiting: it holds the arrays of a run


class Crew:
    """The thread that has the work, and workers that help it until the work is done.

    A waiting thread has a *gate* of its own, a lock that another thread opens. `threading.Condition` does the same, but
    in Python: an interrupt in the middle of it leaves its lock taken, or releases it twice. The interpreter looks for
    interrupts neither between taking a lock of C's and the body of its `with`, nor between the body and releasing it.

    Attributes:
        failure: the first exception raised on any of the threads; no thread should go on after it.
        lock: to be held while changing shared state, but not while waiting or calling anything that may take long.
    """

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.lock = Lock()
        self._gates: list[Lock] = []
        self._work: Callable[[], None] | None = None
        self._helpers = 0

    def gate(self) -> Lock:
        """A gate: acquire it, without the lock, to wait until shared state has changed. (Call this with the lock.)"""
        gate = Lock()
        gate.acquire()
        self._gates.append(gate)
        return gate

    def wake(self) -> None:
        """Open all gates: shared state has changed. (Call this with the lock.)"""
        for gate in self._gates:  # forgotten once all are open: after an interrupt here, they are opened again
            if gate.locked():
                gate.release()
        self._gates = []

    def run(self, work: Callable[[], None], threads: int) -> None:
        """Call ``work`` on up to ``threads`` threads, this one included; return when all of them are done.

        Raises:
            BaseException: the failure, or an interrupt: no worker may still use memory that is handed out afterwards.
        """
        self._work = work
        helpers = min(threads, MOST) - 1
        try:
            if helpers > 0:
                workers = pool(helpers)
                for _ in range(min(helpers, workers.size)):
                    workers.submit(self._help)
            self._attempt(work)
        finally:
            self._end()
        if self.failure is not None:
            raise self.failure

    def _help(self) -> None:
        with self.lock:
            work = self._work
            if work is None:
                return
            self._helpers += 1
        self._attempt(work)
        with self.lock:
            self._helpers -= 1
            self.wake()

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.fail(error)

    def _end(self) -> None:
        """Return only when no other thread works any more, whatever interrupts that."""
        while True:
            try:
                for _ in iter(self._is_over, True):
                    pass
            except BaseException as error:  # in between two calls
                self.failure = self.failure or error
            else:
                return

    def _is_over(self) -> bool:
        """Let no worker begin any more, and wait for those that have begun; False if the caller is to ask again."""
        try:
            with self.lock:
                self._work = None
                if self.failure is not None:
                    self.wake()
                if not self._helpers:
                    return True
                gate = self.gate()
            gate.acquire()
        except BaseException as error:  # an interrupt; nothing that another one could interrupt is called here
            self.failure = self.failure or error
        return False

    def fail(self, error: BaseException) -> None:
        """Record the first failure, and wake all waiting threads."""
        with self.lock:
            if self.failure is None:
                self.failure = error
            self.wake()


def share(start: Callable[[], Piece], pieces: int, threads: int) -> None:
    """Do ``pieces`` pieces of work on up to ``threads`` threads, this one included.

    Args:
        start: called once on each thread that takes part; returns the function that does a piece there, with memory of
            its own, say.
        pieces: how many; each is done once, in any order.
        threads: how many threads at most.

    Raises:
        BaseException: the exception of a piece. No piece runs any more then, and not all have run.
    """
    crew, take = Crew(), count().__next__  # taking a number is atomic

    def work() -> None:
        piece = start()
        while crew.failure is None and (number := take()) < pieces:
            piece(number)

    crew.run(work, min(threads, pieces))


_shared = Pool()


def pool(size: int) -> Pool:
    """The pool of this process, with at least ``size`` threads (but at most `MOST`)."""
    if _shared.size < size:
        _shared.grow(size)
    return _shared


def _forget() -> None:
    """In a child process: the threads stayed with the parent."""
    global _shared
    _shared = Pool()


atexit.register(lambda: _shared.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
