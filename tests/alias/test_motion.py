"""Moving nodes: what depends on them comes along or stays behind, and memory and effects are respected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import AliasDb, analyze, motion
from irc.ir import Graph, Node
from tests.alias.helpers import Case
from tests.alias.programs import choices, program
from tests.effort import Spy, examples
from tests.graphs import ir

TOPOLOGY = ir("""
    x: Tensor; t: bool -> g, h, k, l
    a = relu(x); b = neg(x); c = mul(a, b); d = relu(a); e = mul(d, c); f = relu(x); g = mul(f, e); h = relu(x)
    i = prim.If(t)
    with block(): j = relu(f); yield j
    with block(): yield x
    k = neg(i); l = relu(a)
""")


@pytest.mark.parametrize(
    ("move", "node", "point", "order"),
    [
        ("before", "d", "c", "a b d c e f g h i k l"),  # backward, nothing comes along
        ("before", "a", "a", "a b c d e f g h i k l"),  # itself
        ("before", "a", "b", "a b c d e f g h i k l"),  # it is there
        ("after", "b", "a", "a b c d e f g h i k l"),
        ("after", "a", "b", "b a c d e f g h i k l"),
        ("after", "c", "d", "a b d c e f g h i k l"),  # forward
        ("before", "f", "c", "a b f c d e g h i k l"),
        ("after", "f", "k", None),  # k needs i, which uses f inside
        ("before", "h", "a", "h a b c d e f g i k l"),
        ("after", "c", "f", "a b d f c e g h i k l"),  # e uses c: it comes along
        ("after", "d", "f", "a b c f d e g h i k l"),
        ("after", "c", "h", "a b d f h c e g i k l"),
        ("before", "c", "h", "a b d f c h e g i k l"),  # its dependants are left behind the point
        ("before", "g", "c", None),  # g needs e, which needs c
        ("before", "k", "h", "a b c d e f g i k h l"),  # backward with what it needs
        ("before", "k", "f", None),  # i needs f inside its block
        ("after", "l", "a", "a l b c d e f g h i k"),
        ("before", "i", "g", "a b c d e f i g h k l"),
        ("after", "k", "g", "a b c d e f i g k h l"),  # backward: what it needs goes to the other side of the point
        ("before", "a", "c", "b a c d e f g h i k l"),
        ("before", "a", "f", "b a f c d e g h i k l"),
        ("after", "a", "l", None),  # l needs a
    ],
)
def test_moves(move: str, node: str, point: str, order: str | None) -> None:
    c = Case(TOPOLOGY)
    before = c.order()
    can = (c.db.can_move_before if move == "before" else c.db.can_move_after)(c.node(node), c.node(point))
    assert c.order() == before, "asking changes nothing"
    done = (c.db.move_before if move == "before" else c.db.move_after)(c.node(node), c.node(point))
    assert done == can == (order is not None)
    assert c.order() == (order or before)
    c.graph.verify()


def test_other_blocks_are_no_points() -> None:
    c = Case(TOPOLOGY)
    assert not c.db.move_before(c.node("a"), c.node("j"))
    assert not c.db.move_after(c.node("j"), c.node("a"))


def test_before_the_end_of_the_block() -> None:
    c = Case(TOPOLOGY)
    assert c.db.move_before(c.node("h"), c.graph.block.return_node)
    assert c.order() == "a b c d e f g i k l h"
    assert not c.db.move_before(c.node("a"), c.graph.block.return_node), "what uses a cannot go behind the end"
    assert not c.db.move_after(c.node("h"), c.graph.block.return_node)


def test_random_numbers_are_drawn_in_order() -> None:
    c = Case(ir("x: Tensor", "a = rand_like(x); m = neg(x); b = rand_like(x)", "a, b, m"))
    assert not c.db.move_before(c.node("b"), c.node("a"))
    assert not c.db.move_after(c.node("a"), c.node("b"))
    assert c.db.move_before(c.node("m"), c.node("a")), "what draws none may cross"
    assert c.db.is_random(c.node("a"))
    assert not c.db.has_side_effects(c.node("a"))


def test_far_moves_of_untouched_values_look_at_nothing_between() -> None:
    """Interleaved chains: the way to the point is long, what depends on the node is little."""
    text = ["graph(%x : Tensor):", "  %a0 : Tensor = aten::relu(%x)"]
    text += [f"  %b{i} : Tensor = aten::neg(%x)" for i in range(200)]
    text += ["  %z : Tensor = aten::neg(%a0)", "  return (%z)"]
    c = Case("\n".join(text))
    asked: list[Node] = []
    original = c.db.touches_written
    c.db.touches_written = lambda node: asked.append(node) or original(node)  # type: ignore[method-assign]
    assert c.db.move_before(c.node("a0"), c.node("z"))
    assert len(asked) == 1


def test_what_all_layers_use_is_refused_near_each_of_them(spy: Spy) -> None:
    """The layer before uses it, too: how deep a model is does not matter."""
    asked = spy(motion, "links")

    def work(layers: int) -> int:
        text = ["graph(%x : Tensor):", "  %c : Tensor = aten::cos(%x)", "  %h0 : Tensor = aten::relu(%x)"]
        for i in range(layers):
            text.append(f"  %m{i} : Tensor = aten::mul(%h{i}, %c)")
            text.append(f"  %w{i} : Tensor = aten::relu_(%m{i})")
            text.append(f"  %h{i + 1} : Tensor = aten::mul(%w{i}, %h{i})")
        c = Case("\n".join([*text, f"  return (%h{layers})"]))
        asked.reset_mock()
        for i in range(1, layers):
            assert not c.db.can_move_before(c.node("c"), c.node(f"m{i}"))
        return asked.call_count

    assert work(120) - work(90) <= 1.05 * (work(90) - work(60))


@pytest.mark.parametrize(
    ("node", "point", "last"),
    [
        ("b", "a", "c"),  # from between the two
        ("d", "a", "b"),  # from behind
        ("d", "b", "c"),
        ("a", "d", "c"),  # the last is before the point
        ("c", "d", "a"),
        ("a", "b", "r"),  # the last is elsewhere
    ],
)
def test_a_run_of_nodes_is_only_approached_from_before(node: str, point: str, last: str) -> None:
    c = Case("""
        x: Tensor; t: bool -> b, c, d, e
        a = relu(x); b = neg(a); c = exp(x); d = abs(x); e = prim.If(t)
        with block(): r = relu(x); yield r
        with block(): yield x
    """)
    before = str(c.graph)
    assert not c.db.move_before(c.node(node), c.node(point), c.node(last))
    assert str(c.graph) == before
    assert c.db.move_before(c.node("a"), c.node("c"), c.node("d")) and c.order() == "a c d b e"


class ByTheBook:
    """The rules again, node by node and without short cuts: pairs that must keep their order."""

    def __init__(self, db: AliasDb) -> None:
        self.db = db

    def conflict(self, a: Node, b: Node) -> bool:
        db = self.db
        if db.has_side_effects(a) or db.has_side_effects(b):
            return True
        reads_a, reads_b, writes_a, writes_b = db.reads(a), db.reads(b), db.writes(a), db.writes(b)
        return bool(writes_a & writes_b or writes_a & reads_b or reads_a & writes_b)

    def order_matters(self, graph: Graph) -> dict[tuple[Node, Node], bool]:
        found: dict[tuple[Node, Node], bool] = {}
        for block in graph.blocks():
            nodes = list(block.nodes)
            for i, a in enumerate(nodes):
                for b in nodes[i + 1 :]:
                    found[a, b] = self.conflict(a, b)
        return found


@given(choices, st.integers(0, 1000), st.integers(0, 1000), st.booleans())
@examples(150)
def test_no_move_changes_places_of_nodes_that_conflict(numbers: list[int], i: int, j: int, before: bool) -> None:
    graph = program(numbers, opaque=len(numbers) % 3 == 0)
    db = analyze(graph)
    blocks = [b for b in graph.blocks() if len(b.nodes) > 1]
    if not blocks:
        return
    nodes = list(blocks[i % len(blocks)].nodes)
    node, point = nodes[i % len(nodes)], nodes[j % len(nodes)]
    pairs = ByTheBook(db).order_matters(graph)
    old = list(graph.walk())
    span = sorted((node, point), key=lambda n: n.order)
    refused = node is not point and motion.Move(db, node, point, before)._is_linked()
    if not (db.move_before if before else db.move_after)(node, point):
        assert list(graph.walk()) == old
        return
    assert not refused
    graph.verify()  # every value is still defined before it is used
    if node is not point:
        assert (node.next if before else node.prev) is point
    for (a, b), matters in pairs.items():
        if b.is_before(a):
            assert not matters, (a, b)
            assert span[0].block is a.block
    db.check()
