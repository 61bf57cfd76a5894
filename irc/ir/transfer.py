"""Moving nodes from one graph to another without copying them."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.graph import Graph
    from irc.ir.node import Node
    from irc.ir.value import Value


def transfer_node(node: Node, point: Node) -> None:
    """Move ``node``, nested blocks included, to right before ``point``, which may be in another graph.

    Names are made unique there. Inputs are left as they are: the caller binds
    those of the old graph to values of the new one.
    """
    node._unlink()
    node.insert_before(point)
    if node.graph is point.graph:
        return
    point.graph.has_metadata |= node.graph.has_metadata
    stack = [node]
    while stack:
        moved = stack.pop()
        moved.graph = point.graph
        for value in moved.outputs:
            _transfer_value(value, point.graph)
        for block in moved.blocks:
            block.graph = block.return_node.graph = point.graph
            for param in block.params:
                _transfer_value(param, point.graph)
            stack.extend(block.nodes)


def exchange_outputs(a: Value, b: Value) -> None:
    """Exchange the places of two outputs in their nodes. Their uses and names stay; the caller adapts the types."""
    a.node, b.node, a.index, b.index = b.node, a.node, b.index, a.index
    for value in (a, b):
        node = value.node
        assert node is not None, "only outputs of nodes can be exchanged"
        node.outputs = (*node.outputs[: value.index], value, *node.outputs[value.index + 1 :])


def _transfer_value(value: Value, graph: Graph) -> None:
    value.graph.forget(value)
    value.graph = graph
    graph.name_value(value, value.name)
