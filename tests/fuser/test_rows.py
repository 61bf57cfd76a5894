"""What fuses with operators that reduce rows: pointwise operators, and reductions of the same rows, not products."""

import pytest

from tests.fuser.helpers import fuse, kinds

T = "Float(4, 6)"


def graph(body: str, outputs: str, inputs: str = f"%x : {T}, %y : {T}, %s : Float(6)") -> str:
    return f"graph({inputs}):\n  {body.strip()}\n  return ({outputs})"


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
        ("%a : Tensor = onnx::Exp(%x)\n  %b : Tensor = onnx::Softmax(%a)", "%x : Tensor", ["Exp", "Softmax"]),
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
