"""Types say what tensors are when they are made: what changes shapes in place makes them untrue for what follows."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.ir import parse_graph, parse_module
from tests.passes.helpers import assert_same_results, kinds, transform, transform_module

PROGRAMS = {
    "Shape": """
        graph(%x : Float(2, 3)):
          %y : Float(2, 3) = aten::relu(%x)
          %z : Tensor = aten::t_(%y)
          %s : Long(2) = onnx::Shape[since_version=13](%y)
          return (%s)
        """,
    "in place": """
        graph(%x : Float(3)):
          %one : int = prim::Constant[value=1]()
          %y : Float(3) = onnx::Relu[since_version=14](%x)
          %z : Tensor = aten::unsqueeze_(%y, %one)
          %n : Float(3) = onnx::Neg[since_version=13](%x)
          %s : Tensor = onnx::Add[since_version=14](%y, %n)
          return (%s)
        """,
    "norm": """
        graph(%x : Float(2, 3)):
          %one : int = prim::Constant[value=0]()
          %w : Float(3) = prim::Constant[value=tensor([1, 2, 3])]()
          %r : Float(2, 3) = onnx::Relu[since_version=14](%x)
          %c : Float(3) = onnx::ReduceSum[since_version=11, axes=[0], keepdims=0](%x)
          %y : Float(2, 3) = onnx::RMSNormalization[since_version=23](%r, %c)
          %t : Tensor = aten::unsqueeze_(%y, %one)
          %s : Tensor = onnx::Mul[since_version=14](%y, %w)
          return (%s)
        """,
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
    text = """
        graph(%x : Float(2, 3)):
          %y : Float(2, 3) = aten::relu(%x)
          %f : Function = prim::Constant[name="turn"]()
          %z : Tensor = prim::CallFunction(%f, %y)
          %s : Long(2) = onnx::Shape[since_version=13](%y)
          return (%s)

        graph turn(%y : Tensor):
          %z : Tensor = aten::t_(%y)
          return (%z)
        """
    x = np.ones((2, 3), np.float32)
    for pipeline in ("canonicalize", "default"):
        assert_same_results(parse_module(text), transform_module(text, pipeline), x)


def test_what_does_not_change_is_still_folded():
    assert "onnx::Shape" not in kinds(transform(PROGRAMS["Shape"].replace("aten::t_", "aten::t"), "canonicalize"))


def test_notes_say_why_nothing_is_in_place():
    model = irc.compile(parse_graph(PROGRAMS["in place"]), "in-place")
    assert any("changes shapes or element types of tensors in place" in str(note) for note in model.report.refusals)
