"""``python -m benchmarks``: irc against its peers, on models built or bundled here.

Two tables a model: optimising it (seconds, nodes left) and running it (milliseconds). The contenders take turns, and
the median of each counts, so that what else the machine does falls on all of them alike.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, TypeVar

import onnx

import irc
from benchmarks import peers
from benchmarks.yolov3 import build
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs

MODELS = ("yolov3", *BUNDLED)
DEFAULT = ("yolov3", "squeezenet", "resnet50")

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--turns", type=int, default=5, help="how often each contender is timed (default 5)")
    options = parser.parse_args()
    unknown = set(options.models) - set(MODELS)
    if unknown or options.turns < 1:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}" if unknown else "--turns must be at least 1")
    logging.disable(logging.WARNING)  # some tools warn about every weight
    for name in options.models or DEFAULT:
        measure(name, build() if name == "yolov3" else randomize_weights(bundled_model(name), seed=0), options.turns)


def measure(name: str, model: onnx.ModelProto, turns: int) -> None:
    """Print both tables for one model."""
    print(f"\n{name}: {len(model.graph.node):,} nodes, {model.ByteSize() / 1e6:,.0f} MB")

    optimizers = {"irc": irc.compile, **peers.installed(peers.OPTIMIZERS)}
    seconds, results = race(optimizers, lambda: _copy(model), turns)  # copies, for some tools change their argument
    compiled = results.pop("irc")
    nodes = {tool: len(result.graph.node) for tool, result in results.items()}
    nodes["irc"] = sum(node.kind != "prim::Constant" for node in compiled.graph.nodes)
    print(f"\n{'optimise':16}{'seconds':>10}{'nodes':>10}")
    for tool, taken in seconds.items():
        print(f"{tool:16}{taken:10.2f}{nodes[tool]:10,}")

    feeds = seeded_inputs(model, seed=1)
    runners = {tool: prepare(model) for tool, prepare in peers.installed(peers.RUNNERS).items()}
    seconds, _ = race({"irc": compiled.run, **runners}, lambda: feeds, turns)
    print(f"\n{'run':16}{'ms':>10}{'to irc':>10}")
    for tool, taken in seconds.items():
        print(f"{tool:16}{taken * 1e3:10.1f}{taken / seconds['irc']:10.2f}")


def race(
    contenders: Mapping[str, Callable[[T], Any]], argument: Callable[[], T], turns: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Median time in seconds of each contender called with an ``argument()`` made outside that time, and its result.

    A contender that fails is said so and left out; irc's own errors are raised.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {}
    running = dict(contenders)
    for _ in range(turns):
        for name, contender in list(running.items()):
            given = argument()
            start = time.perf_counter()
            try:
                results[name] = contender(given)
            except Exception as error:
                if name == "irc":
                    raise
                print(f"{name} fails: {type(error).__name__}: {str(error)[:200]}")
                del running[name]
                continue
            samples[name].append(time.perf_counter() - start)
    return {name: median(samples[name]) for name in running}, results


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


if __name__ == "__main__":
    main()
