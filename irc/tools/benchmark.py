"""How long runs take: of irc, and of other runtimes beside it on the same inputs."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from irc import __version__
from irc.runtime.threads import usable_processors

Runner = Callable[[], Any]

SETTLE = 0.05
"""Seconds of waiting, and then of runs, before one that is timed: threads of ONNX Runtime, PyTorch and OpenBLAS look
for more work for some 20 ms after their last, and occupy a processor during the next run."""


@dataclass
class Timing:
    """The runs of one runtime.

    Attributes:
        runtime: its name, and ``version``.
        threads: how many may work at a run; None: as many as the runtime chooses.
        seconds: of each timed run, in order.
        median, mean, fastest, slowest, p5, p25, p75, p95: of these; percentiles are interpolated.
        spread: the distance from the 25th to the 75th percentile, relative to the median.
        ratio: the median, relative to irc's.
        memory: by how many bytes the process has grown, from before the model was loaded to after its first run; None
            where the system does not tell.
    """

    runtime: str
    version: str
    threads: int | None
    seconds: list[float]
    memory: int | None = None
    ratio: float = 1.0
    median: float = field(init=False)
    mean: float = field(init=False)
    fastest: float = field(init=False)
    slowest: float = field(init=False)
    p5: float = field(init=False)
    p25: float = field(init=False)
    p75: float = field(init=False)
    p95: float = field(init=False)
    spread: float = field(init=False)

    def __post_init__(self) -> None:
        points = np.percentile(self.seconds, [0, 5, 25, 50, 75, 95, 100]).tolist()
        self.fastest, self.p5, self.p25, self.median, self.p75, self.p95, self.slowest = points
        self.mean = sum(self.seconds) / len(self.seconds)
        self.spread = (self.p75 - self.p25) / self.median if self.median else 0.0


@dataclass
class Machine:
    """Where runs were timed: processor, usable processors, system, versions of Python and NumPy."""

    processor: str = ""
    processors: int = 0
    system: str = ""
    python: str = ""
    numpy: str = ""


@dataclass
class Benchmark:
    """Timings of a model.

    Attributes:
        model: its file.
        inputs: input -> type and shape of what it was run on.
        warm_up: runs of each runtime before any was timed, besides those before each timed one.
        machine: where.
        timings: irc's first.
    """

    model: str
    inputs: dict[str, str]
    warm_up: int
    machine: Machine
    timings: list[Timing]

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self)


def race(runners: Mapping[str, Runner], runs: int, warm_ups: int = 0) -> dict[str, list[float]]:
    """The seconds of each run of each runner; these take turns, so that disturbances affect all alike."""
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for runner in runners.values():
        for _ in range(warm_ups):
            runner()
    for _ in range(runs):
        for name, runner in runners.items():
            warm_up(runner)
            start = time.perf_counter()
            runner()
            samples[name].append(time.perf_counter() - start)
    return samples


def warm_up(runner: Runner) -> None:
    """Wait until the threads of other runners sleep, then run ``runner`` until its own are awake."""
    time.sleep(SETTLE)
    end = time.perf_counter() + SETTLE
    runner()
    while time.perf_counter() < end:
        runner()


def version_of(runtime: str) -> str:
    """The version of a runtime, ``onnx.reference`` being a part of the package onnx."""
    return __version__ if runtime == "irc" else version(runtime.partition(".")[0])


def machine() -> Machine:
    """This machine."""
    system = f"{platform.system()} {platform.machine()}"
    return Machine(_processor(), usable_processors(), system, platform.python_version(), np.__version__)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def resident_bytes() -> int | None:
    """Memory of this process; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def grown(since: int | None) -> int | None:
    """The bytes by which this process has grown beyond ``since``; None if that is not known."""
    now = resident_bytes()
    return None if since is None or now is None else max(0, now - since)
