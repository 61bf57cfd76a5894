"""The steps of runs in planned memory: results are made in the arrays that lie in the frame beforehand.

A backend may compile consecutive ones to one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.kinds import GROUP
from irc.ir.types import DType
from irc.runtime.backends import ArrayType, Declined, PlannedStep
from irc.runtime.execution import Instruction
from irc.runtime.steps import placed_step
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from irc.ir import Node, Value
    from irc.runtime.backends import Backend
    from irc.runtime.execution import Code, Frame, Slots, Step
    from irc.runtime.lowering import Bound
    from irc.runtime.memory.memory_plan import Form
    from irc.runtime.plan import Plan

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
    backend: Backend, plan: Plan, code: Code, forms: Mapping[Value, Form], placed: Collection[Value]
) -> tuple[Code, int]:
    """``code`` with consecutive steps compiled, as far as the backend does, and how many compiled steps there are.

    Args:
        backend: what compiles.
        plan: the plan of the graph.
        code: its steps in planned memory.
        forms: of the values whose shapes are the same in each run of this kind.
        placed: the values whose arrays lie in the frame beforehand.
    """
    types = _types(plan, code, forms)
    found: list[Instruction] = []
    count, at = 0, 0
    for steps, start in _runs(code, types, placed):
        made = backend.compile_steps(steps)
        if isinstance(made, Declined):
            continue
        end = start + len(steps)
        dead = tuple(s for each in code.instructions[start:end] for s in each.dead)
        ins = tuple({s for step in steps for s in step.ins})
        one = Instruction(_one_step(made, dead), steps[0].node, ins, tuple(step.out for step in steps), dead)
        found += [*code.instructions[at:start], one]
        count, at = count + 1, end
    return code.with_instructions(found + code.instructions[at:]), count


def _types(plan: Plan, code: Code, forms: Mapping[Value, Form]) -> dict[int, ArrayType]:
    """The types of the arrays in slots, as far as they are the same in each run."""
    types = {s: ArrayType(x.dtype, x.shape) for s, x in enumerate(plan.template) if is_array(x)}
    made = [pair for each in code.instructions for pair in zip(each.node.outputs, each.outs)]
    given = zip(plan.graph_inputs, code.params)
    types.update((slot, ArrayType(f.dtype, f.shape)) for v, slot in (*given, *made) if (f := forms.get(v)) is not None)
    return types


def _runs(
    code: Code, types: Mapping[int, ArrayType], placed: Collection[Value]
) -> Iterator[tuple[list[PlannedStep], int]]:
    """The longest sequences of steps whose results are placed and whose operands have known types, and their starts."""
    steps: list[PlannedStep] = []
    for i, each in enumerate(code.instructions):
        if is_placed(each, placed) and all(s in types for s in each.ins):
            steps.append(PlannedStep(each.node, tuple([types[s] for s in each.ins]), each.ins, each.outs[0]))
            continue
        if len(steps) >= FEWEST:
            yield steps, i - len(steps)
        steps = []
    if len(steps) >= FEWEST:
        yield steps, len(code.instructions) - len(steps)


def is_placed(each: Instruction, placed: Collection[Value]) -> bool:
    """Whether an instruction makes one result, in an array that lies in the frame beforehand."""
    return len(each.outs) == 1 and len(each.node.outputs) == 1 and each.node.output in placed


def is_plain(node: Node) -> bool:
    """Whether a ufunc that is the kernel of ``node`` suits its operands, and may be called instead of it."""
    return all(v.type.dtype is not DType.FLOAT16 for v in node.inputs)


def _one_step(run: Callable[[Frame], None], dead: Slots) -> Step:
    def step(frame: Frame) -> None:
        run(frame)
        for s in dead:
            frame[s] = None

    return step
