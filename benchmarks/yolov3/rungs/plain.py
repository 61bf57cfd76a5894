"""Alias analyses without memo: one that keeps its indices right at every edge, one that makes them at the end."""

from __future__ import annotations

from collections import deque

from benchmarks.yolov3.rungs.counters import Counters, PhaseClock
from benchmarks.yolov3.rungs.searching import SearchingDag
from benchmarks.yolov3.rungs.write_table import WriteTable
from irc.alias import AliasDb, AliasDbBuilder, analyze
from irc.alias import facts as f
from irc.alias.check import compare
from irc.alias.facts import NOTHING, Constraint, Element, Facts
from irc.alias.location_sets import EMPTY, LocationSet, members
from irc.alias.recorder import Recorder
from irc.alias.solver import Solver
from irc.alias.summaries import Functions
from irc.ir import Graph, Module, Value
from irc.ops.record import Change


class _PlainSolver(Solver):
    """Facts, and what follows from them, found by searching.

    A new edge changes what all elements above it denote. So every write, load
    and store is looked at, and what concerns one of those is found again.
    """

    def __init__(self, facts: Facts, functions: Functions, counters: Counters) -> None:
        self.counters = counters
        self.facts = facts
        self.grown = 0
        self.became_unknown: LocationSet = EMPTY
        self.dag = SearchingDag(facts, self.all_contents, counters)
        self.index = WriteTable(self.dag)
        self._watched: dict[Element, list[Constraint]] = {}
        self._edges: set[tuple[Element, Element]] = set()
        self._new: deque[Element] = deque()
        self._settling = False
        facts.sources_of(NOTHING)  # from now on every pointer is known from both ends
        Recorder.__init__(self, facts, self.index, functions)

    def bind(self, value: Value, element: Element) -> None:
        super().bind(value, element)
        if element != NOTHING:
            self._edge(self.facts.elements[value])

    def point(self, source: Element, target: Element) -> None:
        if target != NOTHING and (source, target) not in self._edges:
            self._edges.add((source, target))
            if self.facts.point(source, target):
                self._edge(source)

    def redirect(self, value: Value, old: Element, new: Element) -> bool:
        self._edges.clear()  # those to what is replaced are there no more
        return super().redirect(value, old, new)

    def _edge(self, source: Element) -> None:
        """``source`` has a new edge: bring everything up to date."""
        self.dag.version += 1
        self._new.append(source)
        if self._settling:
            return  # an outer call will see to it
        self._settling = True
        while self._new:
            grown = self.dag.above(self._new.popleft())
            self.index.grown(grown)
            for constraints in list(self._watched.values()):
                for constraint in constraints:
                    self.counters.rescans += 1
                    if constraint.base in grown:
                        self._decide(constraint)
            if f.ESCAPED in grown:
                for location in list(members(self.dag.locations(f.ESCAPED))):
                    self._escaped(location)
        self._settling = False

    def _decide(self, constraint: Constraint) -> None:
        for location in list(members(self.dag.locations(constraint.base))):
            self._apply(constraint, location)


class EagerSolver(_PlainSolver):
    """One phase: the graph is recorded with every index kept right at every edge."""

    def __init__(self, builder: AliasDbBuilder, counters: Counters) -> None:
        self.graph = builder.graph
        self.module = builder.module
        self.noalias = builder.noalias
        super().__init__(builder.facts, builder.functions, counters)
        AliasDbBuilder.record(self)  # type: ignore[arg-type]


class DeferredSolver(_PlainSolver):
    """The second of two phases: takes over what was recorded, and makes the indices when all edges are known."""

    def __init__(self, builder: AliasDbBuilder, counters: Counters) -> None:
        super().__init__(builder.facts, builder.functions, counters)
        for constraint in builder.facts.constraints:
            self.constrain(constraint)
        for location in list(members(self.dag.locations(f.ESCAPED))):
            self._escaped(location)
        for node, element in builder.writes.entries:
            self.index.add(node, element, builder.writes.metadata.get((node, element), Change.ELEMENTS))


class PlainDb(AliasDb):
    """An alias analysis of one of the designs above.

    Args:
        graph: what to analyse.
        module: where called functions are found.
        counters: what is counted.
        clock: what is clocked.
    """

    solver: type[EagerSolver | DeferredSolver]

    def __init__(self, graph: Graph, module: Module | None, counters: Counters, clock: PhaseClock) -> None:
        self.graph = graph
        self.module = module
        self.noalias: frozenset[Value] = frozenset()
        self.counted = counters
        self.clock = clock
        super().__init__(self._record())

    def _solve(self, builder: AliasDbBuilder) -> Solver:
        self.counted.builds += 1
        with self.clock.phase("indices"):
            return self._use(self.solver(builder, self.counted))

    def check(self, exact: bool = True) -> None:
        fresh = analyze(self.graph, self.module)
        for value in self._solution.declared_unknown:
            fresh.set_wildcard(value)
        compare(self, fresh, exact and self.is_tight)


class EagerDb(PlainDb):
    """Rungs 0 and 1: one phase."""

    solver = EagerSolver

    def _record(self) -> AliasDbBuilder:
        return AliasDbBuilder(self.graph, self.module)  # the solver records


class DeferredDb(PlainDb):
    """Rung 2: two phases."""

    solver = DeferredSolver

    def _record(self) -> AliasDbBuilder:
        builder = AliasDbBuilder(self.graph, self.module)
        with self.clock.phase("build-up"):
            builder.record()
        return builder
