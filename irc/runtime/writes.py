"""Which inputs of a graph its in-place operators may write to, and which outputs are inputs with other elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import analyze
from irc.alias.rules import may_write
from irc.alias.sets import members
from irc.ir.ops.pointwise import SCATTERING
from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from collections.abc import Collection

    from irc.ir import Graph, Value

_APPEND = "irc::append_"
"""Writes only behind what its operand shows, and only in memory that the run owns: no input needs a copy for it."""

_LONGER = (_APPEND, "onnx::Concat")
"""Give their first operand with others behind it."""


def written_inputs(graph: Graph) -> frozenset[str]:
    """The names of the inputs whose memory a run may change; a superset of those that it does change.

    Inputs count as different memory: those found here are copied before a run.
    """
    if not any(kind != _APPEND and may_write(kind) for kind in {node.kind for node in reachable_nodes(graph)}):
        return frozenset()  # most graphs: no need to analyse them
    db = analyze(graph, noalias=graph.inputs)
    return frozenset(v.name for v in graph.inputs if any(node.kind != _APPEND for node in db.writers(v)))


def overwritten_inputs(graph: Graph, written: Collection[str]) -> dict[str, frozenset[int]]:
    """By input name: the positions of the outputs that are the input, in whatever branch, with some elements changed.

    Or with more behind it in some branches, as attention has it that takes caches of either kind.

    Args:
        graph: the graph.
        written: the names of inputs that in-place operators write to (`written_inputs`).
    """
    changing = [node for node in graph.walk() if node.kind in SCATTERING or (node.kind in _LONGER and node.inputs)]
    if not written and all(node.kind in _LONGER for node in changing):
        return {}
    db = analyze(graph, noalias=graph.inputs)

    def memory(value: Value) -> frozenset[int]:
        return frozenset(members(db.location_set(value)))

    edges = [(memory(node.inputs[0]), memory(node.output), node.kind in SCATTERING) for node in changing]
    outputs = [memory(value) for value in graph.outputs]
    found: dict[str, frozenset[int]] = {}
    for value in graph.inputs:
        own = memory(value)
        became, changes = own, value.name in written
        pending = edges
        while True:
            met = [edge for edge in pending if edge[0] & became]
            if not met:
                break
            pending = [edge for edge in pending if not edge[0] & became]
            became = became.union(*(results for _, results, _ in met))
            changes = changes or any(scatters for _, _, scatters in met)
        if changes:
            found[value.name] = frozenset(i for i, output in enumerate(outputs) if output and output <= became)
    return found
