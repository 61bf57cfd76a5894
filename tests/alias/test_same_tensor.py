"""Which values certainly are one tensor, which certainly share memory, and who changes metadata."""

import pytest

from irc.ir import Builder, Graph, types
from irc.ops import record, records
from irc.ops.record import Change
from tests.alias.helpers import Case


def relations(c: Case, pairs: str) -> dict[str, str]:
    """``"a b"`` -> ``same``, ``must`` or ``may``, whichever is the most that is certain; both ways around."""
    found: dict[str, str] = {}
    for pair in pairs.split(", "):
        a, b = (c[name] for name in pair.split())
        assert c.db.same_tensor(a, b) == c.db.same_tensor(b, a)
        assert c.db.must_alias(a, b) == c.db.must_alias(b, a)
        assert not c.db.same_tensor(a, b) or c.db.must_alias(a, b)
        assert not c.db.must_alias(a, b) or c.db.may_alias(a, b)
        found[pair] = "same" if c.db.same_tensor(a, b) else "must" if c.db.must_alias(a, b) else "may"
    return found


def test_a_tensor_is_itself_its_views_are_others() -> None:
    c = Case("""
        x: Tensor; n: int -> r
        v = t(x); w = t(x); p = positive(v); r = relu_(p); d = detach(x); c = contiguous(x, 0)
        pair: "(Tensor, Tensor)" = prim.TupleConstruct(x, v); a, b = prim.TupleUnpack(pair)
        i = prim.TupleIndex(pair, 0); o = Identity(d)
    """)
    assert relations(c, "x x, v p, v r, p r, a x, b r, i a, d o, v w, x v, d x, w r, c x, n n") == {
        **dict.fromkeys("x x, v p, v r, p r, a x, b r, i a, d o".split(", "), "same"),
        **dict.fromkeys("v w, x v, d x, w r".split(", "), "must"),
        **dict.fromkeys(["c x", "n n"], "may"),
    }


@pytest.mark.parametrize(
    ("made", "certain"),
    [
        ("aten::select(%a, 0, %k)", True),
        ("aten::slice(%a, 0, 0, 2, 1)", True),
        ("aten::slice(%a, 0, None, None, 2)", True),
        ("aten::slice(%a, 0, -1, None, 1)", True),
        ("aten::slice(%a, 0, 1, 2, 1)", False),
        ("aten::slice(%a, 0, 0, %k, 1)", False),
        ("aten::slice(%a, 0, 0, -1, 1)", False),
        ("aten::slice(%a, 0, %k)", False),
        ("aten::slice(%a)", True),
        ("aten::narrow(%a, 0, %k, 1)", True),
        ("aten::narrow(%a, 0, 0, %k)", False),
        ("aten::narrow(%a, 0, 0, 0)", False),
        ("aten::unfold(%a, 0, 2, 1)", True),
        ("aten::unfold(%a, 0, 0, 1)", False),
        ("aten::diagonal(%a)", True),
        ("aten::diagonal(%a, 2)", False),
        ("aten::expand(%a, %sizes)", True),
        ("aten::expand(%a, %empty)", False),
        ("aten::expand(%a, %some)", False),
        ("aten::broadcast_to(%a, %sizes)", True),
        ("aten::expand_as(%a, %x)", False),
        ("aten::as_strided(%a, %sizes, %sizes, 0)", False),
        ("aten::unsqueeze(%a, 0)", True),
        ("aten::view(%a, %some)", True),
    ],
)
def test_results_that_may_be_empty_though_the_operand_is_not(made: str, certain: bool) -> None:
    c = Case(f"""
graph(%x : Tensor, %k : int):
  %sizes : int[] = prim::ListConstruct(-1, 2)
  %empty : int[] = prim::ListConstruct(0, 2)
  %some : int[] = prim::ListConstruct(%k, 2)
  %a : Tensor = aten::neg(%x)
  %r : Tensor = {made}
  return (%r)
""")
    assert c.alias("r", "a")
    assert c.db.must_alias(c["r"], c["a"]) == certain
    assert c.db.must_alias(c["r"], c["a"], if_any=True) == ("as_strided" not in made)
    assert not c.db.same_tensor(c["r"], c["a"])


def test_branches_nested_deeper_than_pythons_stack_are_left_alone() -> None:
    graph = Graph()
    x, t = graph.add_input(types.TENSOR), graph.add_input(types.BOOL)
    blocks = [graph.block]
    for _ in range(3000):
        node = Builder.at_end(blocks[-1]).node("prim::If", [t], [types.TENSOR])
        inner, other = node.add_block(), node.add_block()
        other.set_returns([x])
        if len(blocks) > 1:
            blocks[-1].set_returns([node.output])
        else:
            graph.set_outputs([node.output])
        blocks.append(inner)
    blocks[-1].set_returns([x])
    from irc.alias import analyze

    db = analyze(graph)
    assert not db.same_tensor(graph.outputs[0], x)
    assert db.same_tensor(blocks[-3].returns[0], x)


CHANGES = [(each.kind, each.changes) for each in records("aten") if each.changes or each.kind == "aten::relu_"]


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_operators_that_change_metadata(kind: str, change: Change) -> None:
    more = {"aten::as_strided_": ", %s, %s", "aten::resize_": ", %s", "aten::resize_as_": ", %y", "aten::set_": ", %y"}
    more |= {"aten::transpose_": ", %z, %z", "aten::unsqueeze_": ", %z"}
    c = Case(f"""
graph(%x : Tensor, %y : Tensor, %s : int[]):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %v : Tensor = aten::t(%a)
  %o : Tensor = aten::neg(%x)
  %r : Tensor = {kind}(%a{more.get(kind, "")})
  return (%r)
""")
    assert record(kind).changes == change
    for name in "a v r".split():
        assert c.db.has_metadata_writers(c[name]) == (change > Change.ELEMENTS)
    assert not c.db.has_metadata_writers(c["o"])
    assert c.db.must_alias(c["a"], c["v"]) == (change < Change.MEMORY)
    node = c.node("r")
    c.db.erase_node(node)
    c.graph.set_outputs([c["v"]])
    node.erase()
    c.db.tighten()
    assert not c.db.has_metadata_writers(c["a"])
    c.db.check()
