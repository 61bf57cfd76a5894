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
