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
    from collections.abc import Container, Mapping

    from irc.ir import Node, Value


def own_groups(graph: Graph) -> dict[Node, Graph]:
    """The fusion groups in the top block of ``graph`` that share their subgraph with no other node."""
    users = Counter(map(inner_graph, graph.walk()))
    groups = ((node, inner_graph(node)) for node in graph.block.nodes)
    return {node: group for node, group in groups if group is not None and users[group] == 1}


def fixed_shapes(graph: Graph, groups: Mapping[Node, Graph], written: Container[Value]) -> set[Value]:
    """The values of the top block of ``graph`` and of its ``groups`` whose shapes the shapes of its inputs decide.

    Args:
        graph: the graph.
        groups: fusion groups of its top block, with their subgraphs.
        written: values whose contents something may change.
    """
    known = _Fixed(groups, written)
    known.shapes.update(graph.inputs)
    known.follow(graph)
    return known.shapes


class _Fixed:
    """What is known to be fixed.

    Attributes:
        shapes: the values of fixed shape.
        contents: those of fixed contents.
    """

    def __init__(self, groups: Mapping[Node, Graph], written: Container[Value]) -> None:
        self._groups = groups
        self._written = written
        self.shapes: set[Value] = set()
        self.contents: set[Value] = set()

    def follow(self, graph: Graph) -> None:
        """Add what the nodes of ``graph`` make."""
        for node in graph.block.nodes:
            if node in self._groups:
                self._follow_group(node, self._groups[node])
            elif node.kind == CONSTANT:
                self.shapes.update(node.outputs)
                self.contents.update(node.outputs)
            elif self._fixes_shape(node):
                self.shapes.update(node.outputs)
                if self._fixes_contents(node):
                    self.contents.update(v for v in node.outputs if v not in self._written)

    def _follow_group(self, node: Node, group: Graph) -> None:
        for known in (self.shapes, self.contents):
            known.update(inner for outer, inner in zip(node.inputs, group.inputs) if outer in known)
        self.follow(group)
        outputs = list(zip(node.outputs, group.outputs))
        self.shapes.update(outer for outer, inner in outputs if inner in self.shapes)
        self.contents.update(v for v, inner in outputs if inner in self.contents and v not in self._written)

    def _fixes_shape(self, node: Node) -> bool:
        deciding = shape_operands(node.kind)
        if deciding is None or not all(v in self.shapes for v in node.inputs):
            return False
        return all(v in self.contents for i, v in enumerate(node.inputs) if i in deciding)

    def _fixes_contents(self, node: Node) -> bool:
        if node.kind in ONLY_SHAPES:
            return True
        return node.kind not in NOT_DETERMINED and all(v in self.contents for v in node.inputs)
