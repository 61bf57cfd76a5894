"""Captures by value: what a block may write because nothing outside needs it any more, and what loops own."""

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import Node
from irc.runtime.execution import Frame, Observer, Slots
from irc.runtime.plan import lower
from tests.graphs import typed_ir
from tests.runtime.helpers import boolean, f32, graph_of, i64, observed_run

X = f32(-1, 2, -3)


def run(text: str, *inputs: Any, observer: Observer | None = None) -> tuple[list[Any], int]:
    """The results, and how many operators wrote over an operand. Inputs are the caller's: read-only."""
    kept = [np.array(x) for x in inputs]
    views = [np.array(x) for x in inputs]
    for view in views:
        view.flags.writeable = False
    counters = observed_run(observer)
    results = lower(graph_of(text), guarded=True).run(views, counters)
    for view, before in zip(views, kept):
        np.testing.assert_array_equal(view, before)
    return results, counters.in_place


# -- branches -------------------------------------------------------------------

BRANCH = """
graph(%c : Bool(), %x : Float(3)):
  %w : Float(3) = prim::Constant[value=tensor([1., -1., 1.])]()
  %a : Float(3) = onnx::Softsign(%x)
  %y : Float(3) = prim::If(%c)
    block0():
      %b : Float(3) = onnx::Relu(%a)
      -> (%b)
    block1():
      %d : Float(3) = onnx::Add(%w, %a)
      -> (%d)
  return (%y)
"""
A = X / (1 + np.abs(X))
W = f32(1, -1, 1)


def test_a_branch_whose_result_leaves_does_not_write_planned_memory():
    """What it captures lies in the arena from the second run on; what a run returns is never there."""
    model = irc.compile(graph_of(BRANCH.replace("Float(3)", "Float(100, 100)").replace("tensor([1., -1., 1.])", WIDE)))
    x = np.ones((100, 100), np.float32)
    for number, taken in enumerate((True, False, True, False)):
        result = model.run({"c": boolean(taken), "x": x})["y"]
        assert (model.counters.in_place, model.counters.planned) == ((0, 1) if number else (1, 0))
        assert result[0, 0] == (0.5 if taken else 1.5)


WIDE = "splat<Float(100, 100)>(1.)"
BORROWED = BRANCH.replace("onnx::Softsign(%x)", "onnx::Identity(%x)")
CONSTANT = BRANCH.replace("onnx::Softsign(%x)", "onnx::Identity(%w)")
RETURNED = BRANCH.replace("return (%y)", "return (%y, %a)")
USED = BRANCH.replace("return (%y)", "%e : Float(3) = onnx::Softmax(%a)\n  return (%y, %e)")
VIEWED = BRANCH.replace(
    "  %y : Float(3) = prim::If",
    "  %v : Float(3, 1) = onnx::Unsqueeze[axes=[1], since_version=11](%a)\n  %y : Float(3) = prim::If",
).replace("return (%y)", "return (%y, %v)")


@pytest.mark.parametrize(
    ("text", "a"), [(BORROWED, X), (CONSTANT, W), (RETURNED, A), (USED, A), (VIEWED, A)],
    ids=["borrowed", "constant", "returned", "used later", "a view is returned"],
)  # fmt: skip
@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_does_not_write_what_is_not_its_own(text, a, taken):
    (y, *rest), in_place = run(text, boolean(taken), X)
    np.testing.assert_array_equal(y, np.maximum(a, 0) if taken else a + W)
    assert in_place == 0
    if rest and text is not USED:
        np.testing.assert_array_equal(rest[0].ravel(), a)
    if text is USED:
        np.testing.assert_allclose(rest[0], np.exp(a) / np.exp(a).sum(), rtol=1e-6)


# -- loops ----------------------------------------------------------------------

LOOP = typed_ir("""
    n: Long(); x: Float(3) -> y
    go: Bool() = prim.Constant(value={1}); first = Softsign(x); w = Neg(x); y = Loop(n, go, first)
    with block(i=Long(), c=Bool(), h=Float(3)): b = Add(w, h); d = Relu(b); yield c, d
""")


def expected_of_loop(first: np.ndarray, iterations: int, w: np.ndarray = -X) -> np.ndarray:
    for _ in range(iterations):
        first = np.maximum(w + first, 0)
    return first


class Seen(Observer):
    """Which array is in a value, each time a node reads it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrays: list[np.ndarray] = []

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        self.arrays += [frame[s] for v, s in zip(node.inputs, ins) if v.name == self.name]


@pytest.mark.parametrize("iterations", [0, 1, 2, 7])
def test_what_a_loop_carries_is_its_own_and_a_capture_is_not(iterations):
    captures, carried = Seen("w"), Seen("b")
    (y,), in_place = run(LOOP, i64(iterations), X, observer=captures)
    np.testing.assert_array_equal(y, expected_of_loop(A, iterations))
    assert in_place == 2 * iterations
    assert len(captures.arrays) == iterations
    assert len({array.ctypes.data for array in captures.arrays}) <= 1, "captured, not copied"
    run(LOOP, i64(iterations), X, observer=carried)
    assert len({array.ctypes.data for array in carried.arrays}) <= 1, "all iterations in one piece of memory"
