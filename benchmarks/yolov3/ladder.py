"""The ladder: how each idea of PyTorch's two pull requests (#36345 and #37106) speeds up a compilation.

Five compilers that do the same. The first builds and uses its alias analysis
as PyTorch did before; each further one has one idea more; the last is irc.
Every rung must end with the same fused graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.yolov3.isomorphism import difference
from benchmarks.yolov3.model import build
from benchmarks.yolov3.rungs.counters import Counters, PhaseClock
from benchmarks.yolov3.rungs.fuser import RebuildingFuse
from benchmarks.yolov3.rungs.plain import DeferredDb, EagerDb, PlainDb
from irc.alias import AliasDb, AliasDbBuilder
from irc.frontend.onnx import import_model
from irc.fuser import Fuse
from irc.ir import Graph, Module, clone_node, parse_module
from irc.passes import Instrument, PassContext, PassManager
from irc.passes.base import Pass
from irc.passes.registry import parse_pipeline

SCRIPTED = Path(__file__).with_name("scripted.ir")
"""``torch.jit.script`` (2.13) of ``tests/data/yolov3.py``, where boxes are decoded in place. Methods are functions that
take the object, and nothing is inlined: there are 99 functions, and 6,484 nodes when they are."""

PATIENCE = 10.0
"""Seconds. A compilation that takes longer is measured only once."""

_OPTIMISE = "(freeze,canonicalize,constant-fold)*4,conv-bn-fold,cse,dce,constant-pool"
LATE = f"inline,{_OPTIMISE},fuse,dce"
EARLY = f"{_OPTIMISE},{LATE}"


@dataclass(frozen=True)
class Rung:
    """One compiler.

    Attributes:
        idea: what it has that the one before it had not.
        anchor: seconds that PyTorch took on its YOLOv3.
        pipeline: the passes.
        plain: the alias analysis, where it is not irc's.
        rebuilds: whether each pass builds its own alias analysis, and the fuser one after the other.
    """

    idea: str
    anchor: float
    pipeline: str
    plain: type[PlainDb] | None = None
    rebuilds: bool = True


RUNGS = (
    Rung("indices right at every edge, searches without memo, rebuilds", 752.0, LATE, EagerDb),
    Rung("optimise before inlining", 699.6, EARLY, EagerDb),
    Rung("indices in a second phase", 426.2, EARLY, DeferredDb),
    Rung("memoised locations, cache-aware wildcards", 193.7, EARLY),
    Rung("the fuser updates the analysis in place", 5.2, EARLY, rebuilds=False),
)

SUBJECTS: dict[str, Callable[[], Module]] = {
    "scripted": lambda: parse_module(SCRIPTED.read_text(), filename=SCRIPTED.name),
    "onnx": lambda: import_model(build(width_divisor=16)),
}
"""YOLOv3, read anew. The structure of the ONNX model does not depend on how wide its layers are."""


@dataclass(frozen=True)
class Climb:
    """What one rung did on one subject.

    Attributes:
        seconds: processor seconds, the median of some turns.
        turns: how many.
        passes: processor seconds by pass.
        phases: processor seconds by phase, from a turn in which every query and update was clocked.
        counters: what was counted.
        graph: what came out.
    """

    seconds: float
    turns: int
    passes: dict[str, float]
    phases: dict[str, float]
    counters: Counters
    graph: Graph


def measure(subject: str, numbers: Sequence[int], turns: int, copies: int) -> dict[int, Climb]:
    """Climb the rungs with the given numbers, in turns, and check that all end with the same graph.

    Raises:
        AssertionError: two rungs end with different graphs.
    """

    def once(number: int, clocked: bool) -> Climb:
        return climb(RUNGS[number], repeat(SUBJECTS[subject](), copies), clocked)

    once(len(RUNGS) - 1, False)  # imports what is needed
    first = {number: once(number, True) for number in numbers}
    last = first[numbers[-1]].graph
    for number, found in first.items():
        different = difference(found.graph, last)
        assert different is None, f"rungs {number} and {numbers[-1]} end with different graphs: {different}"
    quick = [number for number in numbers if first[number].seconds < PATIENCE]
    further: dict[int, list[Climb]] = {number: [] for number in quick}
    for _ in range(turns):
        for number in quick:
            further[number].append(once(number, False))
    return {number: _median(first[number], further.get(number)) for number in numbers}


def climb(rung: Rung, module: Module, clocked: bool = True) -> Climb:
    """Compile ``module``, which is changed, as ``rung`` does. ``clocked``: queries and updates too, one by one."""
    counters = Counters()
    passes = [RebuildingFuse() if rung.rebuilds and isinstance(p, Fuse) else p for p in parse_pipeline(rung.pipeline)]
    by_pass = _PassClock()
    clock = PhaseClock()
    analyze = _Analyze(rung, counters, clock, clocked)
    PassManager(passes, [by_pass, _Drop()] if rung.rebuilds else [by_pass], analyze=analyze).run(module)
    seconds = clock.total()
    analyze.collect()
    return Climb(seconds, 1, by_pass.seconds, clock.seconds, counters, module.main)


def repeat(module: Module, copies: int) -> Module:
    """A module whose main graph holds that of ``module`` so many times, side by side."""
    if copies == 1:
        return module
    main = Graph("main", module.weights, module)
    results = []
    for _ in range(copies):
        mapping = {value: main.add_input(value.type, value.name) for value in module.main.inputs}
        for node in module.main.nodes:
            main.block.append(clone_node(node, main, mapping))
        results += [mapping[value] for value in module.main.outputs]
    main.set_outputs(results)
    module.main = module.graphs["main"] = main
    return module


class _Analyze:
    """Builds the alias analyses of one run, and collects what they count."""

    def __init__(self, rung: Rung, counters: Counters, clock: PhaseClock, clocked: bool) -> None:
        self.rung = rung
        self.counters = counters
        self.clock = clock
        self.clocked = clocked
        self._last: AliasDb | None = None

    def __call__(self, graph: Graph, module: Module | None) -> AliasDb:
        if self.rung.plain is not None:
            db: AliasDb = self.rung.plain(graph, module, self.counters, self.clock)
        else:
            self.collect()
            builder = AliasDbBuilder(graph, module)
            with self.clock.phase("build-up"):
                builder.record()
            with self.clock.phase("indices"):
                db = self._last = builder.freeze()
        if self.clocked:
            self.clock.watch(db)
        return db

    def collect(self) -> None:
        """Add what the last analysis of irc's has counted."""
        if self._last is not None:
            found = self._last.counters()
            self.counters.builds += found["solves"]
            self.counters.visited += found["known"]
            self.counters.rescans += found["grown"]
            self.counters.unions += found["unions"]
            self._last = None


class _PassClock(Instrument):
    """Processor seconds by pass."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self._begin = 0.0

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        self._begin = time.process_time()

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        self.seconds[p.name] = self.seconds.get(p.name, 0.0) + time.process_time() - self._begin


class _Drop(Instrument):
    """Each pass builds its own alias analysis."""

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        ctx.drop_alias_db()


def _median(first: Climb, further: Sequence[Climb] | None) -> Climb:
    """The run of median time, with the phases of the first."""
    if not further:
        return first
    seconds = median(c.seconds for c in further)
    middle = min(further, key=lambda c: abs(c.seconds - seconds))
    return replace(middle, seconds=seconds, turns=len(further), phases=first.phases)
