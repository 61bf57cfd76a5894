"""Random updates of random programs: afterwards every query answers as after a rebuild."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings

from irc.alias import AliasDb, analyze
from irc.ir import Builder, Graph, Node, Value, types
from tests.alias.programs import LIST, NESTED, TENSOR, choices, program


class Mutator:
    """Changes a graph at random and tells its database."""

    def __init__(self, graph: Graph, db: AliasDb, choices: Sequence[int]) -> None:
        self.graph = graph
        self.db = db
        self._choices = list(choices)

    def run(self) -> None:
        steps = (self.insert, self.replace, self.erase, self.move, self.declare_unknown, self.copy, self.tighten)
        while self._choices:
            step = steps[self._pick(len(steps))]
            with self.db.rewrite():
                step()

    def _pick(self, n: int) -> int:
        return self._choices.pop(0) % n if self._choices else 0

    def _nodes(self) -> list[Node]:
        return [n for n in self.graph.walk() if n.kind != "prim::Constant"]

    def _visible(self, point: Node) -> list[Value]:
        """The values that ``point`` can use."""
        found: list[Value] = []
        block, before = point.block, point
        while block is not None:
            found += block.params
            for node in block.nodes:
                if node is before:
                    break
                found += node.outputs
            if block.node is None:
                break
            before, block = block.node, block.node.block
        return found

    def insert(self) -> None:
        """A new node somewhere, whose result a later node may use instead of one of its inputs."""
        nodes = self._nodes()
        if not nodes:
            return
        point = nodes[self._pick(len(nodes))]
        visible = self._visible(point)
        tensors = [v for v in visible if v.type == TENSOR]
        lists = [v for v in visible if v.type == LIST]
        b = Builder.before(point)
        which = self._pick(7)
        if which < 3 and tensors:
            kind = ("aten::relu", "aten::t", "aten::relu_")[which]
            node = b.node(kind, [tensors[self._pick(len(tensors))]], [TENSOR])
        elif which == 3 and tensors:
            node = b.node("prim::ListConstruct", [tensors[self._pick(len(tensors))]], [LIST])
        elif which == 4 and lists:
            node = b.node("aten::__getitem__", [lists[self._pick(len(lists))], self.graph.value("zero")], [TENSOR])
        elif which == 5 and lists and tensors:
            stored = tensors[self._pick(len(tensors))]
            node = b.node("aten::append", [lists[self._pick(len(lists))], stored], [LIST])
        elif which == 6 and lists:
            node = b.node("prim::ListConstruct", [lists[self._pick(len(lists))]], [NESTED])
        else:
            return
        self.db.add_node(node)
        new = node.output
        for index, old in enumerate(point.inputs):
            if old.type == new.type and self._pick(2):
                users = [u for u in old.users if u is not point]
                point.replace_input(index, new)
                if not users and not old.has_uses:
                    self.db.replace_value(old, new)
                else:  # only some of its uses changed: the node that uses it now is another one to the database
                    self._again(point)
                return

    def _again(self, node: Node) -> None:
        """Nodes whose inputs changed one by one are told as erased and added: here that means a rebuild."""
        self.db.refresh()

    def replace(self) -> None:
        """All uses of a value become uses of another of its type."""
        nodes = [n for n in self._nodes() if n.outputs]
        if not nodes:
            return
        node = nodes[self._pick(len(nodes))]
        old = node.outputs[self._pick(len(node.outputs))]
        others = [v for v in self._visible(node) if v.type == old.type]
        if others:
            new = others[self._pick(len(others))]
            old.replace_all_uses_with(new)
            self.db.replace_value(old, new)

    def erase(self) -> None:
        dead = [n for n in self._nodes() if not any(v.has_uses for v in n.outputs)]
        if dead:
            node = dead[self._pick(len(dead))]
            self.db.erase_node(node)
            node.erase()

    def tighten(self) -> None:
        self.db.tighten()
        assert self.db.is_tight

    def move(self) -> None:
        nodes = self._nodes()
        if nodes:
            node, point = (nodes[self._pick(len(nodes))] for _ in range(2))
            before = self._order()
            move = (self.db.move_before, self.db.move_after)[self._pick(2)]
            if not move(node, point):
                assert self._order() == before

    def _order(self) -> list[Node]:
        return list(self.graph.walk())

    def declare_unknown(self) -> None:
        if self._pick(4) == 0:
            values = [v for n in self._nodes() for v in n.outputs if v.type != types.INT]
            if values:
                self.db.set_wildcard(values[self._pick(len(values))])

    def copy(self) -> None:
        """What the fuser does: a node's result becomes another node's, which denotes the same."""
        nodes = [n for n in self._nodes() if n.kind == "aten::relu"]
        if nodes:
            old = nodes[self._pick(len(nodes))]
            new = self.graph.create("aten::relu", old.inputs, [TENSOR]).insert_before(old)
            self.db.copy_value(old.output, new.output)
            old.output.replace_all_uses_with(new.output)
            self.db.replace_value(old.output, new.output)
            self.db.erase_node(old)
            old.erase()


@given(choices, choices)
@settings(max_examples=120, deadline=None)
def test_updates_equal_a_rebuild(numbers: list[int], changes: list[int]) -> None:
    graph = program(numbers)
    db = analyze(graph)
    db.check_rewrites = True
    db.may_contain_alias(graph.inputs, graph.outputs)
    Mutator(graph, db, changes).run()
    graph.verify()
    db.tighten()
    assert db.is_tight
    db.check()
