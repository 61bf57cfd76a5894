"""Nodes that run a subgraph, and ONNX's loops."""

from __future__ import annotations

import pytest

from irc.alias import analyze
from irc.alias.rules import unknown_operators
from irc.ir import Builder, Graph, Value, parse_module, types
from irc.ir.kinds import GROUP, SUBGRAPHS
from tests.alias.helpers import Case

T = types.TENSOR


def group(graph: Graph, inputs: list[Value], kinds: list[str], results: list[int], of: str = GROUP) -> list[Value]:
    """A group of a chain of operators on its first input.

    ``results`` says which of the chain it returns; -1 is the input.
    """
    inner = Graph("fused")
    params = [inner.add_input(v.type) for v in inputs]
    chain = [params[0]]
    for kind in kinds:
        chain.append(Builder(inner).op(kind, chain[-1]))
    inner.set_outputs([chain[i + 1] for i in results])
    node = Builder(graph).node(of, inputs, [T] * len(results), attributes={"Subgraph": inner})
    return list(node.outputs)


def made() -> tuple[Graph, Value, Value]:
    graph = Graph()
    x = graph.add_input(T, "x")
    b = Builder(graph)
    return graph, b.op("aten::relu", x), b.op("aten::relu", x)


def test_a_pure_group_makes_fresh_memory() -> None:
    graph, a, b = made()
    p, q = group(graph, [a, b], ["aten::relu", "aten::neg"], [0, 1])
    graph.set_outputs([p, q])
    db = analyze(graph)
    for value in (a, b, graph.inputs[0]):
        assert not db.may_alias(p, value)
    assert not db.may_alias(p, q)
    assert not db.has_writers(a)


@pytest.mark.parametrize("kind", sorted(SUBGRAPHS))
def test_views_and_writes_inside_reach_outside(kind: str) -> None:
    graph, a, b = made()
    p, q = group(graph, [a, b], ["aten::t", "aten::relu_", "aten::neg"], [0, 2], kind)
    graph.set_outputs([p, q])
    db = analyze(graph)
    assert db.may_alias(p, a)
    assert not db.may_alias(q, a)
    assert db.has_writers(a)
    assert not db.has_writers(b)
    assert p.node is not None
    assert db.is_mutable(p.node)
    assert db.writes_to_alias(p.node, a)


def test_one_result_twice_is_one_memory() -> None:
    graph, a, _ = made()
    p, q = group(graph, [a], ["aten::relu"], [0, 0])
    r, s = group(graph, [a], ["aten::relu"], [0, -1])
    graph.set_outputs([p, q, r, s])
    db = analyze(graph)
    assert db.may_alias(p, q)
    assert not db.may_alias(p, r)
    assert db.may_alias(s, a)


def test_erasing_a_pure_group_leaves_no_trace() -> None:
    graph, a, b = made()
    (p,) = group(graph, [a, b], ["aten::relu"], [0])
    graph.set_outputs([a])
    db = analyze(graph)
    assert p.node is not None
    db.erase_node(p.node)
    p.node.erase()
    assert db.is_tight
    db.check()


def test_onnx_loop() -> None:
    c = Case(
        """
graph(%x : Float(2), %n : Long(), %c : Bool()):
  %a : Float(2) = onnx::Relu(%x)
  %b : Float(2) = onnx::Relu(%x)
  %o : Float(2), %p : Float(2), %s : Float("k", 2) = onnx::Loop(%n, %c, %a, %b)
    block0(%i : Long(), %k : Bool(), %u : Float(2), %v : Float(2)):
      %w : Float(2) = onnx::Neg(%u)
      -> (%k, %v, %w, %w)
  return (%o, %p, %s)
""".replace('"k"', "k")
    )
    assert c.alias("o", "a"), "no iteration"
    assert c.alias("o", "b"), "one iteration"
    assert c.alias("o", "w"), "two iterations"
    c.claims("p ~ w, p !~ a")
    assert not c.alias("k", "c"), "each iteration is given a condition of its own"
    for name in ("a", "b", "o", "p", "w"):
        assert not c.alias("s", name), "what is scanned is stacked into fresh memory"


def test_onnx_scan() -> None:
    c = Case("""
graph(%x : Float(3, 2)):
  %z : Float(2) = onnx::ReduceSum[keepdims=0](%x)
  %y : Float(3, 2) = onnx::Relu(%x)
  %f : Float(2), %r : Float(3, 2) = onnx::Scan[num_scan_inputs=1](%z, %y)
    block0(%s : Float(2), %e : Float(2)):
      %t : Float(2) = onnx::Add(%s, %e)
      -> (%e, %t)
  return (%f, %r)
""")
    assert c.alias("e", "y"), "a slice"
    assert c.alias("f", "y"), "the last slice"
    assert c.alias("f", "z"), "no iteration"
    c.claims("r !~ y, t !~ y")


@pytest.mark.parametrize(
    "kind", ["Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Split", "Expand"]
)
def test_onnx_operators_that_may_share(kind: str) -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("onnx::Relu", x)
    node = b.node(f"onnx::{kind}", [a, x], [T, T] if kind == "Split" else [T])
    db = analyze(graph)
    assert all(db.may_alias(v, a) for v in node.outputs)


@pytest.mark.parametrize("kind", ["Clip", "Cast", "Concat", "Sum", "Pad", "Einsum", "Gather", "Where"])
def test_all_others_do_not(kind: str) -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("onnx::Relu", x)
    out = b.op(f"onnx::{kind}", a)
    db = analyze(graph)
    assert not db.may_alias(out, a)
    assert not db.has_writers(a)


def test_variants_write_in_place() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("onnx::Relu", x)
    c = b.op("onnx::Add_", a, x)
    db = analyze(graph)
    assert db.may_alias(c, a)
    assert db.must_alias(c, a)
    assert db.has_writers(a)
    assert not db.has_writers(x)


def test_onnx_dropout_shares_only_its_first_result() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    out, mask = b.node("onnx::Dropout", [x], [T, T]).outputs
    db = analyze(graph)
    assert db.may_alias(out, x)
    assert not db.may_alias(mask, x)


def test_append_in_place() -> None:
    graph = Graph()
    cache, new = graph.add_input(T, "cache"), graph.add_input(T, "new")
    out = Builder(graph).op("irc::append_", cache, new)
    db = analyze(graph, noalias=[cache])
    assert db.may_alias(out, cache)
    assert db.has_writers(cache)
    assert not db.may_alias(out, new)
    assert not db.must_alias(out, cache), "it may have grown"


def test_what_is_unknown_in_a_group_is_unknown() -> None:
    graph, a, _ = made()
    (p,) = group(graph, [a], ["aten::relu", "no::such"], [1])
    graph.set_outputs(group(graph, [p], ["aten::neg", "none::such"], [1], "prim::TensorExprGroup"))
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
