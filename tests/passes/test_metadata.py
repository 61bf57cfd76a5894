"""Passes on graphs that change shapes and strides of tensors in place: two tensors of one memory stay two."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.ir import parse_module

TURNS = {
    "aten::t_": "",
    "aten::transpose_": ", %zero, %one",
    "aten::squeeze_": "",
    "aten::unsqueeze_": ", %zero",
}

VIEWS = {
    "aten::t": "",
    "aten::detach": "",
    "aten::alias": "",
    "aten::unsqueeze": ", %one",
    "aten::permute": ", %order",
    "aten::view": ", %order",
    "aten::transpose": ", %zero, %one",
}

HEAD = """
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %order : int[] = prim::ListConstruct(%one, %zero)
  %sizes : int[] = prim::ListConstruct(%one, %one)
"""


def program(view: str, turn: str, of: str, inside: bool) -> str:
    """Two equal views of ``of``, one of which is turned; ``inside``: in a function that returns both to its caller."""
    more = VIEWS[view].replace("%order", "%sizes" if view == "aten::view" else "%order")
    views = f"  %a : Tensor = {view}({of}{more})\n  %b : Tensor = {view}({of}{more})\n"
    turned = f"  %r : Tensor = {turn}(%a{TURNS[turn]})\n"
    y = "  %y : Tensor = aten::neg(%x)\n"
    if not inside:
        return f"graph(%x : Tensor):{HEAD}{y}{views}{turned}  return (%a, %b, %y)\n"
    call = '  %f : Function = prim::Constant[name="f"]()\n  %a : Tensor, %b : Tensor = prim::CallFunction(%f, %x)\n'
    called = f"graph f(%x : Tensor):{HEAD}{y}{views}  return (%a, %b)\n"
    return f"graph(%x : Tensor):{HEAD}{y}{call}{turned}  return (%a, %b)\n{called}"


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("of", ["%x", "%y"])
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("view", VIEWS)
def test_two_views_stay_two_tensors(view: str, turn: str, of: str, inside: bool) -> None:
    shape = (1, 1) if view == "aten::view" or turn == "aten::squeeze_" else (2, 3)
    if turn == "aten::t_" and view == "aten::unsqueeze":
        shape = (3,)
    x = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
    text = program(view, turn, of, inside)
    plain, *others = (
        irc.compile(parse_module(text), passes=passes).run({"x": x})
        for passes in ("", "cse", "inline,cse,dce", "default")
    )
    a, b = plain["a"], plain["b"]
    assert a.shape != b.shape or shape == (1, 1)
    for found in others:
        assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in plain.items()}
        assert all(np.array_equal(found[k], v) for k, v in plain.items())


def test_equal_views_still_merge_where_only_elements_are_written() -> None:
    text = f"""graph(%x : Tensor):{HEAD}
  %y : Tensor = aten::neg(%x)
  %a : Tensor = aten::t(%y)
  %b : Tensor = aten::t(%y)
  %w : Tensor = aten::relu_(%y)
  %c : Tensor = aten::add(%a, %b, %one)
  return (%c)
"""
    model = irc.compile(parse_module(text), passes="cse")
    assert [node.kind for node in model.graph.nodes].count("aten::t") == 1
