"""``python -m benchmarks.runtime passes``: the default pipeline is never slower than no passes.

Light models, YOLOv3-416, chains of 40 operators on 8 to 1,000,000 elements, both decoders, and those models of the zoo
that are here (``python -m benchmarks.zoo --fetch``). Each runs compiled with the default pipeline and without passes,
in pairs, who is first in turns:

- processor time of runs on one thread, one after another;
- wall time of runs on all processors, each after a pause of 25 ms, as requests arrive: threads sleep by then.

The median of the ratios has a limit. So has what a run does: new arrays (allocations and copies) and calls of kernels
are no more with the default pipeline than without passes. ``python -m benchmarks.runtime.passes TEXT...`` measures
only subjects whose names hold one of the texts.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import irc
from benchmarks import results
from benchmarks.results import Row, limited
from benchmarks.runtime import chain, decoder
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.runtime.values import owner

PAIRS = 15
LIMIT = 1.05
PAUSE = 0.025
"""Seconds between runs: OpenBLAS's threads look for work for less."""

SAMPLE = 0.004
"""Seconds of processor time that a sample has at least: as many runs as that takes."""

CHAINS = (8, 64, 1000, 10_000, 100_000, 1_000_000)
TOKENS = 16
COUNTED = ("allocations and copies", "kernels")
"""What runs do at most as often. A copy is a new array too; so is a cache that a step does not extend where it is."""

PIPELINES = ("default", "none")

Run = Callable[[], Any]


class Ready(NamedTuple):
    """What is timed, and how to count what it does: by name of `COUNTED`."""

    run: Run
    count: Callable[[], dict[str, int]]


class Subject(NamedTuple):
    """A model; ``load`` returns it, and what makes its compiled form ready to be timed."""

    name: str
    load: Callable[[], tuple[Any, Callable[[irc.CompiledModel], Ready]]]


def subjects() -> Iterator[Subject]:
    """All that are here."""
    for size in CHAINS:
        yield Subject(f"chain of 40 on {size}", partial(_of_chain, size))
    yield Subject("decoder", partial(_of_decoder, decoder.SMALL))
    yield Subject("larger decoder", partial(_of_decoder, decoder.LARGER))
    for name in BUNDLED:
        yield Subject(name, partial(_bundled, name))
    yield Subject("yolov3", _yolov3)
    yield from _zoo()


def _plain(feeds: dict[str, Any], compiled: irc.CompiledModel) -> Ready:
    def count() -> dict[str, int]:
        profile = compiled.profile(feeds)
        counters = compiled.counters
        return dict(zip(COUNTED, (profile.allocations + counters.copies, counters.kernels)))

    return Ready(lambda: compiled.run(feeds), count)


def _of_chain(size: int) -> Any:
    return chain.model(40, (size,)), partial(_plain, chain.feeds((size,)))


def _bundled(name: str) -> Any:
    model = randomize_weights(bundled_model(name), seed=0)
    return model, partial(_plain, seeded_inputs(model, seed=1))


def _yolov3() -> Any:
    from benchmarks.yolov3 import build

    model = build()
    return model, partial(_plain, seeded_inputs(model, seed=1))


def _of_decoder(size: decoder.Size) -> Any:
    def ready(compiled: irc.CompiledModel) -> Ready:
        def count() -> dict[str, int]:
            arrays, kernels = 0, 0

            def run(feeds: dict[str, Any]) -> list[Any]:
                nonlocal arrays
                profile = compiled.profile(feeds)
                arrays += profile.allocations
                return [*profile.outputs.values()]

            decoder.write(decoder.with_arrays(run, size), TOKENS)
            session = irc.Session(compiled)

            def step(feeds: dict[str, Any]) -> Any:
                nonlocal arrays, kernels
                before = _owners(session)
                logits = session.run(feeds, outputs=["logits"])["logits"]
                arrays += sum(address != before.get(name) for name, address in _owners(session).items())
                kernels += session.counters.kernels
                return logits

            decoder.write(step, TOKENS)
            return dict(zip(COUNTED, (arrays, kernels)))

        return Ready(lambda: decoder.write(decoder.with_session(compiled), TOKENS), count)

    return decoder.model(size), ready


def _owners(session: irc.Session) -> dict[str, int]:
    """Where the memory of each cache begins."""
    return {name: owner(cache).ctypes.data for name, cache in session.caches.items()}


def _zoo() -> Iterator[Subject]:
    from benchmarks.zoo.models import entries
    from benchmarks.zoo.packages import is_fetched

    for entry in entries():
        if is_fetched(entry):
            yield Subject(f"zoo, {entry.name}", partial(_of_zoo, entry))


def _of_zoo(entry: Any) -> Any:
    from benchmarks.zoo.models import feeds
    from benchmarks.zoo.packages import model_path
    from irc.tools.check.peers import onnxruntime_session

    path = model_path(entry)
    return path, partial(_plain, feeds(entry, onnxruntime_session(path, threads=1), entry.sizes[0]))


# -- measuring ----------------------------------------------------------------------


def measure(names: Sequence[str] = ()) -> list[Row]:
    """Measure the subjects whose names hold one of ``names``, by default all; print a table, and return its rows."""
    print(f"{'default : none':34}{'processor time':>24}{'wall time, pauses':>24}   {', '.join(COUNTED)}")
    rows: list[Row] = []
    for subject in subjects():
        if not names or any(name in subject.name for name in names):
            found = compare(subject)
            rows += found
            show(subject.name, found)
    return rows


def compare(subject: Subject, pairs: int = PAIRS) -> list[Row]:
    """The rows of one subject: two of time, and what `COUNTED` names."""
    model, prepare = subject.load()
    rows: list[Row] = []
    counts: dict[str, dict[str, int]] = {}
    for what, options, sample in (
        ("processor time", irc.Options(threads=1), _processor_time),
        ("wall time with pauses", irc.Options(), _wall_time),
    ):
        ready = {passes: prepare(irc.compile(model, passes, options=options)) for passes in PIPELINES}
        for _ in range(3):
            for one in ready.values():
                one.run()
        samples = _pairs({passes: one.run for passes, one in ready.items()}, sample, pairs)
        rows.append(limited(f"{subject.name}/{what}", samples["default"], samples["none"], LIMIT))
        counts = counts or {passes: one.count() for passes, one in ready.items()}
        del ready
        gc.collect()
    for counter in COUNTED:
        more = counts["default"][counter] - counts["none"][counter]
        rows.append(Row(f"{subject.name}/{counter} beyond those without passes", more, counter, limit=0))
    return rows


def _pairs(runs: dict[str, Run], sample: Callable[[Run, int], float], pairs: int) -> dict[str, list[float]]:
    """Samples of each contender, pair by pair; who is first alternates."""
    first, *_ = runs.values()
    begin = time.process_time()
    first()
    count = max(1, round(SAMPLE / max(time.process_time() - begin, 1e-6)))
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(pairs):
        for name in list(runs)[:: 1 if i % 2 else -1]:
            samples[name].append(sample(runs[name], count))
    return samples


def _processor_time(run: Run, count: int) -> float:
    run()  # what the other has driven out of the caches is not this one's business
    begin = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - begin) / count


def _wall_time(run: Run, count: int) -> float:
    spent = 0.0
    for _ in range(min(count, 4)):
        time.sleep(PAUSE)
        begin = time.perf_counter()
        run()
        spent += time.perf_counter() - begin
    return spent / min(count, 4)


def show(name: str, rows: Sequence[Row]) -> None:
    """Print the line of one subject; what exceeds its limit is marked."""

    def cell(row: Row) -> str:
        if row.low is None:
            return f"{row.value:+,}{'!' * row.exceeds}"
        return f"{row.value:.3f} (surely {row.low:.3f}){'!' if row.exceeds else ' '}"

    cells = [cell(row) for row in rows]
    print(f"{name:34}{cells[0]:>24}{cells[1]:>24}   {', '.join(cells[2:])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime.passes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TEXT", help="only subjects whose name holds one of these")
    rows = measure(parser.parse_args().names)
    exceeding = [row for row in rows if row.exceeds]
    print(f"{len(exceeding)} of {len(rows)} rows exceed their limit")
    results.show(exceeding)


if __name__ == "__main__":
    main()
