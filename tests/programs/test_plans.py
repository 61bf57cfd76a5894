"""Plans against the interpreter, and the boundary around them."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import analyze
from irc.alias.location_sets import intersects
from irc.runtime import execution
from irc.runtime.model import CompiledModel
from irc.runtime.plan import lower
from irc.runtime.storage import Storage
from tests.effort import examples, tuned
from tests.programs import opaque_steps
from tests.programs.generator import Program, dense, joins, lasting, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.interpreter import arrays, share
from tests.programs.running import Run, check_same, copied, expected


@examples(200)
@given(programs() | dense | lasting, st.just([]) | cuts)
def test_plans_compute_what_the_interpreter_does(program: Program, groups: list[Cut]) -> None:
    check_plan(program, groups)


def check_plan(program: Program, groups: list[Cut]) -> None:
    """Compare two runs of the plan of ``program`` with the interpreter."""
    wanted = expected(program)
    regroup(program.module, groups)
    plan = lower(program.graph)
    for _ in range(2):  # nothing is left over from the first run
        memory, counters = program.memory(), execution.Run()
        opaque_steps.reset()
        outputs = plan.run(program.inputs(memory), counters)
        wanted.check(Run(copied(outputs), memory, list(opaque_steps.calls)))
        assert counters.kernels >= counters.in_place


@examples(200)
@given(joins, st.just([]) | cuts)
def test_parts_that_are_made_where_they_are_joined_are_what_they_are_elsewhere(
    program: Program, groups: list[Cut]
) -> None:
    """Views, tensors that are there twice or written later, in lists of others, branches and loops."""
    with tuned("irc.runtime.destinations.LEAST", 0):
        check_plan(program, groups)


@examples(50)
@given(dense, cuts)
def test_frames_keep_nothing_but_results_and_constants(program: Program, groups: list[Cut]) -> None:
    """Every slot is emptied after its last use, on every path that was taken."""
    regroup(program.module, groups)
    plan = lower(program.graph)
    template = plan.template
    frames: list[list[Any]] = []

    class Template(list[Any]):
        def copy(self) -> list[Any]:
            frames.append(list(self))
            return frames[-1]

    plan.frame = Template(template)
    plan.run(program.inputs())
    (frame,) = frames
    kept = {i for i in range(1, len(frame)) if frame[i] is not None and template[i] is None}
    unused_inputs = {i for i, v in zip(plan.code.params, program.graph.inputs) if not v.has_uses}
    assert kept <= set(plan.code.returns) | unused_inputs


@examples(150)
@given(programs(), st.booleans())
def test_results_share_with_nothing_and_inputs_are_kept(program: Program, writeable: bool) -> None:
    model = CompiledModel(program.module)
    memory = program.memory()
    inputs = program.inputs(memory)
    for x in inputs:
        x.flags.writeable = writeable
    feeds = {v.name: x for v, x in zip(program.graph.inputs, inputs)}
    first, second = model.run(feeds), model.run(feeds)
    for kept, now in zip(program.buffers, memory):
        np.testing.assert_array_equal(now, kept, err_msg="a run changed an input that was not donated")
    results = list(arrays([*first.values(), *second.values()]))
    others = [*inputs, *(t.numpy() for t in program.module.weights.values())]
    for i, x in enumerate(results):
        assert x.flags.writeable
        assert not any(share(x, y) for y in (*results[:i], *others))
    again = copied(list(second.values()))
    for x in arrays(list(first.values())):
        x.fill(1)  # the caller's to change
    check_same(again, list(model.run(feeds).values()))


@examples(100)
@given(programs() | dense | lasting, st.just([]) | cuts)
def test_values_that_may_share_memory_show_a_class_in_common(program: Program, groups: list[Cut]) -> None:
    """Though what loops carry is of classes of its own."""
    regroup(program.module, groups)
    graph = program.graph
    db = analyze(graph, noalias=graph.inputs)
    storage = Storage(db, analyze(graph, noalias=graph.inputs, loops_apart=True))
    values = list(db.values_in_order())
    for i, value in enumerate(values):
        assert storage.of(value) in storage.shown(value)
        for other in values[:i]:
            if intersects(db.reach_set(value), db.reach_set(other)):
                assert storage.shown(value) & storage.shown(other), f"{value} and {other}"
