"""Operators that others add: by a schema row, or by a rule of their own."""

from collections.abc import Iterator

import pytest

from irc.alias import AliasDb, analyze, register_rule
from irc.alias.recorder import Recorder
from irc.alias.rules.entry import Rule
from irc.errors import Error
from irc.ir import Block, Builder, Graph, ListType, Node, Value, types
from irc.ops import register as register_schema
from irc.ops import schema_of
from tests.operators import operator_of

T = types.TENSOR


def graph_of(kind: str, results: int = 1) -> tuple[AliasDb, Value, Value, Node]:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a, c = b.op("aten::relu", x), b.op("aten::relu", x)
    node = b.node(kind, [a, c], [T] * results)
    return analyze(graph), a, c, node


@pytest.mark.parametrize(
    "row",
    [
        "{}(Tensor x, Tensor(a!)? out=None) -> Tensor(a!)",
        "{}(Tensor x, Tensor(a)? out=None) -> Tensor(a)",
        "{}(Tensor x, Tensor(a!)? out=None, Tensor(b)? c=None) -> (Tensor(a!), Tensor(b)[])",
    ],
)
@pytest.mark.parametrize("given", ["nothing", "None", "a tensor"])
def test_an_optional_argument_that_is_absent_makes_fresh_memory(row: str, given: str) -> None:
    kind = f"third::out{len(row)}"
    register_schema(operator_of(row.format(kind)))
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("aten::relu", x)
    more = {"nothing": [], "None": [b.constant(None)], "a tensor": [a]}[given]
    results = [T, ListType(T)] if "[]" in row else [T]
    node = b.node(kind, [x, *more], results)
    out = node.outputs[0]
    view, other = b.op("aten::t", out), b.op("aten::t", out)
    graph.set_outputs([view, other])
    db = analyze(graph)
    assert db.may_alias(view, other), "both are views of what the node made"
    assert db.may_alias(out, a) == (given == "a tensor")
    assert db.has_writers(a) == (given == "a tensor" and "!" in row)
    assert not db.has_writers(x)
    if len(results) > 1:
        elements = [b.op("aten::__getitem__", node.outputs[1], b.constant(0)) for _ in range(2)]
        assert db.may_alias(*elements)
    if given == "None":
        none = more[0]
        none.replace_all_uses_with(a)
        db.replace_value(none, a)
        assert db.may_alias(view, a)
    db.check()


def test_a_row_added_later_counts_when_a_node_is_erased() -> None:
    register_schema(operator_of("third::grown(Tensor x, Tensor y) -> Tensor"))
    db, _, _, node = graph_of("third::grown")
    db.erase_node(node)
    assert db.is_tight
    register_schema(operator_of("third::grown.escape(Tensor(a -> *) x, Tensor y) -> Tensor"))
    db, _, _, node = graph_of("third::grown")
    db.erase_node(node)
    assert not db.is_tight


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("third::wrong(Tensor(a x) -> Tensor", "expected ')'"),
        ("third::wrong(Tensor x) -> Tensor(q)", "no argument has the alias set q\n  third::wrong(Tensor x)"),
        ("third::wrong(Tensor(a) x) -> Tensor(a|q)", "no argument has the alias set q"),
        ("third::wrong(Tensor(a) x) -> (Tensor(a), Tensor(q)[])", "no argument has the alias set q"),
        ("third::wrong(t(a)[] x, t(b -> q) y) -> ()", "no argument has the alias set q"),
    ],
)
def test_wrong_rows_are_refused_and_those_with_them(row: str, message: str) -> None:
    with pytest.raises(Error, match="IRC203") as caught:
        register_schema(operator_of("third::wrong(Tensor x, Tensor y) -> Tensor", row))
    assert message in caught.value.message
    db, a, _, node = graph_of("third::wrong")
    assert db.may_alias(node.output, a), "opaque, for nothing is known"


def _fails(rec: Recorder, node: Node) -> None:
    raise ValueError("boo")


def _fails_later(rec: Recorder, node: Node) -> Iterator[Block]:
    yield from ()
    raise ValueError("boo")


def _binds_none(rec: Recorder, node: Node) -> None:
    rec.bind(node.output, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (_fails, r"its alias rule, .*_fails, fails: ValueError: boo \(.*test_registration.py:\d+\)"),
        (_fails_later, r"its alias rule, .*_fails_later, fails: ValueError: boo \(.*test_registration.py:\d+\)"),
        (_binds_none, "an alias rule binds it to None, which is not an element"),
    ],
)
def test_rules_that_fail_are_blamed(rule: Rule, says: str) -> None:
    kind = f"third::{rule.__name__}"
    register_rule(kind, rule)
    with pytest.raises(Error, match=f"^IRC305: .*: {says}"):
        graph_of(kind)


def test_only_the_namespaces_of_the_standard_are_onnx() -> None:
    for kind in ("onnx::Unheard", "ai.onnx.ml::Unheard", "ai.onnx.preview.training::Unheard"):
        db, a, _, node = graph_of(kind)
        assert not db.may_alias(node.output, a), kind
    for kind in ("ai.onnx.contrib::Unheard", "ai.onnx.contrib::Unheard_", "ai.onnx::Unheard", "onnx.own::Unheard"):
        db, a, _, node = graph_of(kind)
        assert db.may_alias(node.output, a), kind
        assert db.has_side_effects(node), kind
    register_schema(operator_of("ai.onnx.contrib::Known(Tensor(a) x, Tensor y) -> Tensor(a)"))
    db, a, c, node = graph_of("ai.onnx.contrib::Known")
    assert db.may_alias(node.output, a) and not db.may_alias(node.output, c)
    assert schema_of(node) is not None


def test_functional_operators_with_blocks_are_opaque() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("aten::relu", x)
    node = b.node("onnx::Unheard", [a], [T])
    inner = Builder.at_end(node.add_block()).op("aten::relu_", a)
    inner.block.set_returns([inner])
    db = analyze(graph)
    assert db.may_alias(node.output, a)
    assert db.writes_to_alias(node, a)


def test_a_chain_that_nobody_told_of_is_analysed_without_a_deep_stack() -> None:
    graph = Graph()
    x = graph.add_input(T)
    b = Builder(graph)
    a = b.op("aten::relu", x)
    db = analyze(graph)
    value = a
    for _ in range(20_000):
        value = b.op("aten::t", value)
    assert db.may_alias(value, a)
    db.check()
