"""``irc bench``: time a model, next to other runtimes if they are installed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from statistics import median
from typing import Any

from irc.cli import options
from irc.cli.models import Kind
from irc.cli.output import emit, progress, say
from irc.errors import Error

Runner = Callable[[], Any]

PEERS = ("onnxruntime", "onnx.reference")
"""Other runtimes; the first part of a name is the package it needs."""

SETTLE = 0.05
"""Seconds of waiting, and then of runs, before one that is timed: threads of ONNX Runtime, PyTorch and OpenBLAS look
for more work for some 20 ms after their last, and occupy a processor during the next run."""

EXAMPLES = """\
  irc bench model.onnx                           against ONNX Runtime, if it is installed
  irc bench model.onnx --against none --runs 50  irc alone"""


def add_commands(commands: options.Commands) -> None:
    """Add ``bench``."""
    parser = options.add_command(commands, "bench", "time a model, next to other runtimes", EXAMPLES)
    options.add_model(parser)
    parser.add_argument(
        "--against",
        action="append",
        choices=[*PEERS, "none"],
        help="another runtime, on the same inputs (default: onnxruntime if installed)",
    )
    parser.add_argument(
        "--runs", type=options.whole_number, default=10, help="timed runs of each, taken in turns (default 10)"
    )
    parser.add_argument("--seed", type=options.seed, default=0, help="seed of the inputs that are not given")
    options.add_inputs(parser)
    options.add_pipeline(parser, None)
    options.add_backend(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print median milliseconds of each runtime, and the ratio to irc's."""
    from irc.cli.arrays import complete, read_inputs, stated_sizes

    passes = options.pipeline_unless_compiled(given)
    with progress() as tell:
        model = given.model.compiled(passes, tell, given.backend)
        inputs = read_inputs(model, given.input)
        feeds = complete(model, inputs, given.seed, stated_sizes(model, inputs, given.dim, given.shape))
        runners: dict[str, Runner] = {"irc": lambda: model.run(feeds)}
        for name in _peers(given):
            try:
                runner = _runner(name, given.model.path, feeds)
                runner()  # some find out only now
            except Error as error:
                if given.against is not None:
                    raise
                say(f"{error.message}; left out")
            else:
                runners[name] = runner
        tell("running")
        times = race(runners, given.runs)
    width = max(map(len, times))
    for name, seconds in times.items():
        emit(f"{name:<{width}} {seconds * 1e3:12,.3f} ms {seconds / times['irc']:8.2f} x irc")
    return 0


def race(runners: Mapping[str, Runner], runs: int) -> dict[str, float]:
    """Median seconds of each runner; the runners alternate, so that disturbances affect all alike."""
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(runs):
        for name, runner in runners.items():
            warm_up(runner)
            start = time.perf_counter()
            runner()
            samples[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in samples.items()}


def warm_up(runner: Runner) -> None:
    """Wait until the threads of other runners sleep, then run ``runner`` until its own are awake."""
    time.sleep(SETTLE)
    end = time.perf_counter() + SETTLE
    runner()
    while time.perf_counter() < end:
        runner()


def _peers(given: argparse.Namespace) -> list[str]:
    """The other runtimes to time. Those requested must be installed; the default one may be missing."""
    if given.against is None:
        return ["onnxruntime"] if given.model.kind is Kind.ONNX and find_spec("onnxruntime") else []
    names = [name for name in dict.fromkeys(given.against) if name != "none"]
    if names and given.model.kind is not Kind.ONNX:
        raise Error("IRC331", f"{', '.join(names)} can only run ONNX files: leave out --against", given.model.path)
    missing = [name for name in names if not find_spec(name.partition(".")[0])]
    if missing:
        say(f"{', '.join(missing)} is not installed: left out")
    return [name for name in names if name not in missing]


def _runner(name: str, path: str, feeds: dict[str, Any]) -> Runner:
    """A function that runs ``feeds`` with another runtime; Error IRC331 if the runtime cannot run the model."""
    from irc.tools.check import peers

    def told(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except peers.Unable as why:
            raise Error("IRC331", f"{name} cannot run it: {why}", path) from None

    peer: peers.Peer = {"onnxruntime": peers.onnxruntime, "onnx.reference": peers.reference}[name]
    ready: peers.Runner = told(lambda: peer(*peers.read(path)))
    return lambda: told(lambda: ready(feeds, None))
