"""Calls of functions: each by itself, as if the function had been inlined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import analyze
from irc.ir import Builder, Graph, Module, parse_module, types
from tests.alias.helpers import Case, nested
from tests.alias.programs import TENSOR, choices, program
from tests.effort import examples
from tests.passes.helpers import cases

CLAIMS = """
== views and fresh results: each call allocates its own | v ~ a, v !~ b, f !~ a, f !~ g, a !written
x: Tensor -> v, f, g
view: Function = prim.Constant(name="view"); fresh: Function = prim.Constant(name="fresh"); a = relu(x); b = relu(x)
v = prim.CallFunction(view, a); f = prim.CallFunction(fresh, a); g = prim.CallFunction(fresh, a)

view | x: Tensor -> y
y = t(x)

fresh | x: Tensor -> y
v = t(x); y = relu(v)

== functions that call each other | r ~ a, r ~ b, a written, b written, r !~ f
x: Tensor -> r, f
even: Function = prim.Constant(name="even"); a = relu(x); b = relu(x); r = prim.CallFunction(even, 3, a, b)
f = neg(x)

even | n: int; x, y: Tensor -> r
odd: Function = prim.Constant(name="odd"); r = prim.If(True)
with block(): c = prim.CallFunction(odd, n, y, x); yield c
with block(): yield x

odd | n: int; x, y: Tensor -> r
even: Function = prim.Constant(name="even"); w = relu_(x); r = prim.CallFunction(even, n, x, y)

== memory that callers can tell apart stays apart | a !~ b, a !~ c, b ~ c, l has c, l !has b, c written, a !written
graph(%x : Tensor, %l : Tensor[]):
  %f : Function = prim::Constant[name="f"]()
  %a : Tensor, %b : Tensor, %c : Tensor = prim::CallFunction(%f, %x, %l)
  %w : Tensor = aten::relu_(%b)
  return (%a, %b, %c)
graph f(%x : Tensor, %l : Tensor[]):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %d : Tensor = aten::relu(%x)
  %c : Tensor = prim::If(True)
    block0():
      -> (%b)
    block1():
      -> (%d)
  %s : Tensor[] = aten::append(%l, %d)
  return (%a, %b, %c)

== loading what is stored, through one parameter, is not storing it | y ~ x
x: Tensor; l: Tensor[] -> y
f: Function = prim.Constant(name="f"); y = prim.CallFunction(f, l)

f | l: Tensor[] -> e
f: Function = prim.Constant(name="f"); s: "Tensor[]" = append(l, prim.CallFunction(f, l)); e = __getitem__(l, 0)

== functions that call each other in groups are a cycle | x written
graph(%x : Tensor):
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
graph f(%x : Tensor):
  %v : Tensor = aten::relu_(%x)
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
  %g : Function = prim::Constant[name="g"]()
  %y : Tensor = prim::CallFunction(%g, %x)
  return (%y)
graph g(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)

== a constant of a function is one memory in all calls | a ~ b, a ~ c, b ~ c, p !~ q, a !~ p
x: Float(2, 3) -> a, b, c, p, q
f: Function = prim.Constant(name="f"); g: Function = prim.Constant(name="g")
a[Float(2, 3)], p[Float(2, 3)] = prim.CallFunction(f, x); b[Float(2, 3)], q[Float(2, 3)] = prim.CallFunction(f, x)
c: Float(2, 3) = prim.CallFunction(g, x)

f | x: Float(2, 3) -> k, y
k: Float(2, 3) = prim.Constant(value=splat(-2.)); y: Float(2, 3) = relu(x)

g | x: Float(2, 3) -> k
f: Function = prim.Constant(name="f"); k[Float(2, 3)], y[Float(2, 3)] = prim.CallFunction(f, x)
"""


@pytest.mark.parametrize(("text", "claims"), cases(CLAIMS))
def test_what_callers_know(text: str, claims: str) -> None:
    c = Case(text + "\n")
    c.claims(claims)
    assert not any(c.db.has_side_effects(node) for node in c.graph.nodes)
    if "splat" in text:
        assert "constant %k in f" in " ".join(map(str, c.db.locations(c["c"])))
    c.db.check()


@pytest.mark.parametrize("name", ["nobody", None])
def test_functions_that_are_not_known_are_opaque(name: str | None) -> None:
    graph = Graph()
    b = Builder(graph)
    a, other = (b.op("aten::relu", value) for value in [graph.add_input(TENSOR)] * 2)
    function = b.op("prim::Constant", type=types.FUNCTION, attributes={} if name is None else {"name": name})
    call = b.node("prim::CallFunction", [function, a], [TENSOR])
    db = analyze(graph)
    assert db.has_side_effects(call)
    assert db.has_writers(a)
    assert db.may_alias(call.output, a)
    assert not db.may_alias(call.output, other)


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
