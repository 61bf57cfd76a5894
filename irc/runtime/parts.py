"""The part of a graph that some of its outputs need, where there are nodes of unknown operators that they do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from irc.alias import analyze
from irc.ir.clone import copy_graph
from irc.ir.kinds import CONSTANT
from irc.ir.ops.opaque import is_opaque
from irc.ir.types import NONE
from irc.runtime.binding import unsupported
from irc.runtime.kernels import means

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value


def has_unknown(graph: Graph) -> bool:
    """Whether each run of all of ``graph`` comes to an unknown operator. To those in blocks a run need not come."""
    return any(map(_is_unknown, graph.nodes))


def unknown_nodes(graph: Graph) -> list[Node]:
    """The opaque nodes of ``graph``, nested ones too, for which nobody has registered a kernel."""
    return [node for node in graph.walk() if _is_unknown(node)]


def _is_unknown(node: Node) -> bool:
    return is_opaque(node.kind) and means(node) is None


def part_for(graph: Graph, outputs: Collection[int]) -> Graph:
    """A copy of ``graph`` without the nodes that the outputs at these positions do not need; other outputs are None.

    What is left out may act on the world: nobody asked for it.

    Raises:
        Error: IRC323 if these outputs need operators that are unknown; the message lists all that the graph has.
    """
    needed = _needed(graph, [graph.outputs[i] for i in outputs])
    if any(map(_is_unknown, needed)):
        raise unsupported(unknown_nodes(graph))
    copy = copy_graph(graph, graph.weights)
    nothing = copy.create(CONSTANT, (), (NONE,))
    copy.block.append(nothing)
    copy.set_outputs([value if i in outputs else nothing.output for i, value in enumerate(copy.outputs)])
    for original, node in reversed(list(zip(graph.nodes, copy.nodes))):  # of the copy, the constant is not among them
        if original not in needed and original.kind != CONSTANT:
            node.erase()
    return copy


def _needed(graph: Graph, outputs: Iterable[Value]) -> set[Node]:
    """The nodes of the top block that ``outputs`` come from, and those that write into any memory on the way."""
    db = analyze(graph, noalias=graph.inputs)
    needed: set[Node] = set()
    values = dict.fromkeys(outputs)
    for node in reversed(list(graph.nodes)):  # what reads comes after what writes
        makes = any(value in values for value in node.outputs)
        if makes or (db.is_mutable(node) and db.writes_to_alias(node, list(values))):
            needed.add(node)
            values.update(dict.fromkeys([*node.inputs, *node.captures()]))
    return needed
