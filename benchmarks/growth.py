"""``python -m benchmarks.growth``: how time and memory grow with the size of a graph.

Each family and size runs in a process of its own, which reports the processor
seconds and the highest memory of each step: reading the text, importing the
ONNX form, building the alias analysis, 1,000 queries, the fuse pass with its
alias analysis, and, for smaller graphs, every other pass. An exponent of 1 is
linear.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import families, memory

SIZES = (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000)
QUERIES = 1_000
MOST_FOR_PASSES = 100_000
TURNS = 5
BASIC = ("parse", "alias", "queries", "fuse")
"""The steps on one and the same graph; their memory is that of the graph too."""

Step = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("families", nargs="*", help=f"of {', '.join(families.FAMILIES)} (default: all)")
    parser.add_argument("--largest", type=int, default=SIZES[-1], metavar="N", help="nodes (default 1,000,000)")
    parser.add_argument("--no-passes", action="store_true", help="leave out the passes other than fuse")
    parser.add_argument("--worker", nargs=2, metavar=("FAMILY", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker[0], int(options.worker[1]), passes=not options.no_passes)))
        return
    unknown = set(options.families) - set(families.FAMILIES)
    if unknown:
        parser.error(f"unknown families: {', '.join(sorted(unknown))}")
    sizes = [n for n in SIZES if n <= options.largest]
    if not sizes:
        parser.error(f"--largest must be at least {SIZES[0]}")
    run(options.families or list(families.FAMILIES), sizes, passes=not options.no_passes)


def run(names: Sequence[str], sizes: Sequence[int], passes: bool) -> dict[str, Any]:
    """Measure, print a table a family, and save the result."""
    from benchmarks import facts

    result: dict[str, Any] = {}
    for name in names:
        rows = [_worker(name, n, passes) for n in sizes]
        result[name] = {"runs": rows, "exponents": exponents(rows)}
        _print(name, rows, result[name]["exponents"])
    print(f"\n{facts.save('growth', {'families': result})}")
    return result


# -- one family and size, in a process of its own ---------------------------------


def measure(family: str, n: int, passes: bool) -> dict[str, Any]:
    """What each step on one graph takes: median processor seconds, highest bytes above those before the first step."""
    import irc.compiler  # noqa: F401  # registers the passes
    from benchmarks import onnx_families
    from irc.frontend.onnx import import_model
    from irc.ir import parse_graph
    from irc.passes import registry

    text = families.text(family, n)
    model = onnx_families.build(family, n) if family in onnx_families.FAMILIES else None
    turns = max(1, min(TURNS, 200_000 // n))
    steps: dict[str, Any] = {}
    nodes = 0
    watch = memory.Watch()
    for turn in range(turns):
        nodes = _Turn(steps, watch if turn == 0 else None).basic(lambda: parse_graph(text))
    if model is not None:
        for turn in range(turns):
            _Turn(steps, watch if turn == 0 else None).timed("import", lambda: import_model(model))
    if passes and n <= MOST_FOR_PASSES:
        for name in registry.names():
            if name != "fuse":
                for turn in range(turns):
                    _Turn(steps, watch if turn == 0 else None).one_pass(name, parse_graph(text))
    for step in steps.values():
        step["seconds"] = median(step.pop("samples"))
    peak = max(steps[name]["bytes"] for name in BASIC)
    return {"nodes": nodes, "peak": peak, "steps": steps}


class _Turn:
    """One run of the steps. The first also measures memory."""

    def __init__(self, steps: dict[str, Any], watch: memory.Watch | None) -> None:
        self.steps = steps
        self.watch = watch

    def timed(self, name: str, action: Callable[[], Any]) -> Any:
        step = self.steps.setdefault(name, {"samples": []})
        gc.collect()
        if self.watch is not None:
            self.watch.reset()
        begin = time.process_time()
        result = action()
        step["samples"].append(time.process_time() - begin)
        if self.watch is not None:
            step["bytes"] = self.watch.highest()
        return result

    def basic(self, parse: Callable[[], Any]) -> int:
        """Read, analyse, ask and fuse; returns the number of nodes."""
        from irc.alias import analyze

        graph = self.timed("parse", parse)
        db = self.timed("alias", lambda: analyze(graph))
        self.queries(graph, db)
        del db  # the fuser makes its own; the peak is that of one
        count = sum(1 for _ in graph.walk())
        self.one_pass("fuse", graph)
        return count

    def queries(self, graph: Any, db: Any) -> None:
        values = [value for node in graph.walk() for value in node.outputs]
        rng = random.Random(0)
        pairs = [(rng.choice(values), rng.choice(values)) for _ in range(QUERIES)]
        self.timed("queries", lambda: [db.may_alias(a, b) for a, b in pairs])

    def one_pass(self, name: str, graph: Any) -> None:
        from irc.passes import PassManager

        self.timed(name, lambda: PassManager(name).run(graph))


# -- all of them -------------------------------------------------------------------


def exponents(rows: Sequence[dict[str, Any]]) -> dict[str, Step]:
    """For each step the exponent fitted over all sizes, and that between the two largest."""
    found: dict[str, Step] = {}
    for name in dict.fromkeys(step for row in rows for step in row["steps"]):
        points = [(row["nodes"], row["steps"][name]["seconds"]) for row in rows if name in row["steps"]]
        if len(points) >= 2:
            found[name] = {"fitted": slope(points), "last": slope(points[-2:])}
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The exponent e of the least-squares fit of seconds = c * nodes**e."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(max(seconds, 1e-9)) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def _worker(family: str, n: int, passes: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.growth", "--worker", family, str(n)]
    done = subprocess.run(
        command if passes else [*command, "--no-passes"],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _print(name: str, rows: Sequence[dict[str, Any]], found: dict[str, Step]) -> None:
    print(f"\n{name}: microseconds a node")
    print(
        f"{'step':18}"
        + "".join(f"{row['nodes']:>11,}" for row in rows)
        + "   exponent     last  bytes a node at the peak"
    )
    for step in found:
        cells = [row["steps"].get(step) for row in rows]
        times = "".join(
            f"{c['seconds'] / row['nodes'] * 1e6:11.2f}" if c else f"{'':11}" for c, row in zip(cells, rows)
        )
        nodes, last = max((row["nodes"], c) for c, row in zip(cells, rows) if c)
        exponent = found[step]
        print(f"{step:18}{times}{exponent['fitted']:11.2f}{exponent['last']:9.2f}{last['bytes'] / nodes:14,.0f}")


if __name__ == "__main__":
    main()
