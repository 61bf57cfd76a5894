"""The steps of runs in planned memory: results are made in the arrays that lie in the frame beforehand.

A backend may compile consecutive ones to one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.kinds import GROUP
from irc.runtime.backends import ArrayType, Declined, PlannedStep
from irc.runtime.execution import Code
from irc.runtime.lowering import is_plain
from irc.runtime.steps import drop_step, move_step, placed_step
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from irc.ir import Node, Value
    from irc.runtime.backends import Backend
    from irc.runtime.execution import Frame, Slots, Step
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
    found = Code.like(plan.code)
    slots = frozenset(plan.slot_of[value] for value in placed)

    def add(code: Code) -> None:
        for step, (node, ins, outs), dead in zip(code.steps, code.nodes, code.dead):
            members = None if node in compiled else plan.groups.get(node)
            if members is not None:
                add(members.code)
                found.kernels += members.code.kernels
                found.in_place += members.code.in_place
                for out, result in members.moves:
                    found.add(move_step(result, out, ()), (node, (result,), (out,)), ())
                left = members.left(dead)
                if left:
                    found.add(drop_step(left), (node, (), ()), left)
            elif node.kind != GROUP and len(outs) == 1 and len(node.outputs) == 1 and node.output in placed:
                kept = tuple([s for s in dead if s not in slots])
                found.add(placed_step(bound.kernel(node), ins, outs[0], kept, is_plain(node)), (node, ins, outs), kept)
            else:
                found.add(step, (node, ins, outs), dead)

    add(plan.code)
    return found


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
    found = Code.like(code)
    count, at = 0, 0
    for steps, start in _runs(code, types, placed):
        made = backend.compile_steps(steps)
        if isinstance(made, Declined):
            continue
        end = start + len(steps)
        found.take(code, at, start)
        dead = tuple(s for slots in code.dead[start:end] for s in slots)
        node, _, _ = code.nodes[start]
        ins = tuple({s for step in steps for s in step.ins})
        found.add(_one_step(made, dead), (node, ins, tuple(step.out for step in steps)), dead)
        count, at = count + 1, end
    found.take(code, at, len(code.steps))
    return found, count


def _types(plan: Plan, code: Code, forms: Mapping[Value, Form]) -> dict[int, ArrayType]:
    """The types of the arrays in slots, as far as they are the same in each run."""
    types = {s: ArrayType(x.dtype, x.shape) for s, x in enumerate(plan.template) if is_array(x)}
    made = [(value, slot) for node, _, outs in code.nodes for value, slot in zip(node.outputs, outs)]
    given = zip(plan.graph_inputs, code.params)
    types.update((slot, ArrayType(f.dtype, f.shape)) for v, slot in (*given, *made) if (f := forms.get(v)) is not None)
    return types


def _runs(
    code: Code, types: Mapping[int, ArrayType], placed: Collection[Value]
) -> Iterator[tuple[list[PlannedStep], int]]:
    """The longest sequences of steps whose results are placed and whose operands have known types, and their starts."""
    steps: list[PlannedStep] = []
    for i, (node, ins, outs) in enumerate(code.nodes):
        if len(outs) == 1 and len(node.outputs) == 1 and node.output in placed and all(s in types for s in ins):
            steps.append(PlannedStep(node, tuple([types[s] for s in ins]), ins, outs[0]))
            continue
        if len(steps) >= FEWEST:
            yield steps, i - len(steps)
        steps = []
    if len(steps) >= FEWEST:
        yield steps, len(code.nodes) - len(steps)


def _one_step(run: Callable[[Frame], None], dead: Slots) -> Step:
    def step(frame: Frame) -> None:
        run(frame)
        for s in dead:
            frame[s] = None

    return step
