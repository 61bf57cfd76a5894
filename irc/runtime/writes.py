"""Which inputs of a graph its in-place operators may write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.ops import functional_by_default, schemas
from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from irc.ir import Graph

_STATISTICS = frozenset(["aten::batch_norm", "aten::instance_norm", "aten::native_batch_norm"])
"""Operators that write running statistics in training mode, which no annotation says."""

_APPEND = "irc::append_"
"""Writes only behind what its operand shows, and only in memory that the run owns: no input needs a copy for it."""


def written_inputs(graph: Graph) -> frozenset[str]:
    """The names of the inputs whose memory a run may change; a superset of those that it does change.

    Inputs count as different memory: those found here are copied before a run.
    """
    if not any(_may_write(node.kind) for node in reachable_nodes(graph)):
        return frozenset()  # most graphs: no need to analyse them
    from irc.alias import analyze

    db = analyze(graph, noalias=graph.inputs)
    return frozenset(v.name for v in graph.inputs if any(node.kind != _APPEND for node in db.writers(v)))


def _may_write(kind: str) -> bool:
    """Whether operators of ``kind`` may write: by their rows, or by their name (``Relu_``)."""
    if kind == _APPEND:
        return False
    if functional_by_default(kind) or not (rows := schemas(kind)):
        return kind.endswith("_") and not kind.endswith("__")
    return kind in _STATISTICS or any(row.is_mutable for row in rows)
