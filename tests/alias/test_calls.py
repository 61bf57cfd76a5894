"""Calls of functions: each by itself, as if the function had been inlined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Module, Value, parse_module, types
from irc.ir.builder import Builder
from tests.alias.helpers import nested
from tests.alias.programs import TENSOR, choices, program
from tests.effort import examples

FUNCTIONS = """
graph view(%x : Tensor):
  %y : Tensor = aten::t(%x)
  return (%y)

graph fresh(%x : Tensor):
  %v : Tensor = aten::t(%x)
  %y : Tensor = aten::relu(%v)
  return (%y)

graph even(%n : int, %x : Tensor, %y : Tensor):
  %odd : Function = prim::Constant[name="odd"]()
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::If(%t)
    block0():
      %c : Tensor = prim::CallFunction(%odd, %n, %y, %x)
      -> (%c)
    block1():
      -> (%x)
  return (%r)

graph odd(%n : int, %x : Tensor, %y : Tensor):
  %even : Function = prim::Constant[name="even"]()
  %w : Tensor = aten::relu_(%x)
  %r : Tensor = prim::CallFunction(%even, %n, %x, %y)
  return (%r)
"""


class Calls:
    """A main graph with inputs x, y; ``call`` adds calls to it; then the first query analyses it."""

    def __init__(self) -> None:
        self.module: Module = parse_module("graph main():\n  return ()\n" + FUNCTIONS)
        self.graph = self.module.main
        self.x = self.graph.add_input(TENSOR, "x")
        self.b = Builder(self.graph)
        self.a = self.b.op("aten::relu", self.x)
        self.c = self.b.op("aten::relu", self.x)
        self._db: AliasDb | None = None

    def call(self, name: str, *arguments: Value, results: tuple[types.Type, ...] = (TENSOR,)) -> tuple[Value, ...]:
        function = self.b.op("prim::Constant", type=types.FUNCTION, attributes={"name": name})
        return self.b.node("prim::CallFunction", [function, *arguments], results).outputs

    @property
    def db(self) -> AliasDb:
        self._db = self._db or analyze(self.graph)
        return self._db


def test_views_and_fresh_results() -> None:
    k = Calls()
    (v,) = k.call("view", k.a)
    (f,) = k.call("fresh", k.a)
    (g,) = k.call("fresh", k.a)
    assert k.db.may_alias(v, k.a)
    assert not k.db.may_alias(v, k.c)
    assert not k.db.may_alias(f, k.a)
    assert not k.db.may_alias(f, g), "each call allocates its own"
    assert not k.db.has_writers(k.a)
    assert f.node is not None
    assert not k.db.has_side_effects(f.node)


def test_functions_that_call_each_other() -> None:
    k = Calls()
    n = k.b.constant(3)
    (r,) = k.call("even", n, k.a, k.c)
    fresh = k.b.op("aten::neg", k.x)
    assert k.db.may_alias(r, k.a)
    assert k.db.may_alias(r, k.c)
    assert k.db.has_writers(k.c)
    assert k.db.has_writers(k.a)
    assert not k.db.may_alias(r, fresh)


@pytest.mark.parametrize("name", ["nobody", None])
def test_functions_that_are_not_known_are_opaque(name: str | None) -> None:
    k = Calls()
    function = k.b.op("prim::Constant", type=types.FUNCTION, attributes={} if name is None else {"name": name})
    call = k.b.node("prim::CallFunction", [function, k.a], [TENSOR])
    assert k.db.has_side_effects(call)
    assert k.db.has_writers(k.a)
    assert k.db.may_alias(call.output, k.a)
    assert not k.db.may_alias(call.output, k.c)


def doubling(depth: int, kind: str) -> Module:
    """``f0`` calls nothing; each other function calls the one before it twice."""
    parts = ["graph main(%x : Tensor):", f'  %f : Function = prim::Constant[name="f{depth}"]()']
    result = {"tensor": "Tensor", "list": "Tensor[]"}[kind]
    parts += [f"  %r : {result} = prim::CallFunction(%f, %x)", "  return (%r)"]
    for i in range(depth + 1):
        parts.append(f"\ngraph f{i}(%x : Tensor):")
        if i == 0:
            parts.append("  %r : Tensor = aten::relu(%x)")
            if kind == "list":
                parts.append("  %l : Tensor[] = prim::ListConstruct(%r)")
        else:
            parts.append(f'  %f : Function = prim::Constant[name="f{i - 1}"]()')
            parts += [f"  %{v} : {result} = prim::CallFunction(%f, %x)" for v in "ab"]
            parts.append(
                "  %r : Tensor = aten::mul(%a, %b)" if kind == "tensor" else "  %l : Tensor[] = aten::add(%a, %b)"
            )
        parts.append("  return (%r)" if kind == "tensor" else "  return (%l)")
    return parse_module("\n".join(parts))


@pytest.mark.parametrize("kind", ["tensor", "list"])
def test_thirty_functions_that_double_each_other(kind: str) -> None:
    """2**30 calls: summaries stay small, and beyond a limit a function is opaque."""
    module = doubling(30, kind)
    db = analyze(module.main)
    (result,) = module.main.outputs
    assert db.counters()["elements"] < 10_000
    if kind == "tensor":
        assert not db.may_alias(result, module.main.inputs[0])


def test_what_functions_hand_on_takes_one_element_however_many_hands() -> None:
    """Longer than the limit on the elements of a summary: what only hands on adds none."""
    module = parse_module("\n".join(nested("chain", 1100)))
    x, (y,) = module.main.inputs[0], module.main.outputs
    db = analyze(module.main)
    assert not db.may_alias(x, y)
    assert not db.has_writers(x)
    (location,) = db.locations(y)
    assert len(location.path) == 1100, "the calls that led to it"
    assert db.counters()["elements"] < 50


@pytest.mark.parametrize("shape", ["join", "ring", "tree"])
def test_memory_that_callers_cannot_tell_apart_is_one(shape: str) -> None:
    module = parse_module("\n".join(nested(shape, 1100)))
    x, (y,) = module.main.inputs[0], module.main.outputs
    db = analyze(module.main)
    assert db.may_alias(x, y) == (shape == "join")
    assert not db.has_side_effects(y.node), "as it would be if the functions were opaque"
    assert db.counters()["elements"] < 50


def test_memory_that_callers_can_tell_apart_stays_apart() -> None:
    text = """
graph main(%x : Tensor, %l : Tensor[]):
  %f : Function = prim::Constant[name="f"]()
  %a : Tensor, %b : Tensor, %c : Tensor = prim::CallFunction(%f, %x, %l)
  %w : Tensor = aten::relu_(%b)
  return (%a, %b, %c)

graph f(%x : Tensor, %l : Tensor[]):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %d : Tensor = aten::relu(%x)
  %t : bool = prim::Constant[value=1]()
  %c : Tensor = prim::If(%t)
    block0():
      -> (%b)
    block1():
      -> (%d)
  %s : Tensor[] = aten::append(%l, %d)
  return (%a, %b, %c)
"""
    module = parse_module(text)
    a, b, c = module.main.outputs
    db = analyze(module.main)
    assert not db.may_alias(a, b)
    assert not db.may_alias(a, c)
    assert db.may_alias(b, c)
    held = module.main.inputs[1]
    assert db.may_contain_alias(held, c)
    assert not db.may_contain_alias(held, b)
    assert db.has_writers(c)
    assert not db.has_writers(a)


def test_loading_what_is_stored_is_not_storing_it() -> None:
    """A load and a store of one element, through one parameter."""
    text = """
graph main(%x : Tensor, %l : Tensor[]):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %l)
  return (%y)

graph f(%l : Tensor[]):
  %f : Function = prim::Constant[name="f"]()
  %u : Tensor = prim::CallFunction(%f, %l)
  %s : Tensor[] = aten::append(%l, %u)
  %z : int = prim::Constant[value=0]()
  %e : Tensor = aten::__getitem__(%l, %z)
  return (%e)
"""
    main = parse_module(text).main
    assert analyze(main).may_alias(main.outputs[0], main.inputs[0])


@given(choices, st.integers(1, 3))
@examples(80)
def test_a_call_is_the_function_inlined(numbers: list[int], depth: int) -> None:
    """The same program, once as the main graph and once called by it, or through others that do nothing else."""
    direct = program(numbers)
    module = Module()
    graph = program(numbers)
    for i in range(depth):
        graph.name, graph.module = f"f{i}", module
        module.graphs[f"f{i}"] = graph
        graph = Graph() if i + 1 < depth else module.main
        inputs = [graph.add_input(v.type, v.name) for v in direct.inputs]
        b = Builder(graph)
        constant = b.op("prim::Constant", type=types.FUNCTION, attributes={"name": f"f{i}"})
        call = b.node("prim::CallFunction", [constant, *inputs], [v.type for v in direct.outputs])
        graph.set_outputs(call.outputs)
    expected, found = analyze(direct), analyze(graph)
    outside = [*direct.inputs, *direct.outputs], [*graph.inputs, *graph.outputs]
    for a, x in zip(*outside):
        assert expected.has_writers(a) == found.has_writers(x), (str(direct), a)
        for b_, y in zip(*outside):
            assert expected.may_alias(a, b_) == found.may_alias(x, y), (str(direct), a, b_)
            assert expected.may_contain_alias(a, b_) == found.may_contain_alias(x, y), (str(direct), a, b_)


def test_functions_that_call_each_other_in_groups_are_a_cycle() -> None:
    grouped = """
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
"""
    call = """
  %f : Function = prim::Constant[name="{}"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
"""
    module = parse_module(
        f"graph(%x : Tensor):{grouped}{call.format('f')}"
        f"graph f(%x : Tensor):\n  %v : Tensor = aten::relu_(%x){grouped}{call.format('g')}"
        f"graph g(%x : Tensor):{call.format('f')}"
    )
    db = analyze(module.main)
    assert db.has_writers(module.main.value("x"))


def test_a_constant_of_a_function_is_one_memory_in_all_calls() -> None:
    module = parse_module("""
graph(%x : Float(2, 3)):
  %f : Function = prim::Constant[name="f"]()
  %g : Function = prim::Constant[name="g"]()
  %a : Float(2, 3), %p : Float(2, 3) = prim::CallFunction(%f, %x)
  %b : Float(2, 3), %q : Float(2, 3) = prim::CallFunction(%f, %x)
  %c : Float(2, 3) = prim::CallFunction(%g, %x)
  return (%a, %b, %c, %p, %q)

graph f(%x : Float(2, 3)):
  %k : Float(2, 3) = prim::Constant[value=splat(-2.)]()
  %y : Float(2, 3) = aten::relu(%x)
  return (%k, %y)

graph g(%x : Float(2, 3)):
  %f : Function = prim::Constant[name="f"]()
  %k : Float(2, 3), %y : Float(2, 3) = prim::CallFunction(%f, %x)
  return (%k)
""")
    graph = module.main
    db = analyze(graph)
    a, b, c, p, q = map(graph.value, "abcpq")
    assert db.may_alias(a, b) and db.may_alias(a, c) and db.may_alias(b, c)
    assert not db.may_alias(p, q) and not db.may_alias(a, p)
    assert "constant %k in f" in " ".join(map(str, db.locations(c)))
    db.check()
