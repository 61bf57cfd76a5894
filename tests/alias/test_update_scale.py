"""The work of an update does not grow with the graph around it: lines executed are counted, not seconds."""

from collections.abc import Callable
from functools import partial

import pytest

from irc.alias import AliasDb, analyze
from irc.ir import Builder, Graph, ListType, Node, Value, parse_graph, types
from tests.alias.test_scale import lines

TENSORS = ListType(types.TENSOR)


class Lists:
    """n tensors, each with a view that is put into a list, read from it, and written."""

    def __init__(self, n: int) -> None:
        self.graph = Graph()
        x = self.graph.add_input(types.TENSOR)
        b = Builder(self.graph)
        self.zero = b.constant(0)
        self.made = [b.op("aten::relu", x) for _ in range(n)]
        self.lists: list[Value] = []
        self.stored: list[Value] = []
        ends: list[Value] = []
        for value in self.made:
            made = b.op("prim::ListConstruct", value, type=TENSORS)
            self.stored.append(b.op("aten::append", made, b.op("aten::t", value), type=TENSORS))
            ends.append(b.op("aten::relu_", b.op("aten::__getitem__", made, self.zero)))
            self.lists.append(made)
        self.graph.set_outputs(ends)
        self.db: AliasDb = analyze(self.graph)
        for value in (*ends, *self.lists):
            self.db.may_contain_alias(value, x)
        self.db.has_writers(x)
        self.db.set_wildcard(b.op("aten::relu", x))  # what the first update makes, later ones keep


def add(c: Lists) -> None:
    node = Builder.before(c.stored[5].node or c.graph.block.return_node).node("aten::t", [c.made[5]], [types.TENSOR])
    c.db.add_node(node)
    assert c.db.may_alias(node.output, c.made[5])


def write(c: Lists) -> None:
    node = Builder.before(c.graph.block.return_node).node("aten::relu_", [c.made[5]], [types.TENSOR])
    c.db.add_node(node)
    assert c.db.has_writers(c.made[5])
    c.db.erase_node(node)
    node.erase()


def copy(c: Lists) -> None:
    old = c.made[5]
    assert old.node is not None
    new = c.graph.create("aten::relu", old.node.inputs, [types.TENSOR]).insert_before(old.node).output
    c.db.copy_value(old, new)
    old.replace_all_uses_with(new)
    c.db.replace_value(old, new)
    c.db.erase_node(old.node)
    old.node.erase()
    assert c.db.may_contain_alias(new, c.lists[5])


def tighten(c: Lists) -> None:
    node = c.stored[5].node
    assert node is not None
    c.db.erase_node(node)
    node.erase()
    c.db.tighten()
    assert (c.db.solves, c.db.regions) == (1, 1)
    assert c.db.may_contain_alias(c.made[5], c.lists[5])


def replace_list(c: Lists) -> None:
    old, new = c.lists[6], c.lists[5]
    old.replace_all_uses_with(new)
    c.db.replace_value(old, new)
    assert (c.db.solves, c.db.regions) == (1, 1)
    assert c.db.may_contain_alias(c.made[6], c.lists[5])


def wildcard(c: Lists) -> None:
    c.db.set_wildcard(c.made[5])
    assert c.db.may_alias(c.made[5], c.graph.inputs[0])


@pytest.mark.parametrize("update", [add, write, copy, tighten, replace_list, wildcard])
def test_work_does_not_grow_with_the_graph(update: Callable[[Lists], None]) -> None:
    counts = [lines(partial(update, graph)) for graph in (Lists(50), Lists(1000))]
    assert counts[1] <= 1.1 * counts[0], counts


def declare_all(c: Lists) -> None:
    for value in c.made:
        c.db.set_wildcard(value)


def test_what_is_declared_unknown_costs_what_it_affects() -> None:
    """Each declaration adds to what all before denote, but draws no conclusion again."""
    counts = [lines(partial(declare_all, graph)) for graph in (Lists(25), Lists(100))]
    assert counts[1] <= 16 * counts[0], counts


def write_each(c: Lists) -> None:
    """Each write is of other memory, and asked about at once; and none of the others looked at."""
    for value in c.made:
        node = Builder.before(c.graph.block.return_node).node("aten::relu_", [value], [types.TENSOR])
        c.db.add_node(node)
        assert value.node is not None
        assert c.db.writes_between(value, value.node, c.graph.block.return_node)


def write_one(c: Lists) -> None:
    """All writes are of one tensor, each of the last one's result, and go one by one."""
    first = value = c.made[0]
    assert first.node is not None
    nodes = [first.node]
    for _ in c.made:
        node = Builder.before(c.graph.block.return_node).node("aten::relu_", [value], [types.TENSOR])
        c.db.add_node(node)
        nodes.append(node)
        value = node.output
    for node in nodes[:1:-1]:
        assert c.db.writes_between(first, first.node, node)
        assert not c.db.writes_between(first, nodes[-1], c.graph.block.return_node)
        nodes.pop()
        c.db.erase_node(node)
        node.erase()


@pytest.mark.parametrize("writes", [write_each, write_one])
def test_writers_that_come_and_go_cost_what_they_are(writes: Callable[[Lists], None]) -> None:
    counts = [lines(partial(writes, graph)) for graph in (Lists(50), Lists(200))]
    assert counts[1] <= 4.4 * counts[0], counts
    few = Lists(5)
    writes(few)
    few.db.check()


def loop(n: int) -> tuple[AliasDb, Node]:
    """A loop around n operators on what is outside, and one write."""
    body = "".join(f"      %a{k} : Tensor = aten::neg(%x)\n" for k in range(n))
    graph = parse_graph(f"""
graph(%x : Tensor, %y : Tensor[], %n : int, %t : bool):
  prim::Loop(%n, %t)
    block0(%i : int):
      %z : Tensor = aten::relu(%x)
      %w : Tensor = aten::relu_(%z)
{body}      -> (%t)
  return (%x)
""")
    return analyze(graph), next(iter(graph.nodes))


def hoist_all(db: AliasDb, around: Node) -> None:
    for node in list(around.blocks[0].nodes):
        if node.kind == "aten::neg" and not db.writes_to_alias(around, node.inputs):
            node.move_before(around)
            db.unnest_nodes(around, [node])


def test_what_leaves_a_loop_and_writes_nothing_is_no_reason_to_look_at_the_rest_again() -> None:
    counts = [lines(partial(hoist_all, *loop(n))) for n in (50, 200)]
    assert counts[1] <= 4.4 * counts[0], counts
    db, around = loop(2)
    hoist_all(db, around)
    db.check()
    write = next(n for n in around.nested() if n.kind == "aten::relu_")
    assert db.writes_anything(around)
    write.inputs[0].node.move_before(around)  # type: ignore[union-attr]
    write.move_before(around)
    db.unnest_nodes(around, [write])
    assert not db.writes_anything(around)
    db.check()
