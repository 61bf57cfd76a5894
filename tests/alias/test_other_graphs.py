"""Queries about another graph's nodes are refused: that nothing is known of them is not that they do nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import irc
from irc.alias import AliasDb, analyze
from irc.errors import Error
from irc.ir import Graph, Module, Node, Value, parse_graph, parse_module
from irc.ir.types import TENSOR
from tests.graphs import ir, ir_graph

TEXT = ir("x: Tensor", "r = relu(x); w = add_(r, x); s = t(r)", "s")
PURE = ir("x: Tensor", "r = relu(x); w = t(r); s = t(r)", "s")


def node(graph: Graph, name: str) -> Node:
    found = graph.value(name).node
    assert found is not None
    return found


QUERIES: dict[str, Callable[[AliasDb, Node, Node], object]] = {
    "writes": lambda db, own, other: db.writes(other),
    "reads": lambda db, own, other: db.reads(other),
    "is_mutable": lambda db, own, other: db.is_mutable(other),
    "has_writers": lambda db, own, other: db.has_writers(other),
    "has_side_effects": lambda db, own, other: db.has_side_effects(other),
    "is_random": lambda db, own, other: db.is_random(other),
    "writes_to_alias": lambda db, own, other: db.writes_to_alias(other, own.outputs),
    "writes_to_wildcard": lambda db, own, other: db.writes_to_wildcard(other),
    "touches_written": lambda db, own, other: db.touches_written(other),
    "writes_between, the first": lambda db, own, other: db.writes_between(own.outputs, other, own),
    "writes_between, the last": lambda db, own, other: db.writes_between(own.outputs, own, other),
    "writes_between, both": lambda db, own, other: db.writes_between(own.outputs, other, other),
    "can_move_before": lambda db, own, other: db.can_move_before(other, own),
    "can_move_after": lambda db, own, other: db.can_move_after(own, other),
    "can_move_after, both": lambda db, own, other: db.can_move_after(other, other),
    "move_before": lambda db, own, other: db.move_before(other, own),
    "move_before, to the last": lambda db, own, other: db.move_before(own, own, last=other),
    "move_after": lambda db, own, other: db.move_after(own, other),
}


@pytest.mark.parametrize("text", [TEXT, PURE], ids=["writes", "pure"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_nodes_of_another_graph_are_refused(query: Callable[[AliasDb, Node, Node], object], text: str) -> None:
    graph, other = parse_graph(text), parse_graph(text)
    db = analyze(graph)
    own = node(graph, "w")
    query(db, own, own)
    before = str(graph), str(other)
    with pytest.raises(Error, match=r"IRC343: %w = aten::\w+: .*another graph"):
        query(db, own, node(other, "w"))
    assert (str(graph), str(other)) == before


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("name", ["w", "i"])
def test_what_stands_in_no_graph_is_refused(query: Callable[[AliasDb, Node, Node], object], name: str) -> None:
    graph = ir_graph("""
        x: Tensor; c: bool -> n
        r = relu(x); w = prim.If(c)
        with block(): i = relu_(r); yield i
        with block(): yield x
        s = neg_(r); n = neg(x)
    """)
    db = analyze(graph)
    own, gone, erased = node(graph, "s"), node(graph, name), node(graph, "w")
    db.erase_node(erased)
    erased.erase()
    with pytest.raises(Error, match=r"IRC343: .*in no graph"):
        query(db, own, gone)
    for value in gone.outputs:
        with pytest.raises(Error, match=f"IRC343: %{name}: .*in no graph"):
            db.may_alias(value, own.output)
    db.check()
    created = graph.create("aten::neg_", [graph.value("r")], [TENSOR])
    with pytest.raises(Error, match=r"IRC343: .*not inserted yet"):
        query(db, own, created)
    created.insert_before(own)
    db.add_node(created)
    query(db, own, created)
    db.check()


OF_VALUES: dict[str, Callable[[AliasDb, Node, Any], object]] = {
    "has_writers": lambda db, own, values: db.has_writers(values),
    "has_writers, contained=False": lambda db, own, values: db.has_writers(values, contained=False),
    "writers": lambda db, own, values: db.writers(values),
    "writes_to_alias": lambda db, own, values: db.writes_to_alias(own, values),
    "writes_between": lambda db, own, values: db.writes_between(values, own, own),
    "may_alias": lambda db, own, values: db.may_alias(values, values),
    "may_contain_alias": lambda db, own, values: db.may_contain_alias(own.outputs, values),
    "escapes": lambda db, own, values: db.escapes(values),
    "may_be_known": lambda db, own, values: db.may_be_known(values),
    "locations": lambda db, own, values: db.locations(values),
    "safe_to_change_aliasing": lambda db, own, values: db.safe_to_change_aliasing(values, values),
}


@pytest.mark.parametrize("text", [TEXT, PURE], ids=["writes", "pure"])
@pytest.mark.parametrize("query", OF_VALUES.values(), ids=OF_VALUES)
def test_what_is_no_value_of_the_graph_is_refused(query: Callable[[AliasDb, Node, Any], object], text: str) -> None:
    graph, other = parse_graph(text), parse_graph(text)
    db = analyze(graph)
    for own in graph.nodes:
        query(db, own, own.outputs)
        for wrong in ("r", None, 7):
            with pytest.raises(TypeError):
                query(db, own, wrong)
        for foreign in (other.value("r"), [own.output, other.inputs[0]]):
            with pytest.raises(Error, match=r"IRC343: %[rx]: .*another graph"):
                query(db, own, foreign)


UPDATES: dict[str, Callable[[AliasDb, Value, Any], None]] = {
    "create_value": lambda db, own, value: db.create_value(value),
    "copy_value, the source": lambda db, own, value: db.copy_value(value, own),
    "copy_value, the target": lambda db, own, value: db.copy_value(own, value),
    "rehome_value": lambda db, own, value: db.rehome_value(value),
    "set_wildcard": lambda db, own, value: db.set_wildcard(value),
    "replace_value, the old": lambda db, own, value: db.replace_value(value, own),
    "replace_value, the new": lambda db, own, value: db.replace_value(own, value),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_updates_refuse_what_is_no_value_of_the_graph(update: Callable[[AliasDb, Value, Any], None]) -> None:
    """As if it were told of a value that nothing was known of, the database would answer as before."""
    graph, other = parse_graph(TEXT), parse_graph(TEXT)
    db = analyze(graph)
    own = graph.value("s")
    created = graph.create("aten::neg", [own], [TENSOR]).output
    for foreign in (other.value("r"), other.inputs[0]):
        with pytest.raises(Error, match=r"IRC343: %[rx]: .*another graph"):
            update(db, own, foreign)
    with pytest.raises(Error, match=r"IRC343: .*not inserted yet"):
        update(db, own, created)
    for wrong in ([own], "x", None):
        with pytest.raises(TypeError, match=f"updates take one value at a time, not {re.escape(repr(wrong))}"):
            update(db, own, wrong)
    db.check()
    assert db.known_values() == analyze(graph).known_values()


def test_a_node_is_told_once_it_is_inserted() -> None:
    graph = parse_graph(PURE)
    db = analyze(graph)
    created = graph.create("aten::neg_", [graph.value("r")], [TENSOR])
    with pytest.raises(Error, match=r"IRC343: .*not inserted yet"):
        db.add_node(created)
    db.check()
    assert not db.has_writers(graph.value("r"))


def test_nodes_inside_a_group_are_refused() -> None:
    text = "graph(%x : Float(4)):\n  %a : Float(4) = onnx::Relu(%x)\n  %b : Float(4) = onnx::Neg(%a)\n  return (%b)\n"
    graph = irc.compile(Module(parse_graph(text))).module.main
    group = next(n for n in graph.nodes if "Subgraph" in n.attributes)
    inside = group.attributes["Subgraph"]
    assert isinstance(inside, Graph)
    db = analyze(graph)
    assert db.writes(group) == frozenset()
    with pytest.raises(Error, match="IRC343"):
        db.writes(next(iter(inside.nodes)))


def test_what_is_no_graph_is_refused() -> None:
    module = parse_module("graph(%x : Tensor):\n  return (%x)")
    with pytest.raises(TypeError, match=r"not a Module; give module\.main"):
        analyze(module)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Graph is analysed, not a str"):
        analyze("graph")  # type: ignore[arg-type]
    assert analyze(module.main).graph is module.main
