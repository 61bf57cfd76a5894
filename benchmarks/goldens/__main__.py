"""``python -m benchmarks.goldens record FILE`` keeps what programs compute, ``compare FILE`` compares with it.

Programs: random ones, small ones of the benchmarks, decoders, ONNX's test suites, light models, the zoo. Each is run
four times without passes and with the default pipeline, on one thread. ``compare`` says of each whether it gives
equal bits, or its error, and which counters differ. Its exit status is 1 if there is a fault: an error beyond the
bound, another shape, runs of one model that differ, more copies.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PIPELINES = ("none", "default")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.goldens", description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--sets", default="", help="only these, with commas: random, small, decoders, suites, light, zoo"
    )
    parser.add_argument("--match", default="", metavar="TEXT", help="only programs whose name holds this")
    parser.add_argument("--programs", type=Path, metavar="FILE", help="record: random programs of another file")
    parser.add_argument("--bound", type=float, help="compare: instead of each set's bound, in eps times max|ref|")
    parser.add_argument(
        "--counters", action="store_true", help="compare: also list programs whose counters alone differ"
    )
    given = parser.parse_args()
    _on_one_thread()
    from benchmarks.goldens.programs import NAMES

    sets = given.sets.split(",") if given.sets else list(NAMES)
    if unknown := set(sets) - set(NAMES):
        parser.error(f"unknown sets: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    if given.action == "record":
        return _record(given.file, sets, given.match, given.programs)
    return _compare(given.file, sets, given.match, given.bound, given.counters)


def _on_one_thread() -> None:
    """Stay on one processor, with one thread for matrix products: before NumPy is imported, which starts threads."""
    os.environ.update(ONE_THREAD)
    if hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})


def _record(path: Path, sets: Sequence[str], match: str, programs: Path | None) -> int:
    from benchmarks import facts
    from benchmarks.goldens.programs import generate, keep
    from benchmarks.goldens.store import Reader, Writer

    writer = Writer(facts.machine())
    if "random" in sets:
        keep(Reader(programs), writer) if programs else generate(writer)
        writer.save(path)
    reader = Reader(path) if "random" in sets else None
    count, unsteady = 0, 0
    for name, inputs, found in _outcomes(sets, match, reader):
        writer.outcome(name, inputs, found)
        count += 1
        if found.unsteady:
            unsteady += 1
            print(f"{name}: runs give different bits of {', '.join(found.unsteady)}", flush=True)
    writer.save(path)
    print(f"{path}: {count} outcomes, {unsteady} of them with runs that differ")
    return 0


def _compare(path: Path, sets: Sequence[str], match: str, bound: float | None, counters: bool) -> int:
    from benchmarks.goldens.compare import difference, lines
    from benchmarks.goldens.store import Reader

    reader = Reader(path)
    print(f"against {reader.about.get('commit')}, {reader.about.get('packages')}")
    equal, close, other, faults = 0, 0, 0, 0
    for name, inputs, found in _outcomes(sets, match, reader):
        differs = difference(reader, name, inputs, found, bound)
        equal += not (differs.errors or differs.faults)
        close += bool(differs.errors) and not differs.faults
        faults += bool(differs.faults)
        other += bool(differs.counters)
        if differs.faults or differs.errors or (counters and differs.counters):
            print(name, *lines(differs), sep="\n", flush=True)
    print(f"{equal} equal bits, {close} within the bound, {faults} with faults; {other} with other counters")
    return 1 if faults else 0


def _outcomes(sets: Sequence[str], match: str, reader: object) -> Iterator[tuple[str, str, Any]]:
    from benchmarks.goldens.outcome import outcome
    from benchmarks.goldens.programs import digest, named

    begin, last = time.perf_counter(), ""
    for entry in named(sets, reader):
        first = entry.name.partition("/")[0]
        if first != last:
            print(f"[{time.perf_counter() - begin:.0f} s] {first}", file=sys.stderr, flush=True)
            last = first
        if match not in entry.name:
            continue
        program = entry.load()
        inputs = digest(program.inputs)
        for passes in PIPELINES:
            for way, act in program.acts.items():
                found = outcome(program.model, passes, act)
                if digest(program.inputs) != inputs:
                    raise AssertionError(f"{entry.name}: a run has changed its inputs")
                yield f"{entry.name}|{passes}|{way}", inputs, found


if __name__ == "__main__":
    sys.exit(main())
