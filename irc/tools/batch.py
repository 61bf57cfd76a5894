"""Many models at once: a function of a path, in local processes or on an existing engine.

What happens to one model never concerns the others. A process that dies takes at most as many models with it as there
are processes; which one is to blame is found by running these again, each alone. Each outcome is handed on when it is
there, and a file of outcomes tells a later batch what need not be done again.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, cast

from irc.errors import Error, error_text

DONE, FAILED, CRASHED = "done", "failed", "crashed"

CONNECTING = 5
"""Seconds in which a scheduler must answer."""

_IMPORTED = ("irc.compiler", "irc.frontend.onnx.importer", "irc.frontend.onnx_export", "irc.tools.check.models")
"""What the server that processes are forked from imports once. None of it starts a thread, which a fork would lack."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass
class Task:
    """A model: path, file size and time, by which a later batch recognises it; 0 if there is none."""

    path: str
    bytes: int = 0
    modified: int = 0

    @staticmethod
    def of(path: str) -> Task:
        """The task for the file at ``path``."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return Task(path)
        return Task(path, status.st_size, status.st_mtime_ns)


@dataclass
class Outcome:
    """What became of a model.

    Attributes:
        path, bytes, modified: of `Task`.
        command: what was done, and ``options``, with which, as text.
        status: done, failed (``error`` says why), or crashed: the process died of it.
        code: of the error, such as ``IRC121``; "" if there is none.
        started: when, in seconds since 1970.
        seconds, cpu_seconds: the time that it took, and that of the processor.
        worker: the process.
        result: what the command gives with ``--json``; None unless it is done.
    """

    path: str
    bytes: int
    modified: int
    command: str
    options: str
    status: str
    error: str = ""
    code: str = ""
    started: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    worker: int = 0
    result: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self)


Work = Callable[[str], dict[str, Any]]
"""What is done with the model at a path; picklable."""


@dataclass
class Batch:
    """One command for many models.

    Args:
        command: its name.
        options: its options, as text that is the same for the same options.
        work: what it does with a path. Errors that it raises are outcomes.
    """

    command: str
    options: str
    work: Work
    known: dict[str, Outcome] = field(default_factory=dict[str, "Outcome"])

    def outcome(self, task: Task, status: str, error: str = "", **more: Any) -> Outcome:
        """What became of ``task``."""
        return Outcome(task.path, task.bytes, task.modified, self.command, self.options, status, error, **more)

    def resume(self, lines: Iterable[str]) -> None:
        """Take over outcomes of a batch of the same command and options; a model's last one counts.

        Lines that are no outcomes are left out: the last may have been cut off.
        """
        for line in lines:
            try:
                found = Outcome(**json.loads(line))
            except (ValueError, TypeError):
                continue
            if (found.command, found.options) == (self.command, self.options):
                self.known[found.path] = found

    def is_known(self, task: Task) -> bool:
        """Whether an earlier batch has the outcome of ``task``, whose file has not changed since."""
        found = self.known.get(task.path)
        return found is not None and (found.bytes, found.modified) == (task.bytes, task.modified) and found.bytes > 0

    def run_one(self, task: Task) -> Outcome:
        """What becomes of ``task`` in this process."""
        start, cpu = time.perf_counter(), time.process_time()
        found = self.outcome(task, DONE, worker=os.getpid(), started=time.time())
        try:
            found.result = self.work(task.path)
        except Error as error:
            found.status, found.error, found.code = FAILED, str(error), error.code
        except Exception as error:  # of one model, which is not to stop the others
            found.status, found.error = FAILED, error_text(error)
        found.seconds, found.cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        return found


Engine = Callable[[Batch, Sequence[Task]], Generator[Outcome]]
"""Yields the outcomes of tasks as they come."""


# -- processes of this machine ---------------------------------------------------


def local(batch: Batch, tasks: Sequence[Task], jobs: int, threads: int | None) -> Generator[Outcome]:
    """Run ``tasks`` in ``jobs`` processes, whose libraries use ``threads`` if given, largest files first."""
    pending = deque(sorted(tasks, key=lambda task: -task.bytes))  # a large one at the end would keep one process alone
    with _few_threads(threads):
        while pending:
            yield from _until_one_dies(batch, pending, jobs)


def _until_one_dies(batch: Batch, pending: deque[Task], jobs: int) -> Generator[Outcome]:
    """Run tasks until none is left or a process dies; running tasks are then tried one by one."""
    running: dict[Future[Outcome], Task] = {}
    suspects: list[Task] = []
    with _pool(min(jobs, len(pending))) as pool:
        while (pending or running) and not suspects:
            while pending and len(running) < jobs and not suspects:
                task = pending.popleft()
                try:
                    running[pool.submit(batch.run_one, task)] = task
                except BrokenProcessPool:
                    suspects.append(task)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    found = future.result()
                except BrokenProcessPool:
                    suspects.append(task)
                else:
                    yield found
        suspects += running.values()
    for task in suspects:
        yield _alone(batch, task)


def _alone(batch: Batch, task: Task) -> Outcome:
    """What becomes of ``task`` in a process of its own."""
    with _pool(1) as pool:
        try:
            return pool.submit(batch.run_one, task).result()
        except BrokenProcessPool:
            return batch.outcome(task, CRASHED, "the process that worked on it died")


@contextmanager
def _pool(jobs: int) -> Generator[ProcessPoolExecutor]:
    """Processes forked from a server with irc imported; not copies of this one, which has threads.

    Those that are still at work when the block fails, because of an interrupt, say, are ended.
    """
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(list(_IMPORTED))
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, _begin)
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Leave it to the parent to end on an interrupt, and say nothing: outcomes tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the life of the process


@contextmanager
def _few_threads(threads: int | None) -> Generator[None]:
    """Let libraries in processes started meanwhile use this many threads; None: as many as they choose."""
    names = () if threads is None else _THREADS
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# -- an engine that exists -------------------------------------------------------


def engine_at(address: str) -> Engine:
    """The engine at ``dask://host:port``, a Dask scheduler whose workers have irc and the same files.

    Raises:
        Error: IRC334 there is no such engine, it does not answer, or its package is not installed.
    """
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
        raise Error("IRC334", f"no engine is called {address!r}: give dask://host:port")
    return partial(_dask, place)


def _dask(place: str, batch: Batch, tasks: Sequence[Task]) -> Generator[Outcome]:
    try:
        import distributed
    except ImportError:
        raise Error("IRC334", "dask:// needs the package distributed: pip install 'irc[batch]'") from None
    dask: Any = distributed  # its types are partial
    for name in filter(lambda name: name.startswith("distributed"), list(logging.root.manager.loggerDict)):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they report of lost workers, outcomes tell
    try:
        client = dask.Client(f"tcp://{place}", timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        message = f"no scheduler of Dask answers at {place} ({str(error).splitlines()[0] or type(error).__name__})"
        raise Error("IRC334", message) from None
    try:
        executor = cast("Executor", client.get_executor(pure=False))
        futures = {executor.submit(batch.run_one, task): task for task in tasks}
        for future in as_completed(futures):
            task = futures[future]
            try:
                yield future.result()
            except dask.KilledWorker:
                yield batch.outcome(task, CRASHED, "several workers that worked on it died")
            except CancelledError:
                raise Error("IRC334", f"the scheduler at {place} is gone: --resume does the rest") from None
            except Exception as error:  # of the worker: irc is missing there, say
                yield batch.outcome(task, FAILED, f"the worker failed: {error_text(error)}")
    finally:
        client.close(timeout=1)


# -- all of it -------------------------------------------------------------------


def run(batch: Batch, tasks: Sequence[Task], engine: Engine) -> Generator[Outcome]:
    """Yield the outcome of each task as it comes; those of an earlier batch first, not repeated."""
    yield from (batch.known[task.path] for task in tasks if batch.is_known(task))
    rest = [task for task in tasks if not batch.is_known(task)]
    if rest:
        yield from engine(batch, rest)
