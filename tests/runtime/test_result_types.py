"""Forms that follow from the inputs', against those that values have in runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import Graph, Value
from irc.runtime.array_memory import ANY, ArrayType
from irc.runtime.memory_plan import FormRecorder, derived_forms, own_groups
from irc.runtime.plan import lower
from irc.runtime.values import is_array
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.runtime.helpers import observed_run


def opened(form: ArrayType, data: st.DataObject) -> ArrayType:
    """``form``, in which some sizes may be `ANY`."""
    return form._replace(shape=tuple([ANY if data.draw(st.booleans()) else size for size in form.shape]))


def check_forms(graph: Graph, inputs: Sequence[Any], data: st.DataObject) -> dict[Value, ArrayType]:
    """What is derived of sizes, some of which are open, fits what a run makes; all that is derived."""
    own = [(v, ArrayType.of(x)) for v, x in zip(graph.inputs, inputs) if is_array(x) and not x.dtype.hasobject]
    plan, recorder = lower(graph), FormRecorder()
    with np.errstate(all="ignore"):
        plan.call(inputs, observed_run(recorder))
    given_forms = {value: opened(form, data) for value, form in own}
    written = {value for node in graph.walk() if node.kind.endswith("_") for value in node.inputs}
    found = derived_forms(graph, own_groups(graph), given_forms, written)
    for value, form in found.items():
        made = recorder.forms.get(value)
        if made is not None:
            assert form.dtype == made.dtype, value
            assert len(form.shape) == len(made.shape), value
            assert all(size in (ANY, n) for size, n in zip(form.shape, made.shape)), value
    return found


@examples(60)
@given(programs(), cuts, st.data())
def test_of_random_programs(program: Program, groups: list[Cut], data: st.DataObject) -> None:
    regroup(program.module, groups)
    check_forms(program.graph, program.inputs(), data)
