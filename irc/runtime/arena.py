"""Runs in planned memory: from the second run with inputs of the same kind on, results lie in an arena.

The first such run is watched (`irc.runtime.memory_plan.FormRecorder`); before the second, the memory plan is
made. A run in planned memory begins with arrays in the slots of its results, where the steps write them
(`irc.runtime.steps.placed_step`); a backend may compile consecutive ones to one step. Arenas are kept for later runs of
any kind, as many as there were runs at the same time; what runs return is never in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from irc.ir.graph import gc_paused
from irc.ir.kinds import GROUP
from irc.ir.types import DType
from irc.runtime.array_memory import ArrayType, aligned_bytes
from irc.runtime.backends import Declined, PlannedStep
from irc.runtime.execution import NOWHERE, Instruction, Run, execute
from irc.runtime.groups import subgraph_of
from irc.runtime.memory_plan import FormRecorder, MemoryPlan, Planner, own_groups, stated_forms
from irc.runtime.plan_cache import PlanCache
from irc.runtime.steps import drop_step, placed_step
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from collections.abc import Collection

    from irc.ir import Node, Value
    from irc.runtime.backends import Backend
    from irc.runtime.execution import Code, Frame
    from irc.runtime.lowering import Bound
    from irc.runtime.plan import Lowerer, Plan


FEWEST = 2
"""Steps that are worth one call."""


def planned_code(plan: Plan, bound: Bound, placed: Collection[Value], compiled: Collection[Node]) -> Code:
    """The steps of ``plan``, with the members of fusion groups that the backend has declined among them.

    Args:
        plan: the plan of the graph.
        bound: has the kernels.
        placed: the values whose arrays lie in the frame beforehand. Their slots need not be emptied.
        compiled: the groups that are one kernel.
    """
    slots = frozenset(plan.slot_of[value] for value in placed)
    found: list[Instruction] = []
    declined: list[Code] = []

    def add(instructions: Iterable[Instruction]) -> None:
        for each in instructions:
            _, node, ins, outs, dead = each
            if node in plan.groups and node not in compiled:
                declined.append(plan.groups[node].code)
                add(plan.groups[node].instructions(dead))
            elif node.kind != GROUP and is_placed(each, placed):
                dead = tuple([s for s in dead if s not in slots])
                step = placed_step(bound.kernel(node), ins, outs[0], dead, is_plain(node))
                found.append(Instruction(step, node, ins, outs, dead))
            else:
                found.append(each)

    add(plan.code.instructions)
    code = plan.code.with_instructions(found)
    code.kernels += sum([members.kernels for members in declined])
    code.in_place += sum([members.in_place for members in declined])
    return code


def compiled_code(
    backend: Backend, plan: Plan, code: Code, forms: Mapping[Value, ArrayType], placed: Collection[Value]
) -> tuple[Code, int]:
    """``code`` with consecutive steps compiled, as far as the backend does, and how many compiled steps there are.

    Args:
        backend: what compiles.
        plan: the plan of the graph.
        code: its steps in planned memory.
        forms: of the values whose shapes are the same in each run of this kind.
        placed: the values whose arrays lie in the frame beforehand.
    """
    types = {s: ArrayType(x.dtype, x.shape) for s, x in enumerate(plan.template) if is_array(x)}
    made = [pair for each in code.instructions for pair in zip(each.node.outputs, each.outs)]
    given = zip(plan.graph_inputs, code.params)
    types.update((slot, f) for v, slot in (*given, *made) if (f := forms.get(v)) is not None)

    def may_be_compiled(each: Instruction) -> bool:
        return is_placed(each, placed) and types.keys() >= set(each.ins)

    found: list[Instruction] = []
    count = 0
    for may_be, run in groupby(code.instructions, may_be_compiled):
        instructions = list(run)
        if may_be and len(instructions) >= FEWEST:
            steps = [
                PlannedStep(n, tuple([types[s] for s in ins]), ins, outs[0]) for _, n, ins, outs, _ in instructions
            ]
            compiled = backend.compile_steps(steps)
            if not isinstance(compiled, Declined):
                dead = tuple([s for each in instructions for s in each.dead])
                ins = tuple({s for step in steps for s in step.ins})
                one = Instruction(compiled, steps[0].node, ins, tuple([step.out for step in steps]))
                instructions = [one, Instruction(drop_step(dead), steps[0].node, (), (), dead)] if dead else [one]
                count += 1
        found += instructions
    return code.with_instructions(found), count


def is_placed(each: Instruction, placed: Collection[Value]) -> bool:
    """Whether an instruction makes one result, in an array that lies in the frame beforehand."""
    return len(each.outs) == 1 and len(each.node.outputs) == 1 and each.node.output in placed


def is_plain(node: Node) -> bool:
    """Whether a ufunc that is the kernel of ``node`` suits its operands, and may be called instead of it."""
    return all(v.type.dtype is not DType.FLOAT16 for v in node.inputs)


KINDS = 8
"""So many kinds of runs are watched when they come for the first time; more, if these do not come again, only when they
come the second time. There is room for so many plans, however large."""

BUDGET = 1 << 23
"""Bytes that all plans of a graph may take. They may take as much as its arena, too."""

_KIND_BYTES = 1 << 10
"""What is kept for a kind, but for what grows with the graph."""

_FORM_BYTES = 768
"""What is kept for a value in one kind of run: its form, its place, the array there, the step that makes it."""

Kind = tuple[Any, ...]
"""What a plan is made for: shapes and element types of the inputs, and the positions of those that are donated."""

_TYPE = attrgetter("dtype", "shape")


def kind_of(inputs: Sequence[Any], donated: Iterable[int]) -> Kind:
    """The kind of a run on ``inputs``, of which those at the positions ``donated`` may be overwritten."""
    try:
        forms: list[Any] = [*map(_TYPE, inputs)]
    except AttributeError:
        forms = [(x.dtype, x.shape) if is_array(x) else type(x) for x in inputs]
    # Results lie in C order: they are never made over an array that does not.
    return *forms, *[i for i in donated if is_array(x := inputs[i]) and x.flags.c_contiguous and x.flags.aligned]


class _Arena:
    """Memory that one run uses at a time."""

    def __init__(self, nbytes: int) -> None:
        self.memory = aligned_bytes(nbytes)
        self._templates: WeakKeyDictionary[_Planned, Frame] = WeakKeyDictionary()

    def template(self, planned: _Planned) -> Frame:
        """The frame that runs of ``planned`` in this arena start from."""
        found = self._templates.get(planned)
        if found is None:
            found = planned.plan.template.copy()
            # One array for all results in a place: NumPy sees at once that such an operand is `out` itself.
            arrays = [
                np.ndarray(form.shape, form.dtype, self.memory, offset) if source is None else None
                for form, offset, source in planned.memory.places
            ]
            for slot, number in planned.slots:
                found[slot] = arrays[number]
            self._templates[planned] = found  # last: whole, or, after an interrupt, not at all
        return found


class _Planned:
    """A plan whose results have places.

    Args:
        memory: the places.
        plan: the plan of the graph.
        code: its steps, as they run one by one.
        compiled: its steps, some of which a backend has compiled, and how many compiled steps there are.

    Attributes:
        slots: the slots of results, and the places where they are made.
    """

    def __init__(self, memory: MemoryPlan, plan: Plan, code: Code, compiled: tuple[Code, int]) -> None:
        self.memory = memory
        self.plan = plan
        self._code = code
        self._compiled, self._count = compiled
        self.slots = [(plan.slot_of[value], number) for value, number in memory.place_of.items()]
        self._sources = [
            (s, source) for s, number in self.slots if (source := memory.places[number].source) is not None
        ]

    def begin(self, arena: _Arena, inputs: Sequence[Any], run: Run) -> tuple[Frame, Code]:
        """What a run in ``arena`` starts from, and its steps."""
        template = arena.template(self)
        if self._sources:
            template = template.copy()
            for slot, source in self._sources:
                template[slot] = inputs[source]
        code, count = self._compiled, self._count
        if run.watch is not None:  # it is told of each step
            run.watch.lend(arena.memory, self.memory)
            code, count = self._code, 0
        run.arena = arena.memory.base
        run.planned += len(self.memory.place_of)
        run.in_place += len(self.memory.over)
        run.arena_bytes, run.arena_bound = self.memory.nbytes, self.memory.bound
        run.compiled += count
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
        self._kinds: PlanCache[dict[Value, ArrayType] | _Planned | None] = PlanCache(BUDGET, KINDS)
        self._watched = 0  # kinds that have not come again
        self._arenas: list[_Arena] = []
        self._planners: dict[frozenset[Node], Planner] = {}
        self._latest: tuple[Kind | None, _Planned | None, Frame, Code] = None, None, [], lowerer.plan.code
        self._lock = RLock()

    def run(self, inputs: Sequence[Any], run: Run, kind: Kind | None) -> list[Any]:
        """The graph's outputs, in order; as `irc.runtime.plan.Plan.run`.

        Args:
            inputs: one value for each input.
            run: the run. If it is watched step by step, results lie where NumPy puts them.
            kind: of the run, by `kind_of`; None if it will not come again, as with caches that grow.
        """
        if kind is None:
            return self.lowerer.plan.call(inputs, run)
        latest, planned, template, code = self._latest
        if (kind is not latest and kind != latest) or run.watch is not None:
            planned, template, code = None, self.lowerer.plan.template, self.lowerer.plan.code
            if run.watch is None or run.watch.in_arena:
                planned, to_record = self._find(kind)
                if to_record and run.watch is None:
                    return self._record(kind, inputs, run)
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

    def _record(self, kind: Kind, inputs: Sequence[Any], run: Run) -> list[Any]:
        """As `run`, for the first run of its ``kind``."""
        recorder = run.watch = FormRecorder()
        results = self.lowerer.plan.call(inputs, run)
        recorder.forms.update(
            (v, ArrayType(*f)) for v, f in zip(self.lowerer.graph.inputs, kind) if isinstance(f, tuple)
        )
        run.watch = None
        self._keep(kind, recorder.forms, len(recorder.forms) * _FORM_BYTES)
        return results

    def expected(self) -> MemoryPlan | None:
        """The plan for runs in which values have the types that the graph states; None if a shape is not stated."""
        forms = stated_forms(self.lowerer.graph)
        return None if forms is None else self._planner(frozenset()).plan(forms)

    def plans(self) -> list[MemoryPlan]:
        """The memory plans that are in use, the one of the latest run last."""
        return [p.memory for p in self._kinds.made() if isinstance(p, _Planned)]

    def _find(self, kind: Kind) -> tuple[_Planned | None, bool]:
        """The plan for runs of ``kind`` and, if there is none, whether this run is to be recorded."""
        with self._lock:
            try:
                found = self._kinds.get(kind)
            except KeyError:
                return None, self._kinds.admits(kind, new=self._watched < KINDS)
            if isinstance(found, dict):
                with gc_paused():
                    found = self._plan(kind, found)
            plan = self.lowerer.plan
            self._latest = kind, found, plan.template, plan.code
            return found, False

    def _keep(self, kind: Kind, known: dict[Value, ArrayType] | _Planned | None, nbytes: int) -> None:
        with self._lock:
            self._kinds.put(kind, known, _KIND_BYTES + nbytes)
            self._watched = sum([isinstance(found, dict) for found in self._kinds.made()])

    def _plan(self, kind: Kind, forms: dict[Value, ArrayType]) -> _Planned | None:
        donated = kind[len(self.lowerer.graph.inputs) :]
        compiled = frozenset([group for group in self._own_groups if not _were_steps(group, forms)])
        planner = self._planner(compiled)
        memory, planned = planner.plan(forms, donated), None
        if memory.place_of:
            plan, bound = self.lowerer.plan, self.lowerer.bound
            code = planned_code(plan, bound, memory.place_of, compiled)
            fast = code, 0
            if bound.backend is not None:
                static = {value: form for value, form in forms.items() if value in planner.static}
                fast = compiled_code(bound.backend, plan, code, static, memory.place_of)
            planned = _Planned(memory, plan, code, fast)
        if planned is not None:
            self._kinds.budget = max(self._kinds.budget, memory.nbytes)
        self._keep(kind, planned, len(forms) * _FORM_BYTES if planned else 0)
        return planned

    def _planner(self, compiled: frozenset[Node]) -> Planner:
        """The planner for runs in which the groups ``compiled`` are one kernel each."""
        lowerer = self.lowerer
        if compiled not in self._planners:
            kernels = {node: found for node in compiled if (found := lowerer.bound.compiled(node)) is not None}
            self._planners[compiled] = Planner(lowerer.graph, lowerer.storage, lowerer.plan.slot_of, kernels)
        return self._planners[compiled]

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


def _were_steps(group: Node, forms: Mapping[Value, ArrayType]) -> bool:
    """Whether the members of ``group`` ran one by one in the run in which values had ``forms``."""
    return any(value in forms for node in subgraph_of(group).nodes for value in node.outputs)
