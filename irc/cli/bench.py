"""``irc bench``: time a model, next to other runtimes if they are installed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

from irc.cli import common
from irc.errors import Error

Runner = Callable[[], Any]


def add_commands(commands: common.Commands) -> None:
    """Add ``bench``."""
    parser = commands.add_parser("bench", help="time a model")
    parser.add_argument("model", metavar="MODEL", help="ONNX file, .irc file, or IR text (.ir)")
    parser.add_argument(
        "--against", action="append", choices=sorted(PEERS), default=[], help="another runtime, on the same inputs"
    )
    parser.add_argument("--runs", type=int, default=10, help="timed runs of each, taken in turns (default 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs")
    common.add_pipeline(parser)
    common.add_sizes(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print median milliseconds of each runtime, and the ratio to irc's."""
    from irc.seeded import assumed_sizes, seeded_inputs

    if options.runs < 1:
        raise Error("IRC102", "at least one run is needed", f"--runs {options.runs}")
    sizes = common.sizes_of(options)
    model = common.compiled(options.model, options)
    feeds = seeded_inputs(model.inputs, options.seed, sizes)
    assumed = assumed_sizes(model.inputs, sizes)
    if assumed:
        print("assumed " + ", ".join(f"{n}={s}" for n, s in assumed.items()), file=sys.stderr)
    runners: dict[str, Runner] = {"irc": lambda: model.run(feeds)}
    for name in options.against:
        module, prepare = PEERS[name]
        if find_spec(module) is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
        else:
            runners[name] = prepare(options.model, feeds)
    times = race(runners, options.runs)
    for name, seconds in times.items():
        print(f"{name:16}{seconds * 1e3:10.2f} ms{seconds / times['irc']:10.2f} of irc's")
    return 0


def race(runners: dict[str, Runner], runs: int) -> dict[str, float]:
    """Median seconds of each runner after one run to warm up; they take turns, so that disturbances hit all alike."""
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(runs + 1):
        for name, runner in runners.items():
            start = time.perf_counter()
            runner()
            if turn:
                samples[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in samples.items()}


def _onnxruntime(path: str, feeds: dict[str, Any]) -> Runner:
    import onnxruntime

    try:
        session: Any = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has exceptions of its own for each way a model can be wrong or unsupported
        raise Error("IRC331", f"ONNX Runtime cannot load it: {str(error).splitlines()[0]}", path) from None
    return lambda: session.run(None, feeds)


def _reference(path: str, feeds: dict[str, Any]) -> Runner:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    return lambda: evaluator.run(None, feeds)  # type: ignore[reportUnknownMemberType]


PEERS: dict[str, tuple[str, Callable[[str, dict[str, Any]], Runner]]] = {
    "onnxruntime": ("onnxruntime", _onnxruntime),
    "onnx.reference": ("onnx", _reference),
}
"""Other runtimes: the package that each needs, and how it is made ready."""
