"""Passes keep how tensors lie in memory where something sees it."""

from __future__ import annotations

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.ir import parse_graph, parse_module
from irc.passes.layouts import Contiguity, Layouts
from irc.runtime.plan import lower
from tests.passes.helpers import kinds, run_passes

HEAD = """graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[3]]()
  %steps : int[] = prim::Constant[value=[2]]()
  %t : Tensor = aten::t(%x)
  %y : Tensor = aten::add(%t, %one, %one)
  %m : Tensor = aten::gt(%y, %two)
  %w : Tensor = aten::masked_fill_(%y, %m, %last)
"""


def graph(body: str):
    return parse_graph(HEAD + "".join(f"  {line}\n" for line in body.strip().splitlines()))


SEEN = {
    "stride": "%s : int[] = aten::stride(%y)\nreturn (%y)",
    "is_contiguous": "%s : bool = aten::is_contiguous(%y, %zero)\nreturn (%y)",
    "as_strided": "%s : Tensor = aten::as_strided(%y, %sizes, %steps, %none)\nreturn (%s)",
    "view": "%s : Tensor = aten::view(%y, %sizes)\nreturn (%s)",
    "of a view": "%v : Tensor = aten::select(%y, %zero, %one)\n%s : int[] = aten::stride(%v)\nreturn (%y)",
    "of a copy": "%c : Tensor = aten::clone(%y, %none)\n%s : int[] = aten::stride(%c)\nreturn (%y)",
    "of a result": "%c : Tensor = aten::mul(%y, %x)\n%d : Tensor = aten::neg(%c)\n%s : int[] = aten::stride(%d)\n"
    "return (%y)",
    "in a list": "%l : Tensor[] = prim::ListConstruct(%x, %y)\n%e : Tensor = aten::__getitem__(%l, %zero)\n"
    "%s : int[] = aten::stride(%e)\nreturn (%y)",
    "put into a list": "%l : Tensor[] = prim::ListConstruct()\n%a : Tensor[] = aten::append(%l, %y)\n"
    "%e : Tensor = aten::__getitem__(%l, %zero)\n%s : int[] = aten::stride(%e)\nreturn (%y)",
    "of a branch": "%q : bool = aten::is_complex(%x)\n%r : Tensor = prim::If(%q)\n  block0():\n    -> (%x)\n"
    "  block1():\n    %n : Tensor = aten::neg(%y)\n    -> (%n)\n%s : int[] = aten::stride(%r)\nreturn (%y)",
    "unknown code": "%s : Tensor = somebodys::operator(%y)\nreturn (%y)",
    "a copy that is written": "%f : Tensor = aten::flatten(%y, %zero, %last)\n"
    "%u : Tensor = aten::add_(%f, %one, %one)\nreturn (%y, %f)",
}
NOT_SEEN = {
    "a copy that nothing writes": "%f : Tensor = aten::flatten(%y, %zero, %last)\nreturn (%y, %f)",
    "another tensor": "%s : int[] = aten::stride(%x)\nreturn (%y)",
    "what is laid out anew": "%p : Tensor = aten::mm(%y, %y)\n%s : int[] = aten::stride(%p)\nreturn (%y)",
    "what is contiguous": "%p : Tensor = aten::clone(%y, %zero)\n%s : int[] = aten::stride(%p)\nreturn (%y)",
    "sizes": "%s : int[] = aten::size(%y)\nreturn (%y)",
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name):
    g = graph(SEEN[name])
    assert Layouts(g, analyze(g), {}).is_seen([g.value("y")])


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_is_not_seen(name):
    g = graph(NOT_SEEN[name])
    assert not Layouts(g, analyze(g), {}).is_seen([g.value("y")])
    run_passes(g, "remove-mutation")
    assert "masked_fill" in kinds(g) and "overwrite" not in kinds(g)


@pytest.mark.parametrize("caller", ["%s : int[] = aten::stride(%y)", "%s : Tensor = aten::neg(%y)"])
def test_functions_whose_callers_look(caller):
    module = parse_module(f"""
graph(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  {caller}
  return (%y)

{HEAD.replace("graph(", "graph f(")}  return (%y)
""")
    f = module.graphs["f"]
    assert Layouts(f, analyze(f, module), {}).is_seen([f.value("y")]) is ("stride" in caller)


CERTAIN = {
    "aten::clone(%y, %zero)": True,
    "aten::clone(%y, %none)": False,
    "aten::mm(%y, %y)": False,
    "aten::contiguous(%y, %zero)": True,
    "aten::add(%c, %two, %one)": True,
    "aten::add(%c, %c, %one)": True,
    "aten::add(%c, %y, %one)": False,
    "aten::t(%c)": False,
    "aten::flatten(%c, %zero, %last)": True,
    "aten::select(%c, %zero, %one)": True,
    "aten::select(%c, %one, %one)": False,
    "aten::slice(%c, %zero, %one, %none, %one)": True,
    "aten::slice(%c, %zero, %one, %none, %two)": False,
    "aten::zeros_like(%c, %none, %none, %none, %none, %none)": True,
    "aten::zeros_like(%y, %none, %none, %none, %none, %none)": False,
    "aten::zeros_like(%y, %none, %none, %none, %none, %zero)": True,
    "aten::relu_(%c)": True,
    "aten::tril(%y, %zero)": True,
}


@pytest.mark.parametrize("made", CERTAIN)
def test_what_is_certainly_contiguous(made):
    g = graph(f"%c : Tensor = aten::clone(%x, %zero)\n%v : Tensor = {made}\nreturn (%v)")
    assert Contiguity(lambda value: False).is_certain(g.value("v")) is CERTAIN[made]
    assert not Contiguity(lambda value: True).is_certain(g.value("v"))
    if CERTAIN[made]:
        (found,) = lower(g).run([np.asfortranarray(np.arange(9, dtype=np.float32).reshape(3, 3))])
        assert found.flags.c_contiguous


def test_contiguity_of_deep_chains_is_found_without_recursion():
    lines = "".join(f"%c{i + 1} : Tensor = aten::neg(%c{i})\n" for i in range(5000))
    g = graph(f"%c0 : Tensor = aten::clone(%x, %zero)\n{lines}return (%c5000)")
    assert Contiguity(lambda value: False).is_certain(g.value("c5000"))


@pytest.mark.covering(2)
@pytest.mark.parametrize("pipeline", ["constant-fold", "default", "remove-mutation,default"])
@pytest.mark.parametrize(
    "look",
    [
        "%s : int[] = aten::stride(%v)",
        "%s : bool = aten::is_contiguous(%v, %zero)",
        "%s : Tensor = aten::as_strided(%v, %sizes, %one_step, %none)",
        "%n : Tensor = aten::neg(%v)\n  %s : int[] = aten::stride(%n)",
        "%s : int = aten::storage_offset(%v)",
    ],
)
@pytest.mark.parametrize("view", ["aten::t(%c)", "aten::select(%c, %one, %one)", "aten::slice(%c, %zero, %one, %two)"])
def test_constants_that_are_looked_at_are_not_folded_into_others(view, look, pipeline):
    text = f"""
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[2]]()
  %one_step : int[] = prim::Constant[value=[1]]()
  %c : Float(3, 2) = prim::Constant[value=tensor([1., 2., 3., 4., 5., 6.])]()
  %v : Tensor = {view}
  {look}
  return (%s)
"""
    x = {"x": np.zeros(1, np.float32)}
    wanted = irc.compile(parse_module(text), passes="").run(x)["s"]
    found = irc.compile(parse_module(text), passes=pipeline).run(x)["s"]
    np.testing.assert_array_equal(found, wanted)


def test_tensors_with_gaps_are_not_written_instead_of_new_ones():
    text = """
graph(%x : Float(6), %s : Float(3)):
  %sizes : int[] = prim::Constant[value=[3]]()
  %steps : int[] = prim::Constant[value=[2]]()
  %none : NoneType = prim::Constant()
  %v : Tensor = aten::as_strided(%x, %sizes, %steps, %none)
  %a : Float(3) = aten::as_strided_scatter(%v, %s, %sizes, %steps, %none)
  %b : Float(3) = aten::neg(%a)
  %c : int[] = aten::stride(%b)
  return (%c, %b)
"""
    before, after = parse_graph(text), parse_graph(text)
    run_passes(after, "in-place")
    given = [np.arange(6, dtype=np.float32), np.ones(3, np.float32)]
    assert lower(after).run(given)[0] == lower(before).run(given)[0] == [1]
