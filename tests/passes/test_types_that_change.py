"""Types say what tensors are when they are made: what changes shapes in place makes them untrue for what follows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import irc
from irc.ir import Graph, parse_graph, parse_module
from irc.passes import PassContext, PassManager
from tests.graphs import ir, typed_ir
from tests.passes.helpers import assert_same_results, kinds, transform, transform_module

PROGRAMS = {
    "Shape": ir("x: Float(2, 3)", "y: Float(2, 3) = relu(x); z = t_(y); s: Long(2) = Shape(y, since_version=13)", "s"),
    "in place": ir("""
            x: Float(3) -> s
            y: Float(3) = Relu(x, since_version=14); z = unsqueeze_(y, 1); n: Float(3) = Neg(x, since_version=13)
            s = Add(y, n, since_version=14)
        """),
    "norm": ir("""
            x: Float(2, 3) -> s
            w: Float(3) = prim.Constant(value=tensor([1, 2, 3])); r: Float(2, 3) = Relu(x, since_version=14)
            c: Float(3) = ReduceSum(x, since_version=11, axes=[0], keepdims=0)
            y: Float(2, 3) = RMSNormalization(r, c, since_version=23); t = unsqueeze_(y, 0)
            s = Mul(y, w, since_version=14)
        """),
}


@pytest.mark.parametrize("pipeline", ["constant-fold", "in-place", "canonicalize", "default", "default,in-place"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_the_same(program, pipeline):
    before = parse_graph(PROGRAMS[program])
    shape = before.inputs[0].type.static_shape
    assert shape is not None
    x = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    assert_same_results(before, transform(PROGRAMS[program], pipeline), x, rtol=1e-6)


def test_a_function_may_change_them():
    text = ir("""
        x: Float(2, 3) -> s
        y: Float(2, 3) = relu(x); f: Function = prim.Constant(name="turn"); z = prim.CallFunction(f, y)
        s: Long(2) = Shape(y, since_version=13)

        turn | y: Tensor -> z
        z = t_(y)
    """)
    x = np.ones((2, 3), np.float32)
    for pipeline in ("canonicalize", "default"):
        assert_same_results(parse_module(text), transform_module(text, pipeline), x)


def test_what_does_not_change_is_still_folded():
    assert "onnx::Shape" not in kinds(transform(PROGRAMS["Shape"].replace("aten::t_", "aten::t"), "canonicalize"))


def test_notes_say_why_nothing_is_in_place():
    model = irc.compile(parse_graph(PROGRAMS["in place"]), "in-place")
    assert any("changes shapes or element types of tensors in place" in str(note) for note in model.report.remarks)


APART = typed_ir("""
    x: Float(2, 3) -> s, r
    y = relu(x); w = relu(x); z = t_(y); s = Shape(w, since_version=13); r: Float(3, 2) = relu(y)
""")


@dataclass(frozen=True)
class Seen:
    """Keeps the types that values have while passes run."""

    name: ClassVar[str] = "seen"
    types: ClassVar[dict[str, str]] = {}

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        self.types.update((value.name, str(value.type)) for value in graph.values())
        return False


def test_passes_see_the_types_that_hold_and_what_is_declared_comes_back():
    graph = parse_graph(APART)
    declared = {value.name: str(value.type) for value in graph.values()}
    PassManager([Seen()]).run(graph)
    assert Seen.types == {**declared, "y": "Tensor", "z": "Tensor"}
    assert {value.name: str(value.type) for value in graph.values()} == declared


def test_declared_types_come_back_when_a_pass_fails():
    class Failing(Seen):
        def run(self, graph: Graph, ctx: PassContext) -> bool:
            raise RuntimeError

    graph = parse_graph(APART)
    before = str(graph)
    with pytest.raises(irc.Error):
        PassManager([Failing()]).run(graph)
    assert str(graph) == before


def test_what_nothing_changes_is_folded_beside_what_something_does():
    assert "Shape" not in kinds(transform(APART, "canonicalize"))
