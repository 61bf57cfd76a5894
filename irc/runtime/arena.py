"""Runs in planned memory: from the second run with the same `RunKey` on, results lie in an arena.

The first run with a key records shapes and element types (`irc.runtime.memory_plan.FormRecorder`); the second makes the
memory plan from them. A run in planned memory starts with arrays in the slots of its results, and the steps write into
these (`irc.runtime.execution.placed_step`). Members of groups that the backend declines are steps like all others. In
runs that nothing follows step by step, what would be the same in each run of a kind is done once for an arena, and the
backend may compile consecutive steps to one. Finished runs give their arena back for any later run, so there are as
many arenas as runs were ever active at once. No output lies in an arena.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from irc.ir import CONSTANT, GROUP, Array, DType, Node, Value, is_none
from irc.ir.graph import gc_paused
from irc.ops.axes import APPEND, CONCAT
from irc.ops.record import MOVING
from irc.ops.registry import record
from irc.runtime.array_memory import ANY, ANY_STRIDE, ArrayType, aligned_bytes, c_strides
from irc.runtime.backends import PlannedOperand, PlannedStep
from irc.runtime.execution import Code, Frame, Instruction, Run, Step, drop, execute, kernel_step, placed_step, put
from irc.runtime.growable import append_to_slot, copy_behind
from irc.runtime.kernels.support import axis_in
from irc.runtime.memory_plan import RESHAPE, FormRecorder, MemoryPlan, Planner, own_groups, stated_forms, were_steps
from irc.runtime.plan import Lowerer, Plan
from irc.runtime.plan_cache import PlanCache
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
    joined = tuple([a if a is b or a == b else _joined_forms(a, b) for a, b in zip(first, second)])
    return joined if len(first) == len(second) and None not in joined else None


def _joined_forms(a: Any, b: Any) -> ArrayType | None:
    are_arrays = isinstance(a, ArrayType) and isinstance(b, ArrayType)
    if not are_arrays or a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return None
    return ArrayType(a.dtype, tuple([m if m == n else ANY for m, n in zip(a.shape, b.shape)]))


def _open_sizes(key: RunKey) -> int:
    return sum([form.shape.count(ANY) for form in key if isinstance(form, ArrayType)])


class PlannedSteps:
    """Makes code for planned memory of the code of a plan.

    Args:
        plan: of the graph.
        memory: where the values lie whose arrays are in the frame beforehand.
        compiled: the groups that are one kernel.
    """

    def __init__(self, plan: Plan, memory: MemoryPlan, compiled: Collection[Node]) -> None:
        self.plan, self.memory = plan, memory
        self._placed, self._over = memory.place_of, memory.over
        self.compiled = compiled
        self._new: dict[Value, int] = {}
        """The slots of small results that leave the run, and get arrays of their own when it begins."""

    @cached_property
    def _slots(self) -> frozenset[int]:
        return frozenset(self.plan.slot_of[value] for value in self._placed)

    def frame(self, arena: Array) -> Frame:
        """What runs start from whose results lie in ``arena``."""
        frame = self.plan.template.copy()
        places = [(self.plan.slot_of[v], place) for v, place in self._placed.items() if place.source is None]
        # One array for all results in a place: NumPy sees at once that such an operand is `out` itself.
        found = {(place.form, place.offset) for _, place in places}
        arrays = {(form, offset): np.ndarray(form.shape, form.dtype, arena, offset) for form, offset in found}
        for slot, place in places:
            frame[slot] = arrays[place.form, place.offset]
        return frame

    def code(self, code: Code) -> Code:
        """``code``, with the arrays in the frame."""
        made = code.with_instructions([])
        return made.with_instructions([self._step(each) for each in self._expanded(code.instructions, made)])

    def _expanded(self, instructions: Iterable[Instruction], code: Code) -> Iterator[Instruction]:
        """``instructions``, and instead of groups that are declined their members, which ``code`` counts."""
        for each in instructions:
            group = self.plan.groups.get(each.node) if each.node not in self.compiled else None
            if group is None:
                code.in_place += len(self._over.intersection(each.node.outputs))
                yield each
                continue
            code.kernels += group.code.kernels
            code.in_place += group.code.in_place
            yield from self._expanded(group.instructions(each.dead), code)

    def _step(self, each: Instruction) -> Instruction:
        """``each``, which makes its result in its place, or runs blocks that do so."""
        _, node, ins, outs, dead = each
        if node in self.plan.branches:
            branches, step_of = self.plan.branches[node]
            return each._replace(step=step_of(*map(self.code, branches)))
        if node.kind == GROUP or not self._is_placed(each):
            return each
        dead = tuple([s for s in dead if s not in self._slots])
        if self._is_joined(node):
            return each._replace(step=drop(node, dead).step, dead=dead)
        # A ufunc that is the kernel suits operands of other types, and may be called instead of it.
        directly = all(v.type.dtype is not DType.FLOAT16 for v in node.inputs)
        step = placed_step(self.plan.bound.kernel(node), ins, outs, dead, directly)
        return Instruction(step, node, ins, outs, dead)

    def _is_joined(self, node: Node) -> bool:
        """Whether ``node`` is a Concat whose operands are made where the result has them."""
        return node.kind == CONCAT and node.output in self._over

    def _is_placed(self, each: Instruction) -> bool:
        """Whether an instruction makes results in arrays that lie in the frame beforehand."""
        outputs = each.node.outputs
        return len(each.outs) == len(outputs) > 0 and all(v in self._placed or v in self._new for v in outputs)


class FastSteps(PlannedSteps):
    """As `PlannedSteps`, for runs that nothing follows step by step.

    Args:
        plan: of the graph.
        memory: where values lie.
        planner: has planned it.
        known: what was recorded in a run of this kind.
        arena: memory for such runs. What is done once is tried out there.
        is_donated: whether results that leave the run may lie in memory that the caller has given up.

    Attributes:
        once: the steps that are done once for an arena.
        count: how many compiled steps there are.
    """

    def __init__(
        self,
        plan: Plan,
        memory: MemoryPlan,
        planner: Planner,
        known: FormRecorder,
        arena: Array,
        is_donated: bool = False,
    ) -> None:
        super().__init__(plan, memory, planner.compiled)
        self._is_donated = is_donated
        self._open_inputs = {slot for slot, v in zip(plan.code.params, plan.graph_inputs) if v.name not in plan.written}
        self._planner, self._known = planner, known
        self._frame, self._owner = self.frame(arena), arena.base
        self.once: list[Step] = []
        self.count = 0
        self._operands: dict[int, PlannedOperand | None] = {}
        self._learn(plan.graph_inputs, plan.code.params)
        self._look(range(len(self._frame)))

    def code(self, code: Code) -> Code:
        made, found = self._steps(code)
        return made.with_instructions(self._with_compiled(found))

    def to_compile(self, code: Code) -> tuple[Code, list[PlannedStep]] | None:
        """The steps of ``code`` for a backend, and what else is to know of it; None if it may not compile all."""
        made, found = self._steps(code)
        steps = [each for each in found if each.ins or each.outs]
        return (made, [*map(self._planned, steps)]) if all(map(self._may_be_compiled, steps)) else None

    def _steps(self, code: Code) -> tuple[Code, list[Instruction]]:
        """The steps of ``code`` that are done in each run, and what else is to know of it."""
        made = code.with_instructions([])
        found: list[Instruction] = []
        first: list[Instruction] = []
        returned = frozenset(code.returns)
        for each in self._expanded(code.instructions, made):
            _, node, _, outs, _ = each
            parts = self._append(each)
            if parts is not None:
                first.append(parts[0])
                found.append(parts[1])
                continue
            done = self._done_once(each)
            if done is None:
                first += self._new_results(each, returned)
                found.append(self._step(each))
                self._learn(node.outputs, outs)
                continue
            self.once.append(done)
            self._look(outs)
            made.kernels -= node.kind != GROUP
            dead = tuple([s for s in each.dead if self._frame[s] is None])
            if dead:
                found.append(drop(node, dead))
        return made, [*first, *found]

    def _new_results(self, each: Instruction, returned: Collection[int]) -> list[Instruction]:
        """What makes arrays, before all else, for results of ``each`` that leave the run, if they are small.

        So the steps that make the results of the run can be compiled with those before them.
        """
        _, node, _, outs, _ = each
        slot_of, known, static = self.plan.slot_of, self._known, self._planner.static
        made = {value: slot for value, slot in zip(node.outputs, outs) if value not in self._placed}
        if self._is_donated or not made or node.kind == RESHAPE or self.plan.bound.backend is None:
            return []  # what Reshape gives may be a view
        forms: list[tuple[int, ArrayType]] = []
        for value, slot in made.items():
            form = known.forms.get(value) if value in static and value not in known.strides else None
            if form is None or slot not in returned or slot_of.get(value) != slot or form.nbytes > MOST_NEW:
                return []
            forms.append((slot, form))
        self._new.update(made)
        return [Instruction(partial(_make_new, forms), node, (), ())]

    def _append(self, each: Instruction) -> tuple[Instruction, Instruction] | None:
        """For an ``irc::append_`` to an input, what makes room, before all else, and what copies; else None.

        Between steps that a backend compiles, it then need only copy.
        """
        _, node, ins, outs, dead = each
        if node.kind != APPEND or ins[0] not in self._open_inputs:
            return None
        form, new = self._planner.open.get(node.output), self._operands.get(ins[1])
        has_code = self.plan.bound.backend is not None
        if form is None or new is None or new.type.varies or not new.type.nbytes or not has_code:
            return None
        (out,), old, axis = outs, ins[0], axis_in(node.attributes["axis"], len(form.shape))
        self._operands[out] = PlannedOperand(out, form, _strides_in_buffer(form, axis))
        room = partial(append_to_slot, old, np.zeros(new.type.shape, new.type.dtype), out, axis, writes=False)
        copy = partial(copy_behind, out, ins[1], axis, dead)
        return Instruction(room, node, (old,), outs), Instruction(copy, node, (out, ins[1]), (), dead)

    def _step(self, each: Instruction) -> Instruction:
        found, backend = self.plan.loops.get(each.node), self.plan.bound.backend
        iterate = backend.compile_loop(each.node, self.plan, self._known) if found and backend else None
        if found is None or iterate is None:
            return super()._step(each)
        self.count += 1
        return each._replace(step=found[2](iterate))

    def _done_once(self, each: Instruction) -> Step | None:
        """A step that does what ``each`` does, once; None if that may differ from run to run.

        Its results show what lies in the arena, or have few elements, which the shapes of inputs decide. An operator
        that did not run when the forms were recorded might fail; blocks do more than make results.
        """
        _, node, ins, outs, _ = each
        frame, known, results = self._frame, self._known.few, set(node.outputs)
        if node.blocks or not results or not self._planner.inner >= results <= self._known.forms.keys():
            return None
        if self._is_joined(node):
            return drop(node, ()).step
        if self._planner.known >= results <= known.keys():
            step = partial(put, slots=outs, values=[known[value] for value in node.outputs])
            step(frame)
            return step
        if not node.kind.startswith("onnx::") or record(node.kind).movement not in MOVING or self._is_placed(each):
            return None
        are_there = all(frame[s] is not None or is_none(v) for s, v in zip(ins, node.inputs))
        if not are_there or [s for s in ins if self._is_inside(s)] != [ins[0]]:
            return None
        step = kernel_step(self.plan.bound.kernel(node), ins, outs, ())
        step(frame)
        if all(map(self._is_inside, outs)):
            return step
        put(frame, (), (), outs)  # copies
        return None

    def _is_inside(self, slot: int) -> bool:
        """Whether what lies in a slot shows the arena."""
        x = self._frame[slot]
        return is_array(x) and x.base is self._owner

    def _learn(self, values: Sequence[Value], slots: Sequence[int]) -> None:
        """Note the forms of values that are made in each run."""
        known = self._known
        for value, slot in zip(values, slots):
            is_decided = value in self._planner.static or (value in self._planner.open and value not in known.strides)
            if slot not in self._operands and value in known.forms and is_decided:
                self._operands[slot] = PlannedOperand(slot, known.forms[value], known.strides.get(value))

    def _look(self, slots: Iterable[int]) -> None:
        """Note how arrays lie that are in the frame."""
        for slot in slots:
            x = self._frame[slot]
            if is_array(x):
                strides = None if x.flags.c_contiguous else x.strides
                constant = x if x is self.plan.frame[slot] else None
                self._operands[slot] = PlannedOperand(slot, ArrayType.of(x), strides, constant)

    def _with_compiled(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """``instructions``, of which the backend has compiled consecutive ones, as far as it does."""
        backend, found = self.plan.bound.backend, list[Instruction]()
        if backend is None:
            return [*instructions]
        for may_be, run in groupby(instructions, self._may_be_compiled):
            rest = list(run)
            steps = [self._planned(each) for each in rest] if may_be else ()
            for length, function in backend.compile_steps(steps) if steps else ():
                part, rest = rest[:length], rest[length:]
                if function is not None:
                    part = [_compiled(function, part, self._frame)]
                    self.count += 1
                found += part
            found += rest
        return found

    def _may_be_compiled(self, each: Instruction) -> bool:
        others = [v for s, v in zip(each.ins, each.node.inputs) if s not in self._operands]
        is_copy = each.node.kind == APPEND and not each.outs
        return (self._is_placed(each) or is_copy) and all(is_none(v) or v.made_by(CONSTANT) for v in others)

    def _planned(self, each: Instruction) -> PlannedStep:
        return PlannedStep(each.node, tuple(map(self._operands.get, each.ins)), each.outs)


MOST_NEW = 1 << 16
"""Bytes of a result that gets an array when a run begins: larger ones lie where the kernel finds memory fastest."""


def _make_new(forms: Sequence[tuple[int, ArrayType]], frame: Frame) -> None:
    for slot, (dtype, shape) in forms:
        frame[slot] = np.empty(shape, dtype)


def _strides_in_buffer(form: ArrayType, axis: int) -> tuple[int, ...]:
    """The strides of arrays in memory with room along ``axis``; of axes before, they depend on that."""
    return (*[ANY_STRIDE] * axis, *c_strides(form.shape[axis:], form.dtype.itemsize))


def _compiled(function: Callable[[Frame], int], instructions: list[Instruction], template: Frame) -> Instruction:
    """One instruction for several, which run one by one where ``function`` refuses the arrays.

    It does not empty slots in which runs that start from ``template`` have something anyway.
    """
    steps = Code().with_instructions(instructions)
    groups = sum([each.node.kind == GROUP for each in instructions])
    dead = tuple([s for each in instructions for s in each.dead if template[s] is None])

    def step(frame: Frame) -> None:
        if not function(frame):
            execute(steps, frame)
            return
        frame[0].kernels += groups
        for s in dead:
            frame[s] = None

    return instructions[0]._replace(step=step, dead=dead)


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
            for step in planned.once:
                step(found)
            self._templates[planned] = found  # when it is whole, not after an interrupt
        return found


class _Planned(PlannedSteps):
    """A plan whose results have places.

    Args:
        steps: make its code where nothing follows them.

    Attributes:
        once: the steps that are done once for an arena.
    """

    def __init__(self, steps: FastSteps) -> None:
        super().__init__(steps.plan, steps.memory, steps.compiled)
        self._fast = steps.code(self.plan.code)
        self.once, self._count = steps.once, steps.count
        self._sources = [(self.plan.slot_of[v], p.source) for v, p in self._placed.items() if p.source is not None]

    @cached_property
    def _followed(self) -> Code:
        """Its steps one by one."""
        return self.code(self.plan.code)

    def begin(self, arena: _Arena, inputs: Sequence[Any], run: Run) -> tuple[Frame, Code]:
        """What a run in ``arena`` starts from, and its steps."""
        if run.observer is None:
            template, code = arena.template(self), self._fast
            run.compiled += self._count
        else:  # it is told of each step
            template, code = self.frame(arena.memory), self._followed
            run.observer.use_arena(arena.memory, self.memory)
        if self._sources:
            template = template.copy()
            for slot, source in self._sources:
                template[slot] = inputs[source]
        run.arena = arena.memory.base
        run.planned += len(self._placed)
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
                run.arena = None
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
        with self._lock:  # of a planner that runs may be using
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
            arena = self._take(memory.nbytes)
            steps = FastSteps(self.lowerer.plan, memory, planner, recorder, arena.memory, bool(donated))
            planned = _Planned(steps)
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
