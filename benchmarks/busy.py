"""``python -m benchmarks.busy``: models on a busy machine, as many times as long as on a quiet one; ONNX Runtime's too.

Where a product of matrices is shared among threads that wait for each other, each waits until the operating system
gives the last of them a processor. The machine should be quiet when this begins. Exit status 1 if a model slows down
by more than 1.5 times what it slows down in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import irc
from benchmarks import peers
from benchmarks.race import IRC
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs

MOST = 1.5
"""How many times as much as in ONNX Runtime a model may slow down."""

RUNS = 3
"""Timed one after the other; another one before them is not."""

PAUSE = 0.05
"""Seconds before these: until then, threads of the other look for more work and keep a processor busy."""

PEER = "onnxruntime"

Runners = Mapping[str, Callable[[Any], Any]]


@contextmanager
def busy(processes: int) -> Generator[None]:
    """While this is open, so many other processes compute without a pause."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        time.sleep(0.5)
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def times(runners: Runners, feeds: Any, turns: int) -> dict[str, float]:
    """The median of the seconds that each takes, in turns of `RUNS` runs each."""
    found: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(turns):
        for name, run in runners.items():
            time.sleep(PAUSE)
            run(feeds)
            for _ in range(RUNS):
                begin = time.perf_counter()
                run(feeds)
                found[name].append(time.perf_counter() - begin)
    return {name: median(seconds) for name, seconds in found.items()}


def slowdown(name: str, turns: int, processes: int) -> float:
    """How many times as much as in ONNX Runtime a model slows down beside busy processes; printed with both."""
    model = randomize_weights(bundled_model(name), seed=0)
    feeds = seeded_inputs(model, seed=1)
    runners = {IRC: irc.compile(model).run, PEER: peers.runners(model)[PEER]}
    quiet = times(runners, feeds, turns)
    with busy(processes):
        loaded = times(runners, feeds, turns)
    slower = {tool: loaded[tool] / quiet[tool] for tool in runners}
    each = "   ".join(f"{tool} {quiet[tool] * 1e3:7.1f} ms, {slower[tool]:5.2f} times" for tool in runners)
    print(f"{name:15} {each}   {slower[IRC] / slower[PEER]:5.2f}", flush=True)
    return slower[IRC] / slower[PEER]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"only these, of {', '.join(BUNDLED)}")
    parser.add_argument("--turns", type=int, default=7, help=f"turns of {RUNS} runs each (default 7)")
    parser.add_argument("--processes", type=int, default=4, help="how many other processes compute (default 4)")
    options = parser.parse_args()
    unknown = set(options.models) - set(BUNDLED)
    if unknown or options.turns < 1 or options.processes < 0:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}" if unknown else "numbers must be positive")
    if (load := os.getloadavg()[0]) > 1:
        print(f"the machine is not quiet (load {load:.1f}): what follows says little", file=sys.stderr)
    found = [slowdown(name, options.turns, options.processes) for name in options.models or BUNDLED]
    return int(max(found) > MOST)


if __name__ == "__main__":
    sys.exit(main())
