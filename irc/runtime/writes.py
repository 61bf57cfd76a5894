"""Which inputs of a graph its in-place operators may write to, and which outputs are inputs with other elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from irc.alias.rules import may_write
from irc.alias.sets import EMPTY, intersects, members
from irc.ir.ops.joins import APPEND, joined
from irc.ir.ops.pointwise import SCATTERING
from irc.runtime.binding import reachable_nodes
from irc.runtime.results import values_at

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.alias.sets import LocationSet
    from irc.ir import Value


class _Change(NamedTuple):
    """What an operator does that gives its operand with other elements, or with more behind them.

    Attributes:
        operand: what that may denote.
        result: what the result may denote.
        scatters: whether it changes elements, rather than to put more behind them.
    """

    operand: LocationSet
    result: LocationSet
    scatters: bool


class Writes:
    """What the runs of a graph write to.

    Args:
        db: the analysis of the graph, which must not change afterwards; it is not kept.

    Attributes:
        inputs: the names of the inputs whose memory a run may change; a superset of those that it does change.
            ``irc::append_`` writes only behind what its operand shows, and only in memory that the run owns: no input
            needs a copy for it.
    """

    def __init__(self, db: AliasDb) -> None:
        graph = db.graph
        self.inputs: frozenset[str] = frozenset()
        if db.any_writes() and any(k != APPEND and may_write(k) for k in {n.kind for n in reachable_nodes(graph)}):
            self.inputs = frozenset(v.name for v in graph.inputs if any(n.kind != APPEND for n in db.writers(v)))
        changing = [(n, join) for n in graph.walk() if (join := joined(n)) is not None or n.kind in SCATTERING]
        self._memory: dict[Value, LocationSet] = {}
        self._changes: list[_Change] = []
        if self.inputs or any(join is None for _, join in changing):
            self._memory = {v: db.location_set(v) for v in (*graph.inputs, *values_at(graph.outputs))}
            self._changes = [
                _Change(
                    db.location_set(n.inputs[0] if join is None else join.parts[0]),
                    db.location_set(n.output),
                    scatters=not join,
                )
                for n, join in changing
            ]
        self._inputs = {value.name: value for value in graph.inputs}

    def overwrites(self, value: Value, name: str) -> bool:
        """Whether ``value`` is the input ``name`` with some elements changed, through any branch, loop or view.

        In some branches it may instead have something appended, as in attention that takes caches of either kind.

        Args:
            value: an output of the graph, or an element of one that is a tuple.
            name: of an input.
        """
        memory, start = (self._memory.get(v, EMPTY) for v in (value, self._inputs[name]))
        became, changes = frozenset(members(start)), name in self.inputs
        pending = self._changes
        while met := [change for change in pending if intersects(change.operand, became)]:
            pending = [change for change in pending if not intersects(change.operand, became)]
            became = became.union(*(members(change.result) for change in met))
            changes = changes or any(change.scatters for change in met)
        return changes and memory is not EMPTY and became.issuperset(members(memory))
