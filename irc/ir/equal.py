"""Structural equality of graphs and modules, which says what differs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any, NamedTuple, cast

from irc.ir.graph import Graph, Module
from irc.ir.node import Node, Value
from irc.ir.region_flow import graphs_of
from irc.ir.tensor import Tensor
from irc.ir.text.printer import print_node


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
    for one, other in zip_longest(*(_facts(each, names, metadata) for each in (a, b)), fillvalue=_END):
        if one.what != other.what or not _equal(one.content, other.content):
            return f"{one.what}: {one}  and  {other}"
    return None


class _Fact(NamedTuple):
    """Something that two graphs must have in common: what it is, its content, and the node that it is of."""

    what: str
    content: Any
    node: Node | None = None

    def __str__(self) -> str:
        return str(self.content) if self.node is None else print_node(self.node)


_END = _Fact("the end", None)


def _facts(target: Graph | Module, names: bool, metadata: bool) -> Iterator[_Fact]:
    """All that counts, in an order that follows from the structure; graphs in attributes come last."""

    def defined_as(what: str, values: tuple[Value, ...], node: Node | None = None) -> Iterator[_Fact]:
        yield _Fact(what, [(value.type, names and value.name) for value in values], node)
        yield _Fact(f"metadata of {what}", [metadata and dict(value.metadata) for value in values], node)

    yield _Fact("graphs", "one" if isinstance(target, Graph) else list(target.graphs))
    graphs = [target] if isinstance(target, Graph) else [target.main, *target.graphs.values()]
    for graph in graphs:  # grows by those inside
        yield _Fact("graphs called", names and graph.name)
        blocks = list(graph.blocks())
        # All are numbered before any use, so that it does not matter in which order values are defined.
        defined = [(*block.params, *(value for node in block.nodes for value in node.outputs)) for block in blocks]
        numbers = {value: i for i, value in enumerate(chain(*defined))}
        for block in blocks:
            yield from defined_as("parameters", block.params)
            yield _Fact("nodes of blocks", len(block.nodes))
            yield _Fact("metadata of blocks", metadata and dict(block.metadata))
            for node in (*block.nodes, block.return_node):
                yield _Fact("operators", (node.kind, node.version, len(node.blocks)), node)
                yield _Fact("inputs", [numbers.get(value) for value in node.inputs], node)
                yield from defined_as("outputs", node.outputs, node)
                yield _Fact("node names or scopes", names and (node.name, node.scope), node)
                yield _Fact("metadata", metadata and dict(node.metadata), node)
                yield _Fact("attributes", [(key, node.attributes[key]) for key in sorted(node.attributes)], node)
                graphs += graphs_of(node)


def _equal(a: Any, b: Any) -> bool:
    """Whether two parts of graphs are the same, bit for bit; graphs are compared by themselves."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, complex):
        return _equal([a.real, a.imag], [b.real, b.imag])
    if isinstance(a, list | tuple):
        items = zip(cast("list[Any]", a), cast("list[Any]", b), strict=False)
        return len(cast("list[Any]", a)) == len(b) and all(_equal(x, y) for x, y in items)
    if isinstance(a, dict):
        return _equal(list(cast("dict[Any, Any]", a).items()), list(b.items()))
    if isinstance(a, Tensor):
        # Of weights whose contents are not known on one side, names and types decide.
        are_known = not a.name or not (a.is_absent or b.is_absent)
        return a is b or (a.name == b.name and a.type == b.type and (not are_known or a.same_contents(b)))
    return isinstance(a, Graph) or a == b
