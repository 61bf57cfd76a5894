"""The steps of runs in planned memory.

The frame of such a run has the arrays for results before it begins (`irc.runtime.arena`), and steps write them there.
Members of groups that the backend declines are steps like all others. In runs that nothing follows step by step, what
would be the same in each run of a kind is done once for an arena, and the backend may compile consecutive steps to one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from irc.ir import Node, Value
from irc.ir.constants import is_none
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.tensor import Array
from irc.ir.types import DType
from irc.ops.axes import APPEND, CONCAT
from irc.ops.record import MOVING
from irc.ops.registry import record
from irc.runtime.array_memory import ANY_STRIDE, ArrayType, c_strides
from irc.runtime.backends import PlannedOperand, PlannedStep
from irc.runtime.execution import (
    Code,
    Frame,
    Instruction,
    Step,
    drop_step,
    execute,
    kernel_step,
    placed_step,
    put,
)
from irc.runtime.growable import append_step, copy_behind_step
from irc.runtime.kernels.registry import takes_outs
from irc.runtime.kernels.support import axis_in
from irc.runtime.memory_plan import RESHAPE, FormRecorder, MemoryPlan, Planner
from irc.runtime.plan import Plan
from irc.runtime.values import is_array


def frame_over(plan: Plan, memory: MemoryPlan, arena: Array) -> Frame:
    """What runs start from whose results lie in ``arena``."""
    frame = plan.template.copy()
    places = [(plan.slot_of[v], place) for v, place in memory.place_of.items() if place.source is None]
    # One array for all results in a place: NumPy sees at once that such an operand is `out` itself.
    found = {(place.form, place.offset) for _, place in places}
    arrays = {(form, offset): np.ndarray(form.shape, form.dtype, arena, offset) for form, offset in found}
    for slot, place in places:
        frame[slot] = arrays[place.form, place.offset]
    return frame


class PlannedSteps:
    """Makes code for planned memory of the code of a plan.

    Args:
        plan: of the graph.
        memory: where the values lie whose arrays are in the frame beforehand.
        compiled: the groups that are one kernel.
    """

    def __init__(self, plan: Plan, memory: MemoryPlan, compiled: Collection[Node]) -> None:
        self._plan = plan
        self._placed, self._over = memory.place_of, memory.over
        self._compiled = compiled
        self._slots = frozenset(plan.slot_of[value] for value in self._placed)
        self._new: dict[Value, int] = {}
        """The slots of small results that leave the run, and get arrays of their own when it begins."""

    def code(self, code: Code) -> Code:
        """``code``, with the arrays in the frame."""
        made = code.with_instructions([])
        return made.with_instructions([self._step(each) for each in self._expanded(code.instructions, made)])

    def _expanded(self, instructions: Iterable[Instruction], code: Code) -> Iterator[Instruction]:
        """``instructions``, and instead of groups that are declined their members, which ``code`` counts."""
        for each in instructions:
            group = self._plan.groups.get(each.node) if each.node not in self._compiled else None
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
        if node in self._plan.branches:
            branches, step_of = self._plan.branches[node]
            return each._replace(step=step_of(*map(self.code, branches)))
        if node.kind == GROUP or not self._is_placed(each):
            return each
        dead = tuple([s for s in dead if s not in self._slots])
        if self._is_joined(node):
            return each._replace(step=drop_step(dead), dead=dead)
        kernel = self._plan.bound.kernel(node)
        if len(outs) > 1 and not takes_outs(kernel):
            return each
        step = placed_step(kernel, ins, outs, dead, is_plain(node))
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
        plan: as above, and what else is above.
        planner: knows what the shapes of inputs decide.
        known: what was recorded in a run of this kind.
        frame: has constants and the arrays for results. What is done once puts its results there.
        owner: of the arena's memory.
        is_donated: whether results that leave the run may lie in memory that the caller has given up.
        written: the names of inputs that runs write to.

    Attributes:
        once: the steps that are done once for an arena.
        count: how many compiled steps there are.
    """

    def __init__(
        self,
        plan: Plan,
        memory: MemoryPlan,
        compiled: Collection[Node],
        planner: Planner,
        known: FormRecorder,
        frame: Frame,
        owner: object,
        is_donated: bool = False,
        written: Collection[str] = (),
    ) -> None:
        super().__init__(plan, memory, compiled)
        self._is_donated = is_donated
        self._open_inputs = {slot for slot, v in zip(plan.code.params, plan.graph_inputs) if v.name not in written}
        self._planner, self._known = planner, known
        self._frame, self._owner = frame, owner
        self._constants = plan.template
        self.once: list[Step] = []
        self.count = 0
        self._operands: dict[int, PlannedOperand | None] = {}
        self._learn(plan.graph_inputs, plan.code.params)
        self._look(range(len(frame)))

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
                found.append(Instruction(drop_step(dead), node, (), (), dead))
        return made, [*first, *found]

    def _new_results(self, each: Instruction, returned: Collection[int]) -> list[Instruction]:
        """What makes arrays, before all else, for results of ``each`` that leave the run, if they are small.

        So the steps that make the results of the run can be compiled with those before them.
        """
        _, node, _, outs, _ = each
        slot_of, known, static = self._plan.slot_of, self._known, self._planner.static
        made = {value: slot for value, slot in zip(node.outputs, outs) if value not in self._placed}
        if self._is_donated or not made or node.kind == RESHAPE or self._plan.bound.backend is None:
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
        has_code = self._plan.bound.backend is not None
        if form is None or new is None or new.type.varies or not new.type.nbytes or not has_code:
            return None
        (out,), old, axis = outs, ins[0], axis_in(node.attributes["axis"], len(form.shape))
        self._operands[out] = PlannedOperand(out, form, _strides_in_buffer(form, axis))
        room = append_step(old, np.zeros(new.type.shape, new.type.dtype), out, axis)
        copy = copy_behind_step(out, ins[1], axis, dead)
        return Instruction(room, node, (old,), outs), Instruction(copy, node, (out, ins[1]), (), dead)

    def _step(self, each: Instruction) -> Instruction:
        found, backend = self._plan.loops.get(each.node), self._plan.bound.backend
        iterate = backend.compile_loop(each.node, self._plan, self._known) if found and backend else None
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
            return drop_step(())
        if self._planner.known >= results <= known.keys():
            step = partial(put, slots=outs, values=[known[value] for value in node.outputs])
            step(frame)
            return step
        if not node.kind.startswith("onnx::") or record(node.kind).movement not in MOVING or self._is_placed(each):
            return None
        are_there = all(frame[s] is not None or is_none(v) for s, v in zip(ins, node.inputs))
        if not are_there or [s for s in ins if self._is_inside(s)] != [ins[0]]:
            return None
        step = kernel_step(self._plan.bound.kernel(node), ins, outs, ())
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
                constant = x if x is self._constants[slot] else None
                self._operands[slot] = PlannedOperand(slot, ArrayType.of(x), strides, constant)

    def _with_compiled(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """``instructions``, of which the backend has compiled consecutive ones, as far as it does."""
        backend, found = self._plan.bound.backend, list[Instruction]()
        if backend is None:
            return [*instructions]
        for may_be, run in groupby(instructions, self._may_be_compiled):
            rest = list(run)
            steps = [self._planned(each) for each in rest] if may_be else ()
            for length, function in backend.compile_steps(steps) if steps else ():
                part, rest = rest[:length], rest[length:]
                if function is not None:
                    part = [_compiled(function, part)]
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


def _compiled(function: Callable[[Frame], int], instructions: list[Instruction]) -> Instruction:
    """One instruction for several, which run one by one where ``function`` refuses the arrays."""
    steps = Code().with_instructions(instructions)
    groups = sum([each.node.kind == GROUP for each in instructions])
    dead = tuple([s for each in instructions for s in each.dead])

    def step(frame: Frame) -> None:
        if not function(frame):
            execute(steps, frame)
            return
        frame[0].kernels += groups
        for s in dead:
            frame[s] = None

    return instructions[0]._replace(step=step, dead=dead)


def is_plain(node: Node) -> bool:
    """Whether a ufunc that is the kernel of ``node`` suits its operands, and may be called instead of it."""
    return all(v.type.dtype is not DType.FLOAT16 for v in node.inputs)
