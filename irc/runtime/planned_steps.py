"""Consecutive steps of runs in planned memory, compiled by a backend to one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.runtime.backends import ArrayType, Declined, PlannedStep
from irc.runtime.execution import Code
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from irc.ir import Value
    from irc.runtime.backends import Backend
    from irc.runtime.execution import Frame, Slots, Step
    from irc.runtime.memory.memory_plan import Form
    from irc.runtime.plan import Plan

FEWEST = 2
"""Steps that are worth one call."""


def compiled_code(
    backend: Backend, plan: Plan, forms: Mapping[Value, Form], placed: Collection[Value]
) -> tuple[Code, int] | None:
    """The steps of ``plan`` with some of them compiled, and how many compiled steps there are; None if there are none.

    Args:
        backend: what compiles.
        plan: the plan of the graph.
        forms: of the values whose shapes are the same in each run of this kind.
        placed: the values whose arrays lie in the frame beforehand.
    """
    code = plan.code
    types = _types(plan, forms)
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
    return (found, count) if count else None


def _types(plan: Plan, forms: Mapping[Value, Form]) -> dict[int, ArrayType]:
    """The types of the arrays in slots, as far as they are the same in each run."""
    types = {s: ArrayType(x.dtype, x.shape) for s, x in enumerate(plan.template) if is_array(x)}
    made = [(value, slot) for node, _, outs in plan.code.nodes for value, slot in zip(node.outputs, outs)]
    given = zip(plan.graph_inputs, plan.code.params)
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
