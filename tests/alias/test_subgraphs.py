"""Nodes that run a subgraph, and ONNX's loops."""

from irc.alias.rules import unknown_operators
from irc.ir import parse_graph, parse_module

HEAD = """graph(%x : Tensor, %i : Long(1), %q : Bool()):
  %a : Tensor = onnx::Relu(%x)
  %b : Tensor = onnx::Relu(%x)
"""


SHARING = "Identity(%a); Reshape(%a, %i); Squeeze(%a); Unsqueeze(%a, %i); Flatten(%a); Transpose(%a); "
SHARING += "Slice(%a, %i, %i); Split(%a); Expand(%a, %i)"
FRESH = "Clip(%a); Cast[to=1](%a); Concat[axis=0](%a); Sum(%a); Pad(%a, %i); Gather(%a, %i); Where(%q, %a, %a); "
FRESH += 'Einsum[equation="i->i"](%a)'


def test_what_is_unknown_in_a_group_is_unknown() -> None:
    graph = parse_graph(f"""{HEAD}  %p : Tensor = prim::FusionGroup_0(%a)
  %y : Tensor = prim::TensorExprGroup_0(%p)
  return (%y)
with prim::FusionGroup_0 = graph(%u : Tensor):
  %v : Tensor = no::such(%u)
  return (%v)
with prim::TensorExprGroup_0 = graph(%u : Tensor):
  %v : Tensor = none::such(%u)
  return (%v)
""")
    assert list(unknown_operators(graph)) == ["no::such", "none::such"]


def test_functions_that_groups_call_are_known() -> None:
    call = '%f : Function = prim::Constant[name="{}"]()\n  %y : Tensor = prim::CallFunction(%f, %x)\n  return (%y)\n'
    for name, unknown in (("f", []), ("g", ["prim::CallFunction"])):
        module = parse_module(
            "graph(%x : Tensor):\n  %y : Tensor = prim::FusionGroup_0(%x)\n  return (%y)\n"
            f"with prim::FusionGroup_0 = graph(%x : Tensor):\n  {call.format(name)}"
            "graph f(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n"
        )
        assert list(unknown_operators(module.main)) == unknown
