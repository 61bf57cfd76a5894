"""Which inputs of a graph its in-place operators may write to, and which outputs are inputs with other elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import analyze
from irc.alias.rules import may_write
from irc.alias.sets import members
from irc.ir.ops.joins import APPEND, joined
from irc.ir.ops.pointwise import SCATTERING
from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from collections.abc import Collection

    from irc.ir import Graph, Value


def written_inputs(graph: Graph) -> frozenset[str]:
    """The names of the inputs whose memory a run may change; a superset of those that it does change.

    Inputs count as different memory: those found here are copied before a run. ``irc::append_`` writes only behind what
    its operand shows, and only in memory that the run owns: no input needs a copy for it.
    """
    if not any(kind != APPEND and may_write(kind) for kind in {node.kind for node in reachable_nodes(graph)}):
        return frozenset()  # most graphs: no need to analyse them
    db = analyze(graph, noalias=graph.inputs)
    return frozenset(v.name for v in graph.inputs if any(node.kind != APPEND for node in db.writers(v)))


class Overwrites:
    """Which values are an input with some elements changed, in whatever branch, loop or view.

    Or with more behind it in some branches, as attention has it that takes caches of either kind.

    Args:
        graph: the graph.
        written: the names of inputs that in-place operators write to (`written_inputs`).
    """

    def __init__(self, graph: Graph, written: Collection[str]) -> None:
        self._written = written
        changing = [(n, join) for n in graph.walk() if (join := joined(n)) is not None or n.kind in SCATTERING]
        self._db = None
        if written or any(join is None for _, join in changing):
            self._db = analyze(graph, noalias=graph.inputs)
        self._inputs = {value.name: value for value in graph.inputs}
        self._edges = [
            (self._memory(node.inputs[0] if join is None else join.parts[0]), self._memory(node.output), join is None)
            for node, join in changing
        ]

    def __call__(self, value: Value, name: str) -> bool:
        """Whether ``value`` is the input ``name`` with some elements changed."""
        memory, became, changes = self._memory(value), self._memory(self._inputs[name]), name in self._written
        pending = self._edges
        while met := [edge for edge in pending if edge[0] & became]:
            pending = [edge for edge in pending if not edge[0] & became]
            became = became.union(*(results for _, results, _ in met))
            changes = changes or any(scatters for _, _, scatters in met)
        return changes and bool(memory) and memory <= became

    def _memory(self, value: Value) -> frozenset[int]:
        return frozenset() if self._db is None else frozenset(members(self._db.location_set(value)))
