"""Graphs count as the same whatever their names and the order of what is independent, and for nothing else."""

import pytest

from benchmarks.yolov3.isomorphism import difference
from irc.fuser import Fuse
from irc.ir import Graph, parse_graph
from irc.passes import PassManager
from tests.graphs import typed_ir

PLAIN = """
graph(%x : Tensor, %y : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%y)
  %c : Tensor = aten::add(%a, %b, %one)
  %d : Tensor = aten::neg_(%c)
  %e : Tensor = aten::exp_(%c)
  %f : Tensor = prim::Loop(%n, %yes, %e)
    block0(%i : int, %u : Tensor):
      %v : Tensor = aten::mul(%u, %b)
      -> (%yes, %v)
  return (%f, %a)
"""


def graph(*changes: tuple[str, str], fuse: bool = False) -> Graph:
    text = PLAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = parse_graph(text)
    found.verify()
    if fuse:
        PassManager([Fuse()]).run(found)
    return found


A_THEN_B = "  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::sigmoid(%y)\n"
B_THEN_A = "  %b : Tensor = aten::sigmoid(%y)\n  %a : Tensor = aten::relu(%x)\n"
D_THEN_E = "  %d : Tensor = aten::neg_(%c)\n  %e : Tensor = aten::exp_(%c)\n"
E_THEN_D = "  %e : Tensor = aten::exp_(%c)\n  %d : Tensor = aten::neg_(%c)\n"


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("changes", [(), (("%c", "%other"),), ((A_THEN_B, B_THEN_A),)])
def test_names_and_the_order_of_what_is_independent_do_not_matter(
    changes: tuple[tuple[str, str], ...], fuse: bool
) -> None:
    assert difference(graph(fuse=fuse), graph(*changes, fuse=fuse)) is None


@pytest.mark.parametrize(
    "change",
    [
        ("value=1", "value=2"),
        ("aten::relu", "aten::tanh"),
        ("aten::add(%a, %b", "aten::add(%b, %a"),
        ("aten::mul(%u, %b)", "aten::mul(%u, %u)"),
        ("-> (%yes, %v)", "-> (%yes, %u)"),
        ("return (%f, %a)", "return (%f, %b)"),
        ("return (%f, %a)", "return (%f)"),
        (D_THEN_E, E_THEN_D),
        (D_THEN_E, D_THEN_E + "  %g : Tensor = aten::neg_(%c)\n"),
        (A_THEN_B, A_THEN_B + "  %h : Tensor = aten::exp(%y)\n"),
    ],
)
def test_everything_else_does(change: tuple[str, str]) -> None:
    for a, b in ((graph(), graph(change)), (graph(change), graph())):
        assert difference(a, b) is not None


CHAIN = typed_ir("x: Tensor", "a = aten.relu(x); b = aten.exp(a); c = aten.neg(b); d = aten.tanh(c)", "d")


def test_what_is_in_one_group_matters() -> None:
    whole, halves, none = (parse_graph(CHAIN) for _ in range(3))
    PassManager([Fuse()]).run(whole)
    PassManager([Fuse(max_size=2)]).run(halves)
    groups = [sum(node.kind == "prim::FusionGroup" for node in g.nodes) for g in (whole, halves, none)]
    assert groups == [1, 2, 0]
    for a in (whole, halves, none):
        for b in (whole, halves, none):
            assert (difference(a, b) is None) == (a is b)
