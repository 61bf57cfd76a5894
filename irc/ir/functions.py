"""Graphs that nodes run: functions of a module, which constants of type Function name, and subgraphs in attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irc.ir.graph import Graph
from irc.ir.kinds import CALL, CONSTANT, SUBGRAPHS

if TYPE_CHECKING:
    from irc.ir.node import Node


def function_name(node: Node) -> str | None:
    """The name of the function that the constant ``node`` stands for; None if it is no such constant."""
    name = node.attributes.get("name") if node.kind == CONSTANT else None
    return name if isinstance(name, str) else None


def callee(node: Node) -> str | None:
    """The name of the function that ``node`` calls; None if it is no call, or the function is not a constant."""
    function = node.inputs[0].node if node.kind == CALL and node.inputs else None
    return None if function is None else function_name(function)


def inner_graph(node: Node) -> Graph | None:
    """The graph in an attribute that ``node`` runs; None if its kind runs none, whatever its attributes."""
    graph = node.attributes.get("Subgraph") if node.kind in SUBGRAPHS else None
    return graph if isinstance(graph, Graph) else None


def graphs_of(node: Node) -> list[Graph]:
    """The graphs that are attributes of ``node``, whether it runs them or not."""
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def with_subgraphs(*graphs: Graph) -> Iterator[Node]:
    """All nodes of ``graphs``, and those of graphs that are attributes of them (fusion groups), each graph once."""
    found = dict.fromkeys(graphs)
    pending = list(found)
    for graph in pending:  # grows while it is walked
        for node in graph.walk():
            yield node
            for value in node.attributes.values():  # not `graphs_of`: that of each node would take as long as the rest
                if isinstance(value, Graph) and value not in found:
                    found[value] = None
                    pending.append(value)
