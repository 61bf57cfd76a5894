"""Sharing work among threads."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime import threads as workers
from tests.effort import examples

WAIT = 60
"""Seconds until a test that would hang fails."""


@examples(50)
@given(st.integers(0, 40), st.integers(1, 6))
def test_every_piece_is_done_once(pieces, threads):
    done: list[int] = []
    workers.share(pieces, done.append, threads)
    assert sorted(done) == list(range(pieces))


def test_pieces_run_side_by_side():
    """Each of three pieces waits for the others: one after another they would never end."""
    barrier = threading.Barrier(3, timeout=WAIT)
    seen: set[str] = set()

    def piece(number: int) -> None:
        seen.add(threading.current_thread().name)
        barrier.wait()

    workers.share(3, piece, 3)
    assert len(seen) == 3


def test_one_thread_stays_in_the_callers():
    names: list[tuple[int, str]] = []
    workers.share(5, lambda n: names.append((n, threading.current_thread().name)), 1)
    assert names == [(n, threading.current_thread().name) for n in range(5)]


class Ended(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Ended])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_what_a_piece_raises_comes_out_once(kind, threads):
    done: list[int] = []

    def piece(number: int) -> None:
        if number == 3:
            raise kind("third")
        done.append(number)

    with pytest.raises(kind, match="third"):
        workers.share(1000, piece, threads)
    assert 3 not in done and len(done) < 1000
    done.clear()
    workers.share(10, done.append, threads)
    assert sorted(done) == list(range(10))


def test_nobody_works_any_more_when_a_failure_comes_out():
    inside = threading.Event()
    go_on = threading.Event()
    ended: list[int] = []

    def piece(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert inside.wait(WAIT)
            threading.Timer(0.05, go_on.set).start()
            raise ValueError
        inside.set()
        assert go_on.wait(WAIT)
        ended.append(number)

    with pytest.raises(ValueError):
        workers.share(100, piece, 2)
    assert len(ended) == 1  # the other thread had begun one piece, and it has ended


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_an_interrupt_does_not_end_the_wait_for_the_others():
    """Those that wait for a worker have given its memory away once they return."""
    inside, failed, interrupted = threading.Event(), threading.Event(), threading.Event()
    ended: list[bool] = []

    def piece(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert inside.wait(WAIT)
            failed.set()
            raise ValueError
        inside.set()
        assert failed.wait(WAIT)
        while not interrupted.wait(0.05):  # until it has come while the main thread waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        ended.append(True)

    def on_interrupt(*_: object) -> None:
        if failed.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        with pytest.raises(ValueError):
            workers.share(2, piece, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended


def test_work_may_be_shared_inside_of_shared_work():
    done: list[tuple[int, int]] = []

    def outer(number: int) -> None:
        workers.share(5, lambda inner: done.append((number, inner)), 4)

    workers.share(6, outer, 4)
    assert sorted(done) == [(i, j) for i in range(6) for j in range(5)]


def test_many_threads_may_share_work_at_once():
    def one(number: int) -> int:
        total: list[int] = []
        workers.share(50, total.append, 3)
        return sum(total)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(one, range(40))) == [sum(range(50))] * 40


def test_threads_are_started_when_there_is_need():
    pool = workers.Pool()
    assert pool.size == 0
    pool.grow(3)
    pool.grow(2)
    assert pool.size == 3
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(WAIT)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads run where the system puts them")
def test_threads_keep_off_the_processor_of_the_one_that_has_work():
    allowed = os.sched_getaffinity(0)
    pool = workers.Pool()
    for size in (1, 3):  # those that come later, too
        pool.grow(size)
        pool.make_way()
        own = pool._avoided
        assert all(os.sched_getaffinity(t.native_id or 0) == (allowed - {own} or allowed) for t in pool._threads)
    done = threading.Event()
    pool.submit(lambda: (pool.make_way(), done.set()))  # a helper moves neither itself nor others
    assert done.wait(WAIT)
    assert pool._avoided == own and os.sched_getaffinity(0) == allowed


def test_no_more_threads_than_the_limit(tune):
    tune("irc.runtime.threads.MOST", 2)
    pool = workers.Pool()
    pool.grow(1000)
    assert pool.size == 2


def test_workers_say_nothing_about_infinities(recwarn):
    def piece(number: int) -> None:
        np.array(1.0) / np.zeros(3)

    with np.errstate(all="ignore"):
        workers.share(64, piece, 4)
    assert not recwarn


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_has_workers_of_its_own():
    workers.share(10, lambda n: None, 3)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            barrier = threading.Barrier(2, timeout=WAIT)
            workers.share(2, lambda n: barrier.wait() and None, 2)
            os.write(write, b"done")
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"done"
    assert os.waitpid(child, 0)[1] == 0


def test_without_threads_the_caller_does_the_work(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(workers, "_shared", workers.Pool())
    done: list[int] = []
    workers.share(5, done.append, 3)
    assert done == [0, 1, 2, 3, 4] and workers._shared.size == 0
