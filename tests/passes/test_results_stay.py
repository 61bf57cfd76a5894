"""Programs that some pass once gave other results: what each computes with no pass, and with those and all others."""

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import parse_graph

ONES = np.ones((1, 2), np.float32)

# Name -> the graph, its inputs.
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "Scan of version 8 writes into its state": (
        """graph(%x : Float(1, 2), %xs : Float(1, 3, 2)):
  %none : NoneType = prim::Constant()
  %st : Float(1, 2) = onnx::Neg[since_version=13](%x)
  %xt : Float(1, 3, 2) = onnx::Neg[since_version=13](%xs)
  %k0 : Float(1, 2) = onnx::Abs[since_version=13](%st)
  %r : Float(1, 2), %o : Float(1, 3, 2) = onnx::Scan[num_scan_inputs=1, since_version=8](%none, %st, %xt)
    block0(%s : Float(2), %u : Float(2)):
      %w : Float(2) = onnx::Add_[since_version=14](%s, %u)
      %v : Float(2) = onnx::Add[since_version=7](%w, %u)
      -> (%v, %v)
  %k : Float(1, 2) = onnx::Abs[since_version=13](%st)
  return (%k0, %k)
""",
        {"x": ONES, "xs": np.ones((1, 3, 2), np.float32)},
    ),
    "a slice of a tuple from its end": (
        """graph(%x : Float(1, 2)):
  %one : int = prim::Constant[value=1]()
  %five : float = prim::Constant[value=5.]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%b)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%a, %c)
  %s : (Tensor) = prim::TupleSlice[beg=-1, end=2](%t)
  %q : Tensor = prim::TupleUnpack(%s)
  %k0 : Tensor = aten::abs(%c)
  %w : Tensor = aten::add_(%q, %five, %one)
  %k : Tensor = aten::abs(%c)
  return (%k0, %k)
""",
        {"x": ONES},
    ),
    "a normalisation in a loop, written to": (
        """graph(%x : Float(1, 1, 2, 2), %n : int):
  %t : bool = prim::Constant[value=1]()
  %w : Float(1, 1, 1, 1) = prim::Constant[value=splat(1.)]()
  %s : Float(1) = prim::Constant[value=splat(1.)]()
  %z : Float(1) = prim::Constant[value=splat(0.)]()
  %c : Float(1, 1, 2, 2) = onnx::Conv[since_version=11](%x, %w)
  %r : Float(1, 1, 2, 2) = prim::Loop(%n, %t, %x)
    block0(%i : int, %u : Float(1, 1, 2, 2)):
      %b : Float(1, 1, 2, 2) = onnx::BatchNormalization[epsilon=0., since_version=15](%c, %s, %z, %z, %s)
      %e : Float(1, 1, 2, 2) = onnx::Add_[since_version=14](%b, %s)
      -> (%t, %e)
  return (%r)
""",
        {"x": np.ones((1, 1, 2, 2), np.float32), "n": 3},
    ),
}


@pytest.mark.parametrize("passes", ["cse", "conv-bn-fold", "default", "default,remove-mutation,cse,in-place"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay(name: str, passes: str) -> None:
    text, feeds = PROGRAMS[name]
    expected = irc.compile(parse_graph(text), "none").run(feeds)
    found = irc.compile(parse_graph(text), passes, instruments=["verify-alias"]).run(feeds)
    for output, value in expected.items():
        np.testing.assert_array_equal(found[output], value)
