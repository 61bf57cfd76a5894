"""Nodes that run a subgraph, and ONNX's loops."""

import pytest

from irc.alias.rules import unknown_operators
from irc.ir import parse_graph, parse_module
from tests.alias.helpers import Case
from tests.passes.helpers import cases

HEAD = """graph(%x : Tensor, %i : Long(1), %q : Bool()):
  %a : Tensor = onnx::Relu(%x)
  %b : Tensor = onnx::Relu(%x)
"""

CLAIMS = """
== a pure group makes fresh memory | p !~ a, p !~ b, p !~ x, p !~ q2, a !written
  %p : Tensor, %q2 : Tensor = prim::FusionGroup_0(%a, %b)
  return (%p, %q2)
with prim::FusionGroup_0 = graph(%u : Tensor, %v : Tensor):
  %r : Tensor = aten::relu(%u)
  %s : Tensor = aten::neg(%r)
  return (%r, %s)

== one result twice is one memory | p ~ p2, p !~ r, s ~ a
  %p : Tensor, %p2 : Tensor = prim::FusionGroup_0(%a)
  %r : Tensor, %s : Tensor = prim::FusionGroup_1(%a)
  return (%p, %p2, %r, %s)
with prim::FusionGroup_0 = graph(%u : Tensor):
  %v : Tensor = aten::relu(%u)
  return (%v, %v)
with prim::FusionGroup_1 = graph(%u : Tensor):
  %v : Tensor = aten::relu(%u)
  return (%v, %u)

== variants write in place | y = a, a written, x !written
  %y : Tensor = onnx::Add_(%a, %x)
  return (%y)

== dropout shares only its first result | y ~ a, m !~ a
  %y : Tensor, %m : Tensor = onnx::Dropout(%a)
  return (%y, %m)

== what is appended to may have grown | y ~ a, a written, y !~ b, y != a
  %y : Tensor = irc::append_[axis=0](%a, %b)
  return (%y)
"""


@pytest.mark.parametrize(("body", "claims"), cases(CLAIMS))
def test_groups_and_operators(body: str, claims: str) -> None:
    Case(f"{HEAD}{body}\n").claims(claims)


SHARING = "Identity(%a); Reshape(%a, %i); Squeeze(%a); Unsqueeze(%a, %i); Flatten(%a); Transpose(%a); "
SHARING += "Slice(%a, %i, %i); Split(%a); Expand(%a, %i)"
FRESH = "Clip(%a); Cast[to=1](%a); Concat[axis=0](%a); Sum(%a); Pad(%a, %i); Gather(%a, %i); Where(%q, %a, %a); "
FRESH += 'Einsum[equation="i->i"](%a)'


@pytest.mark.parametrize(
    ("made", "shares"), [(made, text is SHARING) for text in (SHARING, FRESH) for made in text.split("; ")]
)
def test_onnx_operators_that_may_share_and_others(made: str, shares: bool) -> None:
    c = Case(f"{HEAD}  %y : Tensor = onnx::{made}\n  return (%y)\n")
    assert c.alias("y", "a") is shares
    assert not c.written("a")


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
