"""Which values have the same shape in every run whose inputs have the same shapes.

Declared types are not used: a model's own may be wrong. It is known what an operator's
results depend on (`irc.ir.ops.shape_operands`). So two properties are
followed from node to node: whether the shapes of the graph's inputs decide the
shape of a value, and whether they decide its contents. All other values may differ.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from irc.ir.functions import inner_graph
from irc.ir.graph import Graph
from irc.ir.kinds import CONSTANT
from irc.ir.ops.shape_operands import NOT_DETERMINED, ONLY_SHAPES, shape_operands

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from irc.ir import Node, Value


def own_groups(graph: Graph) -> dict[Node, Graph]:
    """The fusion groups in the top block of ``graph`` that share their subgraph with no other node."""
    users = Counter(map(inner_graph, graph.walk()))
    groups = ((node, inner_graph(node)) for node in graph.block.nodes)
    return {node: group for node, group in groups if group is not None and users[group] == 1}


def static_shapes(graph: Graph, groups: Mapping[Node, Graph], written: Container[Value]) -> set[Value]:
    """The values of the top block of ``graph`` and of its ``groups`` whose shapes the shapes of its inputs decide.

    Args:
        graph: the graph.
        groups: fusion groups of its top block, with their subgraphs.
        written: values whose contents something may change.
    """
    shapes: set[Value] = set(graph.inputs)  # the values of which these are decided
    contents: set[Value] = set()

    def are_decided(values: Iterable[Value]) -> bool:
        return all(value in contents and value not in written for value in values)

    def follow(inner: Graph) -> None:
        for node in inner.block.nodes:
            deciding = shape_operands(node.kind)
            if node in groups:
                group = groups[node]
                for known in (shapes, contents):
                    known.update(inside for given, inside in zip(node.inputs, group.inputs) if given in known)
                follow(group)
                for known in (shapes, contents):
                    known.update(result for result, inside in zip(node.outputs, group.outputs) if inside in known)
            elif node.kind == CONSTANT:
                shapes.update(node.outputs)
                contents.update(node.outputs)
            elif deciding is not None and shapes.issuperset(node.inputs):
                if not are_decided(value for i, value in enumerate(node.inputs) if i in deciding):
                    continue
                shapes.update(node.outputs)
                if node.kind in ONLY_SHAPES or (node.kind not in NOT_DETERMINED and are_decided(node.inputs)):
                    contents.update(node.outputs)

    follow(graph)
    return shapes
