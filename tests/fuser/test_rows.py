"""What fuses with operators that reduce rows: pointwise operators, and reductions of the same rows, not products."""

import numpy as np
import pytest

import irc
from irc.ir import parse_graph
from tests.fuser.helpers import fuse, kinds

T = "Float(4, 6)"


def graph(body: str, outputs: str, inputs: str = f"%x : {T}, %y : {T}, %s : Float(6)") -> str:
    return f"graph({inputs}):\n  {body.strip()}\n  return ({outputs})"


NORMALISED = f"""
  %a : {T} = onnx::Add(%x, %y)
  %b : {T} = onnx::LayerNormalization(%a, %s, %s)
  %c : {T} = onnx::Relu(%b)
"""


def test_what_is_before_and_behind_joins() -> None:
    g, report = fuse(graph(NORMALISED, "%c"))
    assert kinds(g) == ["[Add LayerNormalization Relu]"]
    assert report.stats["fuse.merged"] == 2


def test_a_value_with_other_uses_is_a_result_of_the_group() -> None:
    g, _ = fuse(graph(NORMALISED, "%a, %c"))
    assert kinds(g) == ["[Add LayerNormalization Relu]"]
    assert len(g.outputs) == 2


def test_reductions_of_the_same_rows_are_one_group() -> None:
    body = f"""
  %a : {T} = onnx::Softmax(%x)
  %b : {T} = onnx::Mul(%a, %y)
  %c : {T} = onnx::LayerNormalization(%b, %s, %s)
"""
    assert kinds(fuse(graph(body, "%c"))[0]) == ["[Softmax Mul LayerNormalization]"]


def test_reductions_of_other_rows_are_not() -> None:
    body = f"""
  %a : {T} = onnx::Softmax[axis=0](%x)
  %b : {T} = onnx::Mul(%a, %y)
  %c : {T} = onnx::LayerNormalization(%b, %s, %s)
"""
    g, report = fuse(graph(body, "%c"))
    assert kinds(g) == ["Softmax", "[Mul LayerNormalization]"]
    assert any("reduces other rows" in note.reason for note in report.remarks), report.remarks


def test_a_product_gives_its_whole_result_first() -> None:
    body = f"""
  %p : {T} = onnx::MatMul(%x, %w)
  %a : {T} = onnx::Add(%p, %s)
  %b : {T} = onnx::Softmax(%a)
"""
    g, report = fuse(graph(body, "%b", f"%x : {T}, %w : Float(6, 6), %s : Float(6)"))
    assert kinds(g) == ["MatMul", "[Add Softmax]"]
    assert any("whole result" in note.reason for note in report.remarks), report.remarks


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        # The consumer makes more elements than are reduced.
        (
            "%a : Float(6) = onnx::Softmax(%x)\n  %b : Float(4, 6) = onnx::Add(%a, %y)",
            "%x : Float(6), %y : Float(4, 6)",
            ["Softmax", "Add"],
        ),
        # The producer makes fewer, which every row would make anew.
        (
            "%a : Float(6) = onnx::Exp(%s)\n  %b : Float(4, 6) = onnx::LayerNormalization(%x, %a, %s)",
            "%x : Float(4, 6), %s : Float(6)",
            ["Exp", "LayerNormalization"],
        ),
        # It is not known which elements are reduced.
        (
            "%a : Tensor = onnx::Exp(%x)\n  %b : Tensor = onnx::Softmax(%a)",
            "%x : Tensor",
            ["Exp", "Softmax"],
        ),
        (
            "%a : Float(4, 6) = onnx::Exp(%x)\n  %b : Tensor = onnx::ReduceSum(%a, %n)",
            "%x : Float(4, 6), %n : Long(1)",
            ["Exp", "ReduceSum"],
        ),
    ],
)
def test_what_is_not_of_rows_does_not_join(body: str, inputs: str, expected: list[str]) -> None:
    assert kinds(fuse(graph(body, "%b", inputs))[0]) == expected


def test_what_there_is_once_for_each_row_joins() -> None:
    body = f"""
  %axes : Long(1) = prim::Constant[value=tensor([1])]()
  %a : {T} = onnx::Exp(%x)
  %b : Float(4) = onnx::ReduceSum[keepdims=0](%a, %axes)
  %c : Float(4) = onnx::Log(%b)
"""
    assert kinds(fuse(graph(body, "%c"))[0]) == ["[Exp ReduceSum Log]"]


def test_members_run_one_by_one_without_a_backend() -> None:
    x, s = np.random.default_rng(0).standard_normal((2, 4, 6)).astype(np.float32), np.ones(6, np.float32)
    given = {"x": x[0], "y": x[1], "s": s}
    counts = {}
    results = {}
    for passes in ("", "default"):
        model = irc.compile(parse_graph(graph(NORMALISED, "%a, %c")), passes, backend="numpy")
        results[passes] = model.run(given)
        counts[passes] = model.counters.kernels
    assert counts["default"] == counts[""] == 3
    for key, value in results[""].items():
        np.testing.assert_array_equal(results["default"][key], value)
