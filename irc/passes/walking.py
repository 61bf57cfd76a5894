"""Ways through nested nodes and subgraphs."""

from __future__ import annotations

from collections.abc import Iterator

from irc.ir import Graph, Node


def with_nested(node: Node) -> Iterator[Node]:
    """``node``, then all nodes nested in its blocks. They must not change meanwhile."""
    stack = [node]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(inner for block in at.blocks for inner in block.nodes)


def with_subgraphs(graph: Graph) -> Iterator[Node]:
    """All nodes of ``graph``, and those of graphs that are attributes of them (fusion groups)."""
    pending = [graph]
    while pending:
        for node in pending.pop().walk():
            yield node
            pending.extend(a for a in node.attributes.values() if isinstance(a, Graph))
