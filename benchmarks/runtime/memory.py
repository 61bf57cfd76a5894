"""``python -m benchmarks.runtime memory``: memory of runs, in the plan's arena and without it.

The nine classifiers that the onnx package brings along, with random weights.
Nothing here is timed: bytes and allocations are counted, and are the same on
every machine. Of each model a run without a memory plan, and the third run of
the compiled model, whose results lie where its second run has planned.

"bound" is how much of the arena is in use at one time: no arena for these results, in this order, could be smaller.
Arrays are what was allocated for results; with a plan, these are results that leave, whose kernels cannot be given
where to write, or whose shapes vary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

import irc
from benchmarks.results import Row
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.runtime.execution import Run
from irc.runtime.plan import Lowerer
from irc.runtime.profile import Profile, Profiler
from irc.runtime.threads import one_thread

WARM_UP = 2
"""Runs before the one that counts: the first tells shapes, the second plans."""

WIDTHS = (14, 10, 14, 10, 10, 14, 14)
"""Of the columns of the table."""


class Comparison(NamedTuple):
    """One model: a run that allocates what it needs, and one in planned memory."""

    name: str
    unplanned: Profile
    planned: Profile


def compare(name: str) -> Comparison:
    """Measure one model."""
    model = randomize_weights(bundled_model(name), seed=0)
    feeds = seeded_inputs(model, seed=1)
    compiled = irc.compile(model, backend="numpy")  # as the unplanned run
    for _ in range(WARM_UP):
        compiled.run(feeds)
    planned = compiled.profile(feeds)
    unplanned = unplanned_profile(compiled, feeds)
    for output, value in planned.outputs.items():
        np.testing.assert_array_equal(unplanned.outputs[output], value, err_msg=f"{name}: {output}")
    return Comparison(name, unplanned, planned)


def unplanned_profile(compiled: irc.CompiledModel, feeds: dict[str, Any]) -> Profile:
    """A run of the same plan in memory that is allocated result by result."""
    plan = Lowerer(compiled.graph, guarded=True).plan
    values = [feeds[v.name].view() for v in compiled.graph.inputs]
    for value in values:
        value.flags.writeable = False
    profiler = Profiler()
    counters = Run()
    counters.observer = profiler
    profiler.start(compiled.graph, values, counters)
    found = one_thread().call(plan.run, values, counters)
    return profiler.finish(dict(zip((v.name for v in compiled.graph.outputs), found)))


def rows(found: Comparison) -> list[Row]:
    """The rows of one model."""
    name, unplanned, planned = found
    return [
        Row(f"{name}/unplanned/peak", unplanned.peak, "bytes"),
        Row(f"{name}/unplanned/allocations", unplanned.allocations, "arrays"),
        Row(f"{name}/planned/peak", planned.peak, "bytes"),
        Row(f"{name}/planned/arena", planned.counters.arena_bytes, "bytes"),
        Row(f"{name}/planned/bound", planned.counters.arena_bound, "bytes"),
        Row(f"{name}/planned/allocations", planned.allocations, "arrays"),
    ]


def measure(names: Iterable[str] = BUNDLED) -> list[Row]:
    """Measure models, print a table, and return its rows."""
    print(f"{'':14}{'unplanned':>24}{'planned':>24}")
    headings = ("peak bytes", "arrays", "peak bytes", "arrays", "in arena", "arena bytes", "bound")
    print(f"{'model':14}{''.join(f'{h:>{w}}' for h, w in zip(headings, WIDTHS))}")
    made: list[Row] = []
    for name in names:
        found = compare(name)
        a, b = found.unplanned, found.planned
        counters = b.counters
        shown = (a.peak, a.allocations, b.peak, b.allocations, counters.planned, counters.arena_bytes)
        print(f"{name:14}{''.join(f'{n:{w},}' for n, w in zip((*shown, counters.arena_bound), WIDTHS))}")
        made += rows(found)
    return made
