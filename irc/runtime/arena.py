"""Runs in planned memory: from the second run with the same `RunKey` on, results lie in an arena.

The first run with a key records shapes and element types (`irc.runtime.memory_plan.FormRecorder`); the second makes the
memory plan from them. A run in planned memory starts with arrays in the slots of its results, and the steps write into
these (`irc.runtime.execution.placed_step`); a backend may compile consecutive steps to one. Finished runs give their
arena back for any later run, so there are as many arenas as runs were ever active at once. No output lies in an arena.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from irc.ir import Node, Value
from irc.ir.graph import gc_paused
from irc.ir.tensor import Array
from irc.runtime.array_memory import ANY, ArrayType, aligned_bytes
from irc.runtime.execution import NOWHERE, Code, Frame, Run, execute
from irc.runtime.memory_plan import FormRecorder, MemoryPlan, Planner, own_groups, stated_forms, were_steps
from irc.runtime.plan import Lowerer, Plan
from irc.runtime.plan_cache import PlanCache
from irc.runtime.planned_steps import FastSteps, PlannedSteps, frame_over
from irc.runtime.values import is_array

LEAST_PLANS = 8
"""Plans for this many run keys are kept, however large. While fewer keys have been recorded and not seen again, a new
key is recorded in its first run; after that, only in its second."""

BUDGET = 1 << 23
"""Bytes that all plans of a graph may take. They may take as much as its arena, too."""

_PLAN_BYTES = 1 << 10
"""The part of a plan's memory cost that does not grow with the graph."""

_FORM_BYTES = 768
"""A plan's memory cost for each value: its form, its place, the array there, the step that computes it."""

RunKey = tuple[Any, ...]
"""The key of a memory plan: element types and shapes of the inputs, in which sizes may be `ANY`, and the positions of
the donated ones."""


def run_key(inputs: Sequence[Any], donated: Iterable[int]) -> RunKey:
    """The key of a run on ``inputs``; the run may overwrite the inputs at the positions ``donated``."""
    forms: list[Any] = [ArrayType(x.dtype, x.shape) if is_array(x) else type(x) for x in inputs]
    # Results lie in C order: they are never written over an array that does not.
    return *forms, *[i for i in donated if is_array(x := inputs[i]) and x.flags.c_contiguous and x.flags.aligned]


class GrowingKeys:
    """The run keys of steps of a session with growing caches.

    Sizes that change from step to step are `ANY`. A step is compared with those before it: the one from which fewest
    sizes differ says which ones change. A key is used once two steps in turn have led to it. So the prompt, after which
    more changes than what grows, leads to none.
    """

    def __init__(self) -> None:
        self._met: list[RunKey] = []  # of steps, with their own sizes
        self._candidate: RunKey | None = None

    def key(self, own: RunKey) -> RunKey | None:
        """The key of a step, of which ``own`` has all sizes; None if its like may not come again."""
        found = [key for met in self._met if (key := _joined_keys(own, met)) is not None]
        self._met = [*self._met[1 - _STEPS :], own]
        before, self._candidate = self._candidate, min(found, key=_open_sizes, default=None)
        return self._candidate if self._candidate == before else None


_STEPS = 4
"""The number of steps with which the next one is compared."""


def _joined_keys(first: RunKey, second: RunKey) -> RunKey | None:
    """The key of the runs of both, with `ANY` for sizes that differ; None if more differs."""
    if len(first) != len(second):
        return None
    joined: list[Any] = []
    for a, b in zip(first, second):
        form = a if a is b or a == b else _joined_forms(a, b)
        if form is None:
            return None
        joined.append(form)
    return tuple(joined)


def _joined_forms(a: Any, b: Any) -> ArrayType | None:
    if not (isinstance(a, ArrayType) and isinstance(b, ArrayType)) or a.dtype != b.dtype:
        return None
    if len(a.shape) != len(b.shape):
        return None
    return ArrayType(a.dtype, tuple([m if m == n else ANY for m, n in zip(a.shape, b.shape)]))


def _open_sizes(key: RunKey) -> int:
    return sum([form.shape.count(ANY) for form in key if isinstance(form, ArrayType)])


class _Arena:
    """Memory that one run uses at a time."""

    def __init__(self, nbytes: int) -> None:
        self.memory = aligned_bytes(nbytes)
        self._templates: WeakKeyDictionary[_Planned, Frame] = WeakKeyDictionary()

    def template(self, planned: _Planned) -> Frame:
        """The frame that runs of ``planned`` in this arena start from."""
        found = self._templates.get(planned)
        if found is None:
            found = planned.frame(self.memory)
            self._templates[planned] = found  # when it is whole, not after an interrupt
        return found


class _Planned:
    """A plan whose results have places.

    Args:
        memory: the places.
        plan: the plan of the graph.
        compiled: the groups that are one kernel.
        steps: make its code where nothing follows them.

    Attributes:
        memory: as given.
    """

    def __init__(self, memory: MemoryPlan, plan: Plan, compiled: Collection[Node], steps: FastSteps) -> None:
        self.memory = memory
        self._plan = plan
        self._compiled = compiled
        self._fast = steps.code(plan.code)
        self._once, self._count = steps.once, steps.count
        places = memory.place_of.items()
        self._sources = [(plan.slot_of[v], place.source) for v, place in places if place.source is not None]

    @cached_property
    def _code(self) -> Code:
        """Its steps one by one."""
        return PlannedSteps(self._plan, self.memory, self._compiled).code(self._plan.code)

    def frame(self, memory: Array) -> Frame:
        """What runs start from whose arena is ``memory``, once what is done once for it is done."""
        frame = frame_over(self._plan, self.memory, memory)
        for step in self._once:
            step(frame)
        return frame

    def begin(self, arena: _Arena, inputs: Sequence[Any], run: Run) -> tuple[Frame, Code]:
        """What a run in ``arena`` starts from, and its steps."""
        if run.observer is None:
            template, code = arena.template(self), self._fast
            run.compiled += self._count
        else:  # it is told of each step
            template, code = frame_over(self._plan, self.memory, arena.memory), self._code
            run.observer.use_arena(arena.memory, self.memory)
        if self._sources:
            template = template.copy()
            for slot, source in self._sources:
                template[slot] = inputs[source]
        run.arena = arena.memory.base
        run.planned += len(self.memory.place_of)
        run.arena_bytes, run.arena_bound = self.memory.nbytes, self.memory.bound
        return template, code


class PlannedRuns:
    """Runs a graph, in planned memory where possible.

    Args:
        lowerer: of the graph; its inputs' arrays are guarded.

    Attributes:
        lowerer: as given.
    """

    def __init__(self, lowerer: Lowerer) -> None:
        self.lowerer = lowerer
        self._plans: PlanCache[FormRecorder | _Planned | None] = PlanCache(BUDGET, LEAST_PLANS)
        self._recorded = 0  # keys of which one run has been recorded, and no second one has come
        self._arenas: list[_Arena] = []
        self._planners: dict[frozenset[Node], Planner] = {}
        self._latest: tuple[RunKey | None, _Planned | None, Frame, Code] = None, None, [], lowerer.plan.code
        self._lock = RLock()

    def run(self, inputs: Sequence[Any], run: Run, key: RunKey | None) -> list[Any]:
        """The graph's outputs, in order; as `irc.runtime.plan.Plan.run`.

        Args:
            inputs: one value for each input.
            run: the run. If an observer follows its steps, results lie where NumPy puts them.
            key: its `run_key`, maybe of `GrowingKeys`; None if the key will not come again.
        """
        if key is None:
            return self.lowerer.plan.call(inputs, run)
        latest, planned, template, code = self._latest
        if (key is not latest and key != latest) or run.observer is not None:
            planned, template, code = None, self.lowerer.plan.template, self.lowerer.plan.code
            if run.observer is None or run.observer.in_arena:
                planned, to_record = self._find(key)
                if to_record and run.observer is None:
                    return self._record(key, inputs, run)
        arena = None
        if planned is not None:
            arena = self._take(planned.memory.nbytes)
            template, code = planned.begin(arena, inputs, run)
        try:
            frame = template.copy()
            frame[0] = run
            frame[1 : 1 + len(inputs)] = inputs
            execute(code, frame)
            results: list[Any] = []
            for s in code.returns:  # a comprehension is a call, which takes as long as three such turns
                results.append(frame[s])
            return results
        finally:
            if arena is not None:
                run.arena = NOWHERE
                self._arenas.append(arena)

    def _record(self, key: RunKey, inputs: Sequence[Any], run: Run) -> list[Any]:
        """As `run`, for the first run with ``key``."""
        recorder = run.observer = FormRecorder()
        results = self.lowerer.plan.call(inputs, run)
        recorder.forms.update((v, f) for v, f in zip(self.lowerer.graph.inputs, key) if isinstance(f, ArrayType))
        run.observer = None
        self._keep(key, recorder, len(recorder.forms) * _FORM_BYTES)
        return results

    def expected(self) -> MemoryPlan | None:
        """The plan for the types that the graph states; None if a shape is not stated."""
        forms = stated_forms(self.lowerer.graph)
        return None if forms is None else self._planner(frozenset()).plan(forms)

    def plans(self) -> list[MemoryPlan]:
        """The memory plans that are in use, the one of the latest run last."""
        return [p.memory for p in self._plans.made() if isinstance(p, _Planned)]

    def _find(self, key: RunKey) -> tuple[_Planned | None, bool]:
        """The plan for ``key``; if there is none, whether to record this run."""
        with self._lock:
            try:
                found = self._plans.get(key)
            except KeyError:
                return None, self._plans.admits(key, new=self._recorded < LEAST_PLANS)
            if isinstance(found, FormRecorder):
                with gc_paused():
                    found = self._plan(key, found)
            plan = self.lowerer.plan
            self._latest = key, found, plan.template, plan.code
            return found, False

    def _keep(self, key: RunKey, known: FormRecorder | _Planned | None, nbytes: int) -> None:
        with self._lock:
            self._plans.put(key, known, _PLAN_BYTES + nbytes)
            self._recorded = sum([isinstance(found, FormRecorder) for found in self._plans.made()])

    def _plan(self, key: RunKey, recorder: FormRecorder) -> _Planned | None:
        forms, inputs = recorder.forms, self.lowerer.graph.inputs
        donated = key[len(inputs) :]
        compiled = frozenset([group for group in self._own_groups if not were_steps(group, forms)])
        given = {v: f for v, f in zip(inputs, key) if isinstance(f, ArrayType)}
        planner = self._planner(compiled, given if any(form.varies for form in given.values()) else None)
        if planner.open:
            recorder.forms = forms = {v: f for v, f in forms.items() if v in planner.static} | planner.open
        memory, planned = planner.plan(forms, donated), None
        if memory.place_of or self.lowerer.plan.loops:
            plan, arena = self.lowerer.plan, self._take(memory.nbytes)
            frame, owner = frame_over(plan, memory, arena.memory), arena.memory.base
            written = self.lowerer.writes.inputs
            steps = FastSteps(plan, memory, compiled, planner, recorder, frame, owner, bool(donated), written)
            planned = _Planned(memory, plan, compiled, steps)
            self._arenas.append(arena)
            self._plans.budget = max(self._plans.budget, memory.nbytes)
        self._keep(key, planned, len(forms) * _FORM_BYTES if planned else 0)
        return planned

    def _planner(self, compiled: frozenset[Node], given: Mapping[Value, ArrayType] | None = None) -> Planner:
        """The planner for runs in which groups are ``compiled``; ``given`` as for `Planner`."""
        if compiled in self._planners and given is None:
            return self._planners[compiled]
        lowerer = self.lowerer
        kernels = {node: found for node in compiled if (found := lowerer.bound.compiled(node)) is not None}
        planner = Planner(lowerer.graph, lowerer.storage, lowerer.plan.slot_of, kernels, given=given)
        if given is None:
            self._planners[compiled] = planner
        return planner

    @cached_property
    def _own_groups(self) -> list[Node]:
        """The fusion groups that the backend may compile."""
        return [node for node in own_groups(self.lowerer.graph) if self.lowerer.bound.compiled(node) is not None]

    def _take(self, nbytes: int) -> _Arena:
        """An arena of at least ``nbytes`` that no other run uses."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            return _Arena(nbytes)
        if len(arena.memory) >= nbytes:
            return arena
        del arena  # before there is a larger one
        return _Arena(nbytes)
