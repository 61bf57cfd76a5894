"""Which inputs of a graph its in-place operators may write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import analyze
from irc.alias.rules import may_write
from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from irc.ir import Graph

_APPEND = "irc::append_"
"""Writes only behind what its operand shows, and only in memory that the run owns: no input needs a copy for it."""


def written_inputs(graph: Graph) -> frozenset[str]:
    """The names of the inputs whose memory a run may change; a superset of those that it does change.

    Inputs count as different memory: those found here are copied before a run.
    """
    if not any(kind != _APPEND and may_write(kind) for kind in {node.kind for node in reachable_nodes(graph)}):
        return frozenset()  # most graphs: no need to analyse them
    db = analyze(graph, noalias=graph.inputs)
    return frozenset(v.name for v in graph.inputs if any(node.kind != _APPEND for node in db.writers(v)))
