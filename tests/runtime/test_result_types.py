"""Forms that follow from the inputs', against those that values have in runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import Graph, Value, parse_graph
from irc.ir.region_flow import inner_graph
from irc.runtime.array_memory import ANY, ArrayType
from irc.runtime.memory_plan import FormRecorder, derived_forms, own_groups
from irc.runtime.plan import lower
from irc.runtime.values import is_array
from tests.effort import examples
from tests.graphs import ir_graph
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


STATED_WRONGLY = """
graph(%x : Float(n, 4)):
  %y : Float(7, 4) = onnx::Relu(%x)
  %shape : Long(2) = onnx::Shape(%y)
  %ones : Float(7, 4) = onnx::ConstantOfShape[value=tensor<Float(1)>([1.])](%shape)
  %sum : Float(1, 4) = onnx::ReduceSum[axes=[0], since_version=11](%y)
  return (%ones, %sum)
"""


@pytest.mark.parametrize(("given_size", "size"), [(3, 3), (ANY, ANY)])
def test_what_a_graph_states_is_not_asked(given_size: int, size: int) -> None:
    graph = parse_graph(STATED_WRONGLY)
    found = derived_forms(graph, {}, {graph.inputs[0]: ArrayType(np.dtype(np.float32), (given_size, 4))}, ())
    by_name = {value.name: form.shape for value, form in found.items()}
    assert by_name == {"x": (size, 4), "y": (size, 4), "shape": (2,), "ones": (size, 4), "sum": (1, 4)}


WRITTEN = """
graph(%x : Float(3), %two : Long(1)):
  %shape : Long(1) = onnx::Shape(%x)
  %written : Long(1) = irc::overwrite_(%shape, %two)
  %y : Float(*) = onnx::ConstantOfShape[value=tensor<Float(1)>([1.])](%shape)
  return (%y)
"""


def test_of_elements_that_something_writes_nothing_follows() -> None:
    graph = parse_graph(WRITTEN)
    x, two = graph.inputs
    forms = {x: ArrayType(np.dtype(np.float32), (3,)), two: ArrayType(np.dtype(np.int64), (1,))}
    shape = graph.value("shape")
    assert derived_forms(graph, {}, forms, {shape})[graph.value("y")].shape == (ANY,)
    assert derived_forms(graph, {}, forms, ())[graph.value("y")].shape == (3,)


def test_of_groups_and_branches() -> None:
    graph = ir_graph("""
            x: Float(n, 4); c: Bool() -> y
            y: Float(n, 4) = prim.If(c)
            with block(): a: Float(n, 4) = Relu(x); yield a
            with block(): b: Float(n, 4) = FusionGroup_0(x); yield b

            with FusionGroup_0 | in_: Float(n, 4) -> e
            d: Float(n, 4) = Neg(in_); e: Float(n, 4) = Abs(d)
        """)
    x, c = graph.inputs
    forms = {x: ArrayType(np.dtype(np.float32), (ANY, 4)), c: ArrayType(np.dtype(np.bool_), ())}
    groups = own_groups(graph)
    inner = [inner_graph(node) for node in groups]
    found = derived_forms(graph, groups, forms, ())
    values = [graph.value("y"), *[v for each in inner if each is not None for v in each.outputs]]
    assert [found[value].shape for value in values] == [(ANY, 4)] * 2
