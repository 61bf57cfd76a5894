"""`irc.tools.costs`: operations of known models and of single operators, parameters and bytes."""

from pathlib import Path

import onnx
import pytest

from irc.frontend.onnx import import_model
from irc.ir import parse_graph
from irc.tools.costs import Cost, costs
from tests.graphs import ir

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"

PUBLISHED = {"resnet50": 4_089_184_256, "vgg19": 19_632_062_464, "bvlc_alexnet": 654_560_384, "squeezenet": 349_151_936}
"""Multiply-accumulates, as others count them: torchvision's tables give 4.09 and 19.63 billion for the first two."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_known_models(name: str) -> None:
    found = costs(import_model(LIGHT / f"light_{name}.onnx").main)
    assert (found.macs, found.uncounted, found.sizes) == (PUBLISHED[name], {}, {})
    assert 2 * found.macs < found.flops < 2.03 * found.macs
    assert sum(found.weights.values()) == found.weight_bytes


X, A, B = "%x : Float(2, 3, 8, 8)", "%a : Float(5, 4, 6)", "%b : Float(6, 7)"
SINGLE = {
    f"({X}, %w : Float(4, 3, 3, 3)) onnx::Conv": (2 * 4 * 6 * 6) * 27,
    f"({X}, %w : Float(6, 1, 3, 3)) onnx::Conv[group=3]": (2 * 6 * 6 * 6) * 9,
    f"({X}, %w : Float(3, 4, 3, 3)) onnx::ConvTranspose[strides=[2, 2]]": (2 * 3 * 8 * 8) * 4 * 9,
    f"({A}, {B}) onnx::MatMul": 5 * 4 * 7 * 6,
    f"({A}, {B}) aten::matmul": 5 * 4 * 7 * 6,
    "(%a : Float(6, 4), %b : Float(6, 7)) onnx::Gemm[transA=1]": 4 * 7 * 6,
    f'({A}, {B}) onnx::Einsum[equation="bij,jk->ik"]': 5 * 4 * 6 * 7,
    "(%x : Float(9, 2, 5), %w : Float(1, 12, 5), %r : Float(1, 12, 3)) onnx::LSTM[hidden_size=3]": 9 * 2 * 12 * (5 + 3),
    "(%q : Float(1, 2, 5, 4), %k : Float(1, 2, 7, 4), %v : Float(1, 2, 7, 3)) irc::attention": 2 * 5 * 7 * (4 + 3),
    "(%q : Float(2, 5, 4), %k : Float(2, 7, 4), %v : Float(2, 7, 3)) aten::scaled_dot_product_attention": 70 * (4 + 3),
}


@pytest.mark.parametrize("text", SINGLE)
def test_products_of_one_operator(text: str) -> None:
    parameters, _, kind = text.rpartition(") ")
    names = ", ".join(each.partition(" ")[0] for each in parameters.replace("(%", "%").split(", ") if each[0] == "%")
    graph = parse_graph(f"graph{parameters}):\n  %y : Tensor = {kind}({names})\n  return (%y)\n")
    found = costs(graph)
    assert list(found.operators.values()) == [Cost(1, SINGLE[text], 2 * SINGLE[text])]


FLOPS = {
    "onnx::Relu(%x)": 24,
    "onnx::Sigmoid(%x)": 4 * 24,
    "onnx::Sum(%x, %x, %x)": 2 * 24,
    "onnx::ReduceMean(%x)": 24,
    "onnx::Softmax(%x)": 5 * 24,
    "onnx::Transpose(%x)": 0,
    "onnx::Cast[to=7](%x)": 0,
    "aten::softmax(%x, %one, %none)": 5 * 24,
}


@pytest.mark.parametrize("call", FLOPS)
def test_operations_of_others(call: str) -> None:
    found = costs(
        parse_graph(f"""graph(%x : Float(n, 3, 4)):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %y : Tensor = {call}
  return (%y)
"""),
        {"n": 2},
    )
    assert (found.flops, found.macs, found.sizes) == (FLOPS[call], 0, {"n": 2})


def test_sizes_that_are_not_known() -> None:
    text = ir("""
        x: Float(batch, *, 4); w: Float(4, 5); n: Long(1) -> p, z
        r = Reshape(x, n); p = MatMul(x, w); z = ReduceSum(Relu(r))
    """)
    graph = parse_graph(text)
    found = costs(graph, {"batch": 3})
    assert str(graph) == str(parse_graph(text)), "the graph is not changed"
    assert (found.sizes, found.macs) == ({"batch": 3, "x[1]": 1}, 3 * 5 * 4)
    assert found.uncounted == {"onnx::ReduceSum": 1, "onnx::Relu": 1}
    assert costs(graph, {"batch": 3, "x[1]": 2}).macs == 2 * 3 * 5 * 4
