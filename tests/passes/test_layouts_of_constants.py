"""What looks at strides sees constants, and results that are written over operands, as new tensors lie."""

import numpy as np
import pytest

import irc
from irc.ir import parse_graph

PASSES = ["none", "default", "constant-fold", "in-place", "remove-mutation"]


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("shape", [(2, 3), (700, 800)], ids=["small", "large"])
@pytest.mark.parametrize("made", ["aten::clone(%c)", "aten::abs(%c)", "prim::data(%c)"])
def test_constants_of_equal_elements_are_contiguous(made: str, shape: tuple[int, int], passes: str) -> None:
    graph = parse_graph(f"""
graph(%x : Float(1)):
  %c : Float({shape[0]}, {shape[1]}) = prim::Constant[value=splat(1.)]()
  %m : Tensor = {made}
  %zero : int = prim::Constant[value=0]()
  %is : bool = aten::is_contiguous(%m, %zero)
  %s : int[] = aten::stride(%m)
  return (%is, %s)
""")
    for _ in range(2):
        contiguous, strides = irc.compile(graph, passes).run({"x": np.ones(1, np.float32)}).values()
        assert contiguous and [int(n) for n in strides] == [shape[1], 1]


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("result", ["onnx::Not(%v)", "onnx::And(%v, %v)", "onnx::Or(%v, %u)"])
def test_results_of_onnx_operators_lie_in_order_where_strides_are_seen(result: str, passes: str) -> None:
    graph = parse_graph(f"""
graph(%x : Bool(2, 3)):
  %n : Bool(2, 3) = onnx::Not(%x)
  %size : int[] = prim::Constant[value=[3]]()
  %stride : int[] = prim::Constant[value=[2]]()
  %none : NoneType = prim::Constant()
  %v : Bool(3) = aten::as_strided(%n, %size, %stride, %none)
  %u : Bool(1) = prim::Constant[value=tensor([True])]()
  %a : Bool(3) = {result}
  %zero : int = prim::Constant[value=0]()
  %k : int = aten::stride(%a, %zero)
  return (%k)
""")
    model = irc.compile(graph, passes)
    for _ in range(3):  # from the second run on, memory is planned
        (stride,) = model.run({"x": np.ones((2, 3), bool)}).values()
        assert int(stride) == 1
