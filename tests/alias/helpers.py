"""Graphs from text, and values by name."""

from __future__ import annotations

from collections.abc import Mapping

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Module, Node, Value, parse_graph
from irc.ir.objects import Object


class Case:
    """A graph with its alias analysis; values and nodes by the name of a value."""

    def __init__(self, text: str, noalias: tuple[str, ...] = (), objects: Mapping[str, Object] | None = None) -> None:
        self.graph: Graph = parse_graph(text)
        self.graph.verify()
        if objects:
            Module(self.graph).objects.update(objects)
        self.db: AliasDb = analyze(self.graph, noalias=noalias)

    def __getitem__(self, name: str) -> Value:
        return self.graph.value(name)

    def node(self, name: str) -> Node:
        """The node that makes ``%name``, or the ``name``-th node of that kind: ``prim::Print#1``."""
        if "::" in name:
            kind, _, number = name.partition("#")
            return [n for n in self.graph.walk() if n.kind == kind][int(number or 0)]
        node = self.graph.value(name).node
        assert node is not None
        return node

    def alias(self, a: str, b: str) -> bool:
        return self.db.may_alias(self[a], self[b])

    def contain(self, a: str, b: str) -> bool:
        return self.db.may_contain_alias(self[a], self[b])

    def written(self, name: str) -> bool:
        return self.db.has_writers(self[name])

    def order(self) -> str:
        """The names of the first outputs of the top block's nodes, in order."""
        return " ".join(n.outputs[0].name if n.outputs else n.kind for n in self.graph.nodes)
