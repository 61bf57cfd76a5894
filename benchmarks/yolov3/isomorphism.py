"""Whether two fused graphs are the same but for names and the order of what is independent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from irc.alias import analyze
from irc.fuser.subgraph import is_group, subgraph_of
from irc.ir import Block, Graph, Node, Value
from irc.passes.merging import attributes_key


def difference(a: Graph, b: Graph) -> str | None:
    """None if ``a`` and ``b`` are isomorphic, else where they first differ.

    Compared are operators, attributes, which result each input is, what has
    effects and in which order, and which operators are in one fusion group;
    in what order a group takes its inputs does not matter. Of nodes that
    nothing needs, there must be as many of each sort.
    """
    return _Matching(a, b).run()


@dataclass
class _Matching:
    a: Graph
    b: Graph
    nodes: dict[Node, Node] = field(default_factory=dict)
    """Of ``a`` and of ``b``, both ways; so are groups."""
    values: dict[Value, Value] = field(default_factory=dict)
    groups: dict[Node | None, Node | None] = field(default_factory=lambda: {None: None})
    pending: list[tuple[Value, Value]] = field(default_factory=list)

    def run(self) -> str | None:
        self._groups_of = {inner: node for g in (self.a, self.b) for node, inner in _grouped(g)}
        self._dbs = {graph: analyze(graph) for graph in (self.a, self.b)}
        for found in self._blocks(self.a.block, self.b.block):
            return found
        while self.pending:
            for found in self._values(*self.pending.pop()):
                return found
        unused = [Counter(_sort(n) for n in _operators(g) if n not in self.nodes) for g in (self.a, self.b)]
        if unused[0] != unused[1]:
            kind = next(iter((unused[0] - unused[1]) + (unused[1] - unused[0])))[0]
            return f"unused nodes of kind {kind}"
        return None

    def _blocks(self, a: Block, b: Block) -> Iterator[str]:
        """Match parameters and effects, and leave what is returned to be matched."""
        if len(a.params) != len(b.params) or len(a.returns) != len(b.returns):
            yield f"parameters or results of {a.node!r} and {b.node!r}"
            return
        self.values.update(zip(a.params, b.params, strict=True))
        effects = [[node for node in block.nodes if self._has_effect(node)] for block in (a, b)]
        if len(effects[0]) != len(effects[1]):
            yield f"{len(effects[0])} and {len(effects[1])} effects in {a.node!r}"
            return
        for x, y in zip(*effects, strict=True):
            yield from self._nodes(x, y)
        self.pending += zip(a.returns, b.returns, strict=True)

    def _values(self, v: Value, w: Value) -> Iterator[str]:
        v, w = self._origin(v), self._origin(w)
        known = self.values.get(v)
        if known is not None:
            if known is not w:
                yield f"{v!r} is {known!r} and {w!r}"
        elif v.node is None or w.node is None or v.index != w.index:
            yield f"{v!r} and {w!r}"
        else:
            yield from self._nodes(v.node, w.node)

    def _nodes(self, x: Node, y: Node) -> Iterator[str]:
        if x in self.nodes or y in self.nodes:
            if self.nodes.get(x) is not y:
                yield f"{x!r} is {self.nodes.get(x)!r}, {y!r} is {self.nodes.get(y)!r}"
            return
        if _sort(x) != _sort(y) or any(len(s) != len(t) for s, t in _shape(x, y)):
            yield f"{x!r} and {y!r}"
            return
        group, other = self._groups_of.get(x), self._groups_of.get(y)
        if self.groups.setdefault(group, other) is not other or self.groups.setdefault(other, group) is not group:
            yield f"the groups of {x!r} and {y!r}"
            return
        self.nodes[x], self.nodes[y] = y, x
        self.values.update(zip(x.outputs, y.outputs, strict=True))
        self.pending += zip(x.inputs, y.inputs, strict=True)
        for s, t in zip(x.blocks, y.blocks, strict=True):
            yield from self._blocks(s, t)

    def _has_effect(self, node: Node) -> bool:
        """Whether ``node`` matters although nothing may use it."""
        return not node.outputs or bool(self._dbs[node.graph].writes(node))

    def _origin(self, value: Value) -> Value:
        """``value`` itself, or what it is inside or outside of a fusion group: the result of an operator."""
        while True:
            if value.node is not None and is_group(value.node):
                value = subgraph_of(value.node).outputs[value.index]
            elif value.node is None and (group := self._groups_of.get(value)) is not None:
                value = group.inputs[value.index]
            else:
                return value


def _grouped(graph: Graph) -> Iterator[tuple[Node, Node | Value]]:
    for node in graph.walk():
        if is_group(node):
            inner = subgraph_of(node)
            yield from ((node, what) for what in (*inner.nodes, *inner.inputs))


def _operators(graph: Graph) -> Iterable[Node]:
    for node in graph.walk():
        yield from subgraph_of(node).nodes if is_group(node) else (node,)


def _sort(node: Node) -> tuple[object, ...]:
    return node.kind, node.version, attributes_key(node)


def _shape(x: Node, y: Node) -> Iterator[tuple[tuple[object, ...], tuple[object, ...]]]:
    yield from ((x.inputs, y.inputs), (x.outputs, y.outputs), (x.blocks, y.blocks))
