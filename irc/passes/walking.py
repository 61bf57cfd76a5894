"""Ways through subgraphs and modules."""

from __future__ import annotations

from collections.abc import Iterator

from irc.ir import Graph, Node


def with_subgraphs(graph: Graph) -> Iterator[Node]:
    """All nodes of ``graph``, and those of graphs that are attributes of them (fusion groups)."""
    pending = [graph]
    while pending:
        for node in pending.pop().walk():
            yield node
            pending.extend(a for a in node.attributes.values() if isinstance(a, Graph))


def is_function(graph: Graph) -> bool:
    """Whether other graphs of a module may call ``graph``: then callers see what it returns, and may write into it."""
    module = graph.module
    return module is not None and module.main is not graph and module.graphs.get(graph.name) is graph
