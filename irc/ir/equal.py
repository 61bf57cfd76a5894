"""Structural equality of graphs and modules, which says what differs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, cast

from irc.ir.block import Block
from irc.ir.graph import Graph, Module
from irc.ir.node import Node
from irc.ir.tensor import Tensor
from irc.ir.text.printer import print_node
from irc.ir.value import Value


def structurally_equal(
    a: Graph | Module, b: Graph | Module, *, names: bool = True, metadata: bool = False
) -> str | None:
    """None if ``a`` and ``b`` differ in nothing but object identity, else the first difference, in words.

    Compared are the blocks, nodes, inputs, outputs, types, versions and
    attributes, floating-point values bit for bit. Weights are equal if their
    names and types are, and their contents where both are known. Metadata and
    default inputs of modules, which the text does not hold, are not compared.

    Args:
        a: a graph or module.
        b: another one of the same kind.
        names: whether the names of values, nodes, scopes and graphs must agree too.
        metadata: whether what is said of nodes, values and blocks must agree too.
    """
    if isinstance(a, Module) != isinstance(b, Module):
        return "one is a module, the other a graph"
    if isinstance(a, Module) and isinstance(b, Module):
        if list(a.graphs) != list(b.graphs):
            return f"graphs {list(a.graphs)} and {list(b.graphs)}"
        pairs = [(a.main, b.main), *zip(a.graphs.values(), b.graphs.values(), strict=True)]
    else:
        pairs = [(cast(Graph, a), cast(Graph, b))]
    todo = pairs[::-1]
    while todo:
        comparison = _Comparison(names, metadata)
        difference = comparison.graphs(*todo.pop())
        if difference is not None:
            return difference
        todo.extend(reversed(comparison.subgraphs))
    return None


class _Comparison:
    """Compares one pair of graphs; graphs in their attributes are left in ``subgraphs``."""

    def __init__(self, names: bool, metadata: bool) -> None:
        self.subgraphs: list[tuple[Graph, Graph]] = []
        self._names = names
        self._metadata = metadata
        self._same: dict[Value, Value] = {}

    def graphs(self, a: Graph, b: Graph) -> str | None:
        if self._names and a.name != b.name:
            return f"graphs called {a.name!r} and {b.name!r}"
        pairs: list[tuple[Node, Node]] = []
        for difference in self._definitions(a.block, b.block, pairs):
            return difference
        # Uses come second, so that it does not matter in which order values are defined.
        for x, y in pairs:
            if list(map(self._same.get, x.inputs)) != list(y.inputs):
                return f"inputs: {_both(x, y)}"
        return None

    def _definitions(self, top_a: Block, top_b: Block, pairs: list[tuple[Node, Node]]) -> Iterator[str]:
        """Differences in all but inputs; fills ``pairs`` with corresponding nodes, returns included."""
        stack = [(top_a, top_b)]
        while stack:
            a, b = stack.pop()
            yield from self._values("parameters", a.params, b.params)
            if self._metadata and a.metadata != b.metadata:
                yield f"metadata {dict(a.metadata)} and {dict(b.metadata)} of a block, in graph {a.graph.name!r}"
            if len(a.nodes) != len(b.nodes):
                yield f"a block of {len(a.nodes)} nodes and one of {len(b.nodes)}, in graph {a.graph.name!r}"
            for x, y in zip(a.nodes, b.nodes, strict=False):
                yield from self._nodes(x, y)
                pairs.append((x, y))
                stack.extend(zip(x.blocks, y.blocks, strict=True))
            pairs.append((a.return_node, b.return_node))

    def _nodes(self, x: Node, y: Node) -> Iterator[str]:
        if x.kind != y.kind or x.version != y.version:
            yield f"operators: {_both(x, y)}"
        if len(x.blocks) != len(y.blocks):
            yield f"{len(x.blocks)} and {len(y.blocks)} blocks: {_both(x, y)}"
        if self._names and (x.name != y.name or x.scope != y.scope):
            yield f"node names or scopes: {_both(x, y)}"
        if self._metadata and x.metadata != y.metadata:
            yield f"metadata {dict(x.metadata)} and {dict(y.metadata)}: {_both(x, y)}"
        for difference in self._values("outputs", x.outputs, y.outputs):
            yield f"{difference}: {_both(x, y)}"
        if x.attributes or y.attributes:
            if x.attributes.keys() != y.attributes.keys():
                yield f"names of attributes: {_both(x, y)}"
            for key, value in x.attributes.items():
                if not self._equal(value, y.attributes[key]):
                    yield f"attribute {key}: {_both(x, y)}"

    def _values(self, what: str, a: tuple[Value, ...], b: tuple[Value, ...]) -> Iterator[str]:
        if len(a) != len(b):
            yield f"{len(a)} and {len(b)} {what}"
            return
        for v, w in zip(a, b, strict=True):
            self._same[v] = w
            if v.type != w.type or (self._names and v.name != w.name):
                yield f"{what} {v!r} and {w!r}"
            if self._metadata and v.metadata != w.metadata:
                yield f"{what} {v!r} and {w!r} with metadata {dict(v.metadata)} and {dict(w.metadata)}"

    def _equal(self, a: Any, b: Any) -> bool:
        """Whether two attributes are the same, bit for bit."""
        if type(a) is not type(b):
            return False
        if isinstance(a, float):
            return struct.pack("<d", a) == struct.pack("<d", b)
        if isinstance(a, complex):
            return self._equal([a.real, a.imag], [b.real, b.imag])
        if isinstance(a, list | tuple):
            items = zip(cast("list[Any]", a), cast("list[Any]", b), strict=False)
            return len(cast("list[Any]", a)) == len(b) and all(self._equal(x, y) for x, y in items)
        if isinstance(a, dict):
            return self._equal(list(cast("dict[Any, Any]", a).items()), list(b.items()))
        if isinstance(a, Tensor):
            return same_tensor(a, b)
        if isinstance(a, Graph):
            self.subgraphs.append((a, b))
            return True
        return a == b


def same_tensor(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have equal names, types and contents; unknown contents count as equal."""
    if a is b:
        return True
    if a.name != b.name or a.type != b.type:
        return False
    if a.name and (a.is_absent or b.is_absent):
        return True
    return a.same_contents(b)


def _both(x: Node, y: Node) -> str:
    return f"{print_node(x)}  and  {print_node(y)}"
