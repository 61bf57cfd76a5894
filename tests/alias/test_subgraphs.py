"""Nodes that run a subgraph, and ONNX's loops."""

import pytest

from irc.alias import analyze
from irc.alias.rules import unknown_operators
from irc.fuser.subgraph import dissolve, make_group
from irc.ir import parse_graph, parse_module
from tests.fuser.helpers import fuse

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


GROUP = """graph(%x : Float(2, 2)):
  %a : Tensor, %b : Tensor = prim::FusionGroup_0(%x)
  %y : Tensor = aten::exp({})
  return (%y)
with prim::FusionGroup_0 = graph(%u : Float(2, 2)):
  %v : Tensor = aten::neg(%u)
  %w : Tensor = {}
  return (%v, {})
"""


@pytest.mark.parametrize("pipeline", ["dce", "fuse", "dce,fuse", "fuse,dce"])
@pytest.mark.parametrize("used", ["%a", "%b"])
@pytest.mark.parametrize(
    ("made", "returned"),
    [("aten::t(%v)", "%w"), ("aten::add(%v, %u)", "%w"), ("aten::neg(%v)", "%v")],
)
def test_what_a_group_makes_is_its_own_whatever_goes_and_wherever_it_moves(
    pipeline: str, used: str, made: str, returned: str
) -> None:
    fuse(GROUP.format(used, made, returned), pipeline)  # which compares the analysis with a new one


def test_nodes_own_what_they_make_outside_of_a_group_as_in_it() -> None:
    graph = parse_graph(GROUP.format("%b", "aten::add(%v, %u)", "%w"))
    db = analyze(graph)
    group = graph.value("a").node
    assert group is not None and all(map(db.is_own, group.outputs))
    nodes = dissolve(group, db)
    db.check()
    db.move_before(nodes[0], nodes[1])
    assert all(map(db.is_own, make_group(nodes, db).outputs))
    db.check()


def test_a_constant_that_a_group_returns_is_not_its_own() -> None:
    graph = parse_graph(GROUP.format("%b", "prim::Constant[value=tensor<Float(2)>([1., 2.])]()", "%w"))
    a, b = map(graph.value, "ab")
    db = analyze(graph)
    assert [db.is_own(v) for v in (a, b)] == [True, False]
