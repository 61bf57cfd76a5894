"""Updates in place, one by one: what they change, what they leave alone, what they cost."""

import gc
import weakref

import pytest

from irc.alias import AliasDb, analyze
from irc.errors import Error
from irc.ir import Builder, Graph, Node, Value, types
from tests.alias.helpers import Case
from tests.graphs import ir

TEXT = ir("""
    x: Tensor -> va, la
    z: int = prim.Constant(value=0); a = relu(x); b = relu(x); va = t(a); vb = t(b)
    la: "Tensor[]" = prim.ListConstruct(a); w = relu_(vb); u = prim.grad(x)
""")


NONE_AT_LAST = ir("""
    x: Tensor; o: Tensor?; l: Any[] -> u, e
    z: int = prim.Constant(value=0); n: "Tensor?" = prim.Constant(); u = ones(n); e: Any = __getitem__(l, z)
    w = relu_(x)
""")


def test_retype_value_leaves_what_a_type_rules_out_until_it_is_tightened() -> None:
    c = Case(NONE_AT_LAST)
    assert c.alias("u", "x")
    c["n"].type = types.NONE
    with pytest.raises(Error, match="may_alias is True, but False after a rebuild"):
        c.db.check()
    c.db.retype_value(c["n"], types.OptionalType(types.TENSOR))
    assert c.alias("u", "x") and not c.db.is_tight
    c.db.check()
    c.db.tighten()
    assert not c.alias("u", "x")
    c.db.check()


def test_retype_value_has_nothing_to_do_for_shapes() -> None:
    c = Case(NONE_AT_LAST)
    before, c["x"].type = c["x"].type, types.tensor(types.DType.FLOAT, (2,))
    c.db.retype_value(c["x"], before)
    assert c.db.is_tight
    c.db.check()


def test_nothing_erased_is_referred_to() -> None:
    c = Case(TEXT)
    c.db.may_contain_alias(c.graph.inputs, c.graph.outputs)
    node = c.node("w")
    seen: list[weakref.ref[Node] | weakref.ref[Value]] = [weakref.ref(node), weakref.ref(node.output)]
    c.db.erase_node(node)
    node.erase()
    node, made = c.node("vb"), c["vb"]
    seen += [weakref.ref(node), weakref.ref(made)]
    c.db.erase_node(node)
    node.erase()
    del node, made
    gc.collect()
    assert [ref() for ref in seen] == [None] * 4


def test_check_finds_what_was_not_told() -> None:
    c = Case(TEXT)
    c.node("vb").replace_input(0, c["a"])
    with pytest.raises(Error, match="IRC340"):
        c.db.check()
    d = Case(TEXT)
    d.node("w").erase()
    with pytest.raises(Error, match="no longer in the graph"):
        d.db.check()


def test_check_compares_who_writes_between_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    c = Case(TEXT)
    c.db.check()
    assert c.db.writers(c["w"])
    monkeypatch.setattr(c.db, "writers", lambda values: [])
    with pytest.raises(Error, match="writes_between is False, but True after a rebuild"):
        c.db.check()


def test_check_sees_writers_moved_past_each_other_without_asking() -> None:
    c = Case(ir("x: Tensor", "a = neg(x); v = relu_(a); w = sigmoid_(a)", "a"))
    assert c.db.writes_between(c["a"], c.node("a"), c.node("w"))
    c.db.check()
    assert not c.db.move_before(c.node("w"), c.node("v"))
    c.node("w").move_before(c.node("v"))
    with pytest.raises(Error, match="moved past each other"):
        c.db.check()


def test_rewrite_checks_when_it_closes() -> None:
    c = Case(TEXT)
    c.db.check_rewrites = True
    with c.db.rewrite():
        c.replace("a", "b")
    with pytest.raises(Error, match="IRC340"), c.db.rewrite():
        c.node("va").replace_input(0, c["x"])


BRANCHES = ir("""
    x: Tensor; c: bool -> stored
    z: int = prim.Constant(value=0); a = relu(x); b = relu(x); other = relu(x); la: "Tensor[]" = prim.ListConstruct(a)
    lb: "Tensor[]" = prim.ListConstruct(b); either = a if c else b; list: "Tensor[]" = la if c else lb; v = t(either)
    stored: "Tensor[]" = append(list, v); w = relu_(v)
""")


def _take_first(c: Case, output: str) -> None:
    """The If becomes its first block."""
    node = c.node(output)
    new = node.blocks[0].returns[0]
    node.output.replace_all_uses_with(new)
    c.db.replace_value(node.output, new)
    c.db.erase_node(node)
    node.erase()


def test_branches_that_give_nothing_are_taken_in_a_rewrite() -> None:
    c = Case("""
        x: Tensor; c: bool -> l
        none: NoneType = prim.Constant(); a = relu(x); maybe: "Tensor?" = none if c else a
        l: "Tensor?[]" = prim.ListConstruct(maybe); w = relu_(a)
    """)
    before = c.db.solves + c.db.regions
    with c.db.rewrite():
        _take_first(c, "maybe")
        assert c.db.solves + c.db.regions == before
        assert c.contain("l", "a")
    assert not c.contain("l", "a")
    c.db.check()
    with c.db.rewrite():
        c.replace("none", "x")
    assert c.contain("l", "x")
    c.db.check()


def test_a_rewrite_that_fails_leaves_a_superset() -> None:
    c = Case(BRANCHES)

    def fail() -> None:
        with c.db.rewrite():
            _take_first(c, "either")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not c.db.is_tight
    assert c.written("a")
    c.db.check()
    c.db.tighten()
    assert not c.written("b")
    c.db.check()


def views_of_many(n: int) -> tuple[Graph, AliasDb, list[Value]]:
    """A graph of n tensors with two views each."""
    graph = Graph()
    x = graph.add_input(types.TENSOR)
    b = Builder(graph)
    made = [b.op("aten::relu", x) for _ in range(n)]
    graph.set_outputs([b.op("aten::t", b.op("aten::t", v)) for v in made])
    db = analyze(graph)
    for value in graph.outputs:
        db.may_alias(value, x)
    return graph, db, made


def test_updates_cost_what_they_affect() -> None:
    """Counted, not timed: the same update touches as many elements in a small and in a large graph."""
    grown: list[list[int]] = []
    for n in (10, 1000):
        _, db, made = views_of_many(n)
        steps: list[int] = []
        for value in made[:3]:
            before = db.counters()
            db.set_wildcard(value)
            after = db.counters()
            steps.append(after["grown"] - before["grown"])
            assert after["solves"] == before["solves"]
        grown.append(steps)
    assert grown[0] == grown[1]


def test_erased_elements_do_not_pile_up() -> None:
    """What a view's coming and going leaves behind is found by nobody: later updates take no longer."""
    c = Case(TEXT)
    c.db.set_wildcard(c["b"])  # an update for which it is looked up what points to what
    counts: list[int] = []
    for _ in range(20):
        node = Builder.before(c.node("w")).node("aten::t", [c["a"]], [types.TENSOR])
        c.db.add_node(node)
        c.db.may_alias(node.output, c["a"])
        c.db.erase_node(node)
        node.erase()
        facts = c.db.facts
        counts.append(len(facts.sites) + len(facts.sources_of(facts.elements[c["a"]])) + c.db.counters()["known"])
    assert len(set(counts)) == 1, counts
    c.db.check()


def test_erased_loops_are_not_referred_to_while_there_are_traces() -> None:
    c = Case("""
        x: Tensor; n: int -> l
        a = relu(x); l: "Tensor[]" = prim.ListConstruct(); r: "Tensor[]" = prim.Loop(n, True, l)
        with block(i=int, u="Tensor[]"): s: "Tensor[]" = append(u, a); yield True, u
    """)
    loop, inner = c.node("r"), c.node("s")
    seen: list[weakref.ref[Node] | weakref.ref[Value]] = [weakref.ref(n) for n in (loop, inner)]
    seen += [weakref.ref(v) for v in (*loop.outputs, *loop.blocks[0].params, inner.output)]
    c.db.erase_node(inner)
    inner.erase()
    c.db.erase_node(loop)
    loop.erase()
    del loop, inner
    gc.collect()
    assert [ref() for ref in seen] == [None] * len(seen)
    assert c.contain("l", "a")
    c.db.tighten()
    assert not c.contain("l", "a")
    assert c.db.solves == 1
    c.db.check()


def test_what_is_stored_after_a_list_was_declared_unknown_is_as_if_stored_before() -> None:
    c = Case("""
        x: Tensor -> e
        k: "Tensor[]" = prim.ListConstruct(neg(x)); l: "Any[]" = prim.ListConstruct(k)
        z: int = prim.Constant(value=0); e = __getitem__(k, z)
    """)
    c.db.set_wildcard(c["l"])
    c.db.add_node(Builder(c.graph).node("aten::append", [c["l"], c["l"]], [c["l"].type]))
    c.db.add_node(Builder(c.graph).node("aten::__getitem__", [c["l"], c["z"]], [types.ANY]))
    assert not c.db.may_alias(c["k"], c["e"])
    c.db.check()
