"""``irc bench``: time a model, next to other runtimes if they are installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from irc.cli import options
from irc.cli.options import Kind
from irc.cli.output import emit, emit_json, progress, say
from irc.errors import Error

if TYPE_CHECKING:
    from irc.tools.benchmark import Benchmark, Runner, Timing

PEERS = ("onnxruntime", "onnx.reference")
"""Other runtimes; the first part of a name is the package it needs."""

EXAMPLES = """\
  irc bench model.onnx                           against ONNX Runtime, if it is installed
  irc bench model.onnx --against none --runs 50  irc alone
  irc bench model.onnx --threads 1 --json        every runtime on one thread, as JSON"""


def add_bench(commands: options.Commands) -> None:
    """Add ``bench``."""
    parser = options.add_command(commands, "bench", "time a model, next to other runtimes", EXAMPLES, run_bench)
    options.add(parser, options.add_model, add_bench_options)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """All options of ``bench``."""
    said = "another runtime, on the same inputs (default: onnxruntime if installed)"
    parser.add_argument("--against", action="append", choices=[*PEERS, "none"], help=said)
    said = "timed runs of each, taken in turns (default 10)"
    parser.add_argument("--runs", type=options.whole_number, default=10, help=said)
    said = "runs of each before any is timed (default 3)"
    parser.add_argument("--warm-up", type=options.whole_number, default=3, metavar="N", help=said)
    said = "how many threads each runtime may use (default: as many as it chooses)"
    options.option(parser, "--threads", "N", said, options.threads)
    options.add(parser, options.add_seed, options.add_inputs, options.add_pipeline_unless_compiled)
    options.add(parser, options.add_backend, options.add_json)


def run_bench(given: argparse.Namespace) -> int:
    """Print a line for each runtime: the median, that relative to irc's, percentiles, spread, memory."""
    found = bench(given)
    if given.json:
        emit_json(found.to_dict())
        return 0
    machine = found.machine
    about = f"{machine.processor}, {machine.processors} processors; {machine.system}, Python {machine.python}"
    inputs = ", ".join(f"{name} {said}" for name, said in found.inputs.items())
    say(f"{about}, NumPy {machine.numpy}; {inputs or 'no inputs'}")
    width = max(len(timing.runtime) for timing in found.timings)
    for timing in found.timings:
        emit(f"{timing.runtime:<{width}} {_line(timing)}")
    return 0


def _line(timing: Timing) -> str:
    memory = "" if timing.memory is None else f"  +{timing.memory / 1e6:,.1f} MB"
    threads = f", threads {timing.threads}" if timing.threads is not None else ""
    percentiles = f"p5 {timing.p5 * 1e3:,.3f}  p95 {timing.p95 * 1e3:,.3f}  spread {timing.spread:.1%}"
    middle = f"{timing.median * 1e3:12,.3f} ms {timing.ratio:8.2f} x irc"
    return f"{middle}  {percentiles}{memory}  ({timing.version}{threads})"


def bench(given: argparse.Namespace) -> Benchmark:
    """Time what a command line says."""
    from irc.cli.arrays import complete, form, read_inputs
    from irc.tools.benchmark import Benchmark, Timing, grown, machine, race, resident_bytes, version_of

    passes = options.pipeline_unless_compiled(given)
    memory: dict[str, int | None] = {}
    with progress() as tell:
        before = resident_bytes()
        model = given.model.compiled(passes, tell, given.backend)
        feeds = complete(model, read_inputs(model, given.input), given)
        runners: dict[str, Runner] = {"irc": lambda: model.run(feeds, threads=given.threads)}
        runners["irc"]()
        memory["irc"] = grown(before)
        for name in _peers(given):
            before = resident_bytes()
            try:
                runner = _runner(name, given.model.path, feeds, given.threads)
                runner()  # some find out only now
            except Error as error:
                if given.against is not None:
                    raise
                say(f"{error.message}; left out")
            else:
                runners[name], memory[name] = runner, grown(before)
        tell("running")
        samples = race(runners, given.runs, given.warm_up)
    own = model.options.threads if given.threads is None else given.threads
    timings = [
        Timing(name, version_of(name), own if name == "irc" else given.threads, seconds, memory[name])
        for name, seconds in samples.items()
    ]
    for timing in timings:
        timing.ratio = timing.median / timings[0].median
    inputs = {name: form(value) for name, value in feeds.items()}
    return Benchmark(given.model.path, inputs, given.warm_up, machine(), timings)


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


def _runner(name: str, path: str, feeds: dict[str, Any], threads: int | None) -> Runner:
    """A function that runs ``feeds`` with another runtime; Error IRC331 if it cannot run the model."""
    from irc.tools.check import peers

    def told(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except peers.Unable as why:
            raise Error("IRC331", f"{name} cannot run it: {why}", path) from None

    def prepare() -> peers.Runner:
        proto, folder = peers.read(path)
        if name == "onnxruntime":
            return peers.onnxruntime(proto, folder, threads or 0)
        return peers.reference(proto, folder)

    ready: peers.Runner = told(prepare)
    return lambda: told(lambda: ready(feeds, None))
