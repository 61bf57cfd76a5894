"""``irc run`` and ``irc bench``: run a model, and time it next to other runtimes if they are installed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

from irc.cli import options
from irc.cli.options import Kind
from irc.cli.output import emit, progress, say
from irc.errors import Error
from irc.support.formatting import one_line

if TYPE_CHECKING:
    from irc.runtime.limits import Limits
    from irc.runtime.model import CompiledModel
    from irc.runtime.profile import Profile

RUN_EXAMPLES = """\
  irc run model.irc --input x=x.npy -o y.npz     run on an array that numpy.save wrote
  irc run model.onnx --seed 0 --dim batch=4      run on random inputs
  irc run model.onnx --seed 0 --max-seconds 10   run a model that may do anything
  irc run model.onnx --seed 0 --profile          see where its time and memory go"""

WARM_UP = 2
"""Runs before one that is profiled: the first reads weights, the second plans memory."""


def add_run(commands: options.Commands) -> None:
    """Add ``run``."""
    parser = options.add_command(commands, "run", "run a model on .npy inputs", RUN_EXAMPLES)
    options.add_model(parser)
    options.add_inputs(parser)
    options.option(parser, "--seed", "SEED", "make up the inputs that are not given, from this seed", options.seed)
    options.option(parser, "-o/--output", "OUT.npz", "where to write the outputs")
    options.flag(parser, "--profile", "run three times and say where time and memory of the third run go")
    options.option(parser, "--trace", "OUT.json", "write the profile as a trace file, for Chrome or Perfetto")
    options.option(parser, "--threads", "N", "how many threads matrix products may use", options.threads)
    options.add_pipeline(parser, None)
    options.add_backend(parser)
    options.add_limits(parser)
    parser.set_defaults(run=run_model)


def run_model(given: argparse.Namespace) -> int:
    """Run the model; print one line for each output."""
    from irc.cli.arrays import summary
    from irc.tools.archives import write_archive

    if (given.dim or given.shape) and given.seed is None:
        given.usage_error("--dim and --shape are for the inputs that --seed makes up")
    if given.output is not None:
        options.check_output(given.output, (".npz",), given.model)
    if given.trace is not None:
        options.check_output(given.trace, (".json",), given.model)
    limits = options.limits(given)
    passes = options.pipeline_unless_compiled(given)
    with progress() as tell:
        model = given.model.compiled(passes, tell, given.backend)
        _spare_what_is_read(model, given)
        feeds = _inputs(model, given, limits)
        tell("running")
        profile = _profile(model, feeds, limits, given.threads) if given.profile or given.trace is not None else None
        results = profile.outputs if profile is not None else model.run(feeds, limits=limits, threads=given.threads)
        if given.output is not None:
            write_archive(given.output, results, say)
        if profile is not None and given.trace is not None:
            profile.save_trace(given.trace)
    if profile is not None and given.profile:
        from irc.cli.tables import print_profile

        print_profile(profile)
    emit("".join(f"{one_line(name)}: {summary(value)}\n" for name, value in results.items()))
    return 0


def _spare_what_is_read(model: CompiledModel, given: argparse.Namespace) -> None:
    """Raise an error if a file to be written is one that the model, or an input, is read from."""
    from irc.support.files import real_path, spare_sources

    written: list[str] = [path for path in (given.output, given.trace) if path]
    spare_sources(model.module.sources, written)
    # What is the name of an input may hold "=" too; so may that of its file.
    read = [real_path(text[i + 1 :]) for text in given.input for i, sign in enumerate(text) if sign == "="]
    spare_sources(read, written, "an input is read from this file")


def _inputs(model: CompiledModel, given: argparse.Namespace, limits: Limits | None) -> dict[str, Any]:
    """The given inputs and, with a seed, made-up values for the others."""
    from irc.cli.arrays import complete, read_inputs
    from irc.tools.random_inputs.draw import can_be_made_up

    feeds = read_inputs(model, given.input)
    if given.seed is not None:
        return complete(model, feeds, given, limits)
    if missing := [a for a in model.inputs if not a.optional and a.name not in feeds]:
        each = ", ".join(f"{a.name!r} ({a.type})" for a in missing)
        seed = ", or --seed 0 to make values up" if all(can_be_made_up(a.type) for a in missing) else ""
        raise Error("IRC410", f"no value for {each}: give --input NAME=FILE.npy{seed}")
    return feeds


def _profile(model: CompiledModel, feeds: Mapping[str, Any], limits: Limits | None, threads: int | None) -> Profile:
    for _ in range(WARM_UP):
        model.run(feeds, limits=limits, threads=threads)  # what these keep to, a third one does
    return model.profile(feeds, threads=threads)


# ``irc bench``: time a model, next to other runtimes if they are installed.


Runner = Callable[[], Any]

PEERS = ("onnxruntime", "onnx.reference")
"""Other runtimes; the first part of a name is the package it needs."""

SETTLE = 0.05
"""Seconds of waiting, and then of runs, before one that is timed: threads of ONNX Runtime, PyTorch and OpenBLAS look
for more work for some 20 ms after their last, and occupy a processor during the next run."""

BENCH_EXAMPLES = """\
  irc bench model.onnx                           against ONNX Runtime, if it is installed
  irc bench model.onnx --against none --runs 50  irc alone"""


def add_bench(commands: options.Commands) -> None:
    """Add ``bench``."""
    parser = options.add_command(commands, "bench", "time a model, next to other runtimes", BENCH_EXAMPLES)
    options.add_model(parser)
    said = "another runtime, on the same inputs (default: onnxruntime if installed)"
    parser.add_argument("--against", action="append", choices=[*PEERS, "none"], help=said)
    said = "timed runs of each, taken in turns (default 10)"
    parser.add_argument("--runs", type=options.whole_number, default=10, help=said)
    parser.add_argument("--seed", type=options.seed, default=0, help="seed of the inputs that are not given")
    options.add_inputs(parser)
    options.add_pipeline(parser, None)
    options.add_backend(parser)
    parser.set_defaults(run=run_bench)


def run_bench(given: argparse.Namespace) -> int:
    """Print median milliseconds of each runtime, and the ratio to irc's."""
    from irc.cli.arrays import complete, read_inputs

    passes = options.pipeline_unless_compiled(given)
    with progress() as tell:
        model = given.model.compiled(passes, tell, given.backend)
        feeds = complete(model, read_inputs(model, given.input), given)
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
