"""``python -m benchmarks.growth``: how time and memory grow with the size of a graph.

Each family and size runs in a process of its own, which reports the processor
seconds and the highest resident memory of each step: reading the text, importing the
ONNX form, building the alias analysis, 1,000 queries, the fuse pass with its
alias analysis, and, up to 100,000 nodes, every other pass. Families of
benchmarks.work are those in which passes have work that the others leave them
none of: passes alone are measured there. Memory is that of a fork, which has
nothing of other passes. An exponent of 1 is linear.

Processors change their pace, by more than a half, for seconds or minutes: what
is measured is how often a bit of Python, timed right before and after, would
fit into a step. Times are that by the bit's own at the family's fastest.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import families, memory, results, work
from benchmarks.results import Row

SIZES = (1_000, 4_000, 16_000, 100_000, 250_000, 1_000_000)
QUERIES = 1_000
MOST_FOR_PASSES = 100_000
QUICK = 16_000
TURNS = 5

NAMES = (*families.FAMILIES, *work.FAMILIES)

BIT = 12_000
"""Strings that the bit of Python makes: about a millisecond's worth."""

Step = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("families", nargs="*", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--largest", type=int, default=SIZES[-1], metavar="N", help="nodes (default 1,000,000)")
    parser.add_argument("--no-passes", action="store_true", help="leave out the passes other than fuse")
    parser.add_argument("--worker", nargs=2, metavar=("FAMILY", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker[0], int(options.worker[1]), passes=not options.no_passes)))
        return
    unknown = set(options.families) - set(NAMES)
    if unknown:
        parser.error(f"unknown families: {', '.join(sorted(unknown))}")
    if options.largest < SIZES[1]:
        parser.error(f"--largest must be at least {SIZES[1]}: a fit needs two sizes")
    names = [name for name in options.families or NAMES if name in families.FAMILIES or not options.no_passes]
    if not names:
        parser.error("of these families, only passes are measured")
    print(f"\n{run(names, options.largest, passes=not options.no_passes)}")


def run(names: Sequence[str], largest: int, passes: bool = True) -> Path:
    """Measure sizes up to ``largest``, print a table a family, and save the results; returns where."""
    rows: list[Row] = []
    details: dict[str, Any] = {}
    for name in names:
        most = largest if name in families.FAMILIES else min(largest, MOST_FOR_PASSES)
        runs = in_seconds([_worker(name, n, passes) for n in SIZES if n <= most])
        found = exponents(runs)
        _print(name, runs, found)
        rows += rows_of(name, runs, found)
        details[name] = runs
    steepest = max((row for row in rows if row.unit == "exponent"), key=lambda row: row.value)
    fattest = max((row for row in rows if row.unit == "bytes/node"), key=lambda row: row.value)
    print(f"\nthe steepest: {steepest.name}, exponent {steepest.value:.2f}")
    print(f"the fattest: {fattest.name}, {fattest.value:,.0f} bytes a node")
    return results.save("growth", rows, families=details)


def in_seconds(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was counted in bits of Python, in seconds at the fastest pace of all ``runs``."""
    bit = min(run["bit"] for run in runs)
    return [
        {**run, "steps": {name: {**step, "seconds": step["bits"] * bit} for name, step in run["steps"].items()}}
        for run in runs
    ]


def rows_of(family: str, runs: Sequence[dict[str, Any]], found: dict[str, Step]) -> list[Row]:
    """For each step its exponent and, at the largest size it ran at, its bytes and microseconds a node."""
    rows: list[Row] = []
    for step, exponent in found.items():
        name = f"{family}/{step}"
        largest = max((run for run in runs if step in run["steps"]), key=lambda run: run["nodes"])
        n, last = largest["nodes"], largest["steps"][step]
        rows.append(Row(f"{name}/exponent", exponent["fitted"], "exponent"))
        rows.append(Row(f"{name}/memory at {n}", last["bytes"] / n, "bytes/node"))
        rows.append(Row(f"{name}/time at {n}", last["seconds"] / n * 1e6, "us/node"))
    return rows


# -- one family and size, in a process of its own ---------------------------------


def measure(family: str, n: int, passes: bool) -> dict[str, Any]:
    """What each step on one graph takes: median of bits, highest bytes above those before the first step."""
    import irc.compiler  # noqa: F401  # registers the passes
    from irc.ir import parse_graph
    from irc.passes import registry

    names = list(registry.names())
    groups: list[Callable[[_Turn], None]] = []
    if family in work.FAMILIES:
        make: Callable[[], Any] = partial(work.FAMILIES[family], n)
        nodes = n
    else:
        make = partial(parse_graph, families.text(family, n))
        nodes = sum(1 for _ in make().walk())
        groups = _reading(family, n, make)
        names.remove("fuse")
    if passes and n <= MOST_FOR_PASSES:
        groups += [lambda turn, name=name: turn.one_pass(name, make()) for name in names]
    steps: dict[str, Any] = {}
    peaks = [_in_a_fork(group) for group in groups]  # first, while there is no free memory to use again
    for group in groups:
        for _ in range(max(1, min(TURNS, 200_000 // n))):
            group(_Turn(steps))
    for name, highest in (item for peak in peaks for item in peak.items()):
        steps[name]["bytes"] = highest
    for step in steps.values():
        step["bits"] = median(step.pop("samples"))
    return {"nodes": nodes, "bit": min(_bit() for _ in range(50)), "steps": steps}


def _reading(family: str, n: int, parse: Callable[[], Any]) -> list[Callable[[_Turn], None]]:
    """What is measured of graphs of any size: from text, and from ONNX where that can express them."""
    from benchmarks import onnx_families
    from irc.frontend.onnx import import_model

    groups: list[Callable[[_Turn], None]] = [lambda turn: turn.basic(parse)]
    if family in onnx_families.FAMILIES:
        model = onnx_families.build(family, n)
        groups.append(lambda turn: turn.timed("import", lambda: import_model(model)))
    return groups


def _in_a_fork(group: Callable[[_Turn], None]) -> dict[str, int]:
    """What ``group`` takes at the highest, by step, above what this process holds; nothing that it leaves stays."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        gc.freeze()
        steps: dict[str, Any] = {}
        group(_Turn(steps, memory.Watch()))
        sender.send({name: step["bytes"] for name, step in steps.items()})

    child = context.Process(target=run)
    gc.collect()  # the child must not take apart what others have left: it would wait for threads that it has not got
    child.start()
    sender.close()
    try:
        return receiver.recv()
    finally:
        child.join()


def _bit() -> float:
    """Processor seconds for a bit of Python of the kind that compilers are made of."""
    begin = time.process_time()
    made = {str(i): i for i in range(BIT)}  # nothing that would call the collector
    assert len(made) == BIT
    return time.process_time() - begin


class _Turn:
    """One run of the steps, which may also measure memory."""

    def __init__(self, steps: dict[str, Any], watch: memory.Watch | None = None) -> None:
        self.steps = steps
        self.watch = watch

    def timed(self, name: str, action: Callable[[], Any]) -> Any:
        step = self.steps.setdefault(name, {"samples": []})
        gc.collect()
        if self.watch is not None:  # then nothing is timed, for bits take memory
            self.watch.reset()
            result = action()
            step["bytes"] = self.watch.highest()
            return result
        before = _bit()
        begin = time.process_time()
        result = action()
        spent = time.process_time() - begin
        step["samples"].append(2 * spent / (before + _bit()))
        return result

    def basic(self, parse: Callable[[], Any]) -> None:
        """Read, analyse, ask and fuse."""
        from irc.alias import analyze

        graph = self.timed("parse", parse)
        db = self.timed("alias", lambda: analyze(graph))
        self.queries(graph, db)
        del db  # the fuser makes its own; the peak is that of one
        self.one_pass("fuse", graph)

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
        nodes, last = max(((row["nodes"], c) for c, row in zip(cells, rows) if c), key=lambda pair: pair[0])
        exponent = found[step]
        print(f"{step:18}{times}{exponent['fitted']:11.2f}{exponent['last']:9.2f}{last['bytes'] / nodes:14,.0f}")


if __name__ == "__main__":
    main()
