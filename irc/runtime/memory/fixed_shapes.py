"""Which values have the same shape in every run whose inputs have the same shapes.

Declared types are not asked: a model's own may be wrong. What an operator's
results depend on is known (`irc.ir.ops.shape_operands`), and so two things are
followed from node to node: whether the shape of a value is decided by the
shapes of the graph's inputs, and whether its contents are. All else may differ.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from irc.alias import analyze
from irc.ir.graph import Graph
from irc.ir.ops.shape_operands import NOT_DETERMINED, ONLY_SHAPES, SHAPE_OPERANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from irc.ir import Node, Value


def own_groups(graph: Graph) -> dict[Node, Graph]:
    """The fusion groups in the top block of ``graph`` that share their subgraph with no other node."""
    users = Counter(node.attributes.get("Subgraph") for node in graph.walk() if "Subgraph" in node.attributes)
    return {
        node: group
        for node in graph.block.nodes
        if isinstance(group := node.attributes.get("Subgraph"), Graph) and users[group] == 1
    }


def fixed_shapes(graph: Graph, groups: Mapping[Node, Graph]) -> set[Value]:
    """The values of the top block of ``graph`` and of its ``groups`` whose shapes the shapes of its inputs decide."""
    known = _Fixed(groups)
    known.shapes.update(graph.inputs)
    known.follow(graph)
    return known.shapes


class _Fixed:
    """What is known to be fixed.

    Attributes:
        shapes: the values of fixed shape.
        contents: those of fixed contents.
    """

    def __init__(self, groups: Mapping[Node, Graph]) -> None:
        self._groups = groups
        self.shapes: set[Value] = set()
        self.contents: set[Value] = set()

    def follow(self, graph: Graph) -> None:
        """Add what the nodes of ``graph`` make."""
        db = analyze(graph)
        for node in graph.block.nodes:
            if node in self._groups:
                self._follow_group(node, self._groups[node])
            elif node.kind == "prim::Constant":
                self.shapes.update(node.outputs)
                self.contents.update(node.outputs)
            elif self._fixes_shape(node):
                self.shapes.update(node.outputs)
                if self._fixes_contents(node):
                    self.contents.update(v for v in node.outputs if not db.has_writers(v))

    def _follow_group(self, node: Node, group: Graph) -> None:
        for known in (self.shapes, self.contents):
            known.update(inner for outer, inner in zip(node.inputs, group.inputs) if outer in known)
        self.follow(group)
        for known in (self.shapes, self.contents):
            known.update(outer for outer, inner in zip(node.outputs, group.outputs) if inner in known)

    def _fixes_shape(self, node: Node) -> bool:
        deciding = SHAPE_OPERANDS.get(node.kind)
        if deciding is None or not all(v in self.shapes for v in node.inputs):
            return False
        return all(v in self.contents for i, v in enumerate(node.inputs) if i in deciding)

    def _fixes_contents(self, node: Node) -> bool:
        if node.kind in ONLY_SHAPES:
            return True
        return node.kind not in NOT_DETERMINED and all(v in self.contents for v in node.inputs)
