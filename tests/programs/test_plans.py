"""Plans against the interpreter, and the boundary around them."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from irc.runtime.model import CompiledModel
from tests.programs.generator import Program, programs
from tests.programs.interpreter import arrays, share
from tests.programs.running import check_same, copied, examples, expected, run


@examples(200)
@given(programs())
def test_plans_compute_what_the_interpreter_does(program: Program) -> None:
    wanted = expected(program)
    wanted.check(run(program))
    wanted.check(run(program))  # nothing is left over from the first run


@examples(150)
@given(programs())
def test_results_share_with_nothing_and_inputs_are_kept(program: Program) -> None:
    model = CompiledModel(program.module)
    memory = program.memory()
    inputs = program.inputs(memory)
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
