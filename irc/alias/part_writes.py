"""Which nodes write which parts of tensors, for queries of the database that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import regions
from irc.alias.location_sets import EMPTY, LocationSet, intersects
from irc.alias.memo import MEMORY
from irc.alias.memory_dag import MemoryDAG
from irc.alias.regions import Part, part_of, part_read_of, reads_elements
from irc.alias.write_index import SomeWriters, WriteIndex, writes_between
from irc.ir.node import Block, Node, Value

if TYPE_CHECKING:
    from irc.alias.db import AliasDb

_MOST_WRITERS = 32
"""Of memory that more nodes write, the parts that they write are not told apart."""


class Read(NamedTuple):
    """What reading a value reads: memory in ``reach`` and, if that is known, no more of it than ``part``."""

    reach: LocationSet
    part: Part | None


class PartWrites:
    """The writes of an analysis, by the parts of storages that they write."""

    def __init__(self, db: AliasDb, index: WriteIndex, dag: MemoryDAG) -> None:
        self._db = db
        self._index = index
        self._dag = dag

    def as_read(self, value: Value, contained: bool = True) -> Read:
        """What reading ``value`` reads; a part only if all that reads it surely reads no more."""
        return Read(self._reach(value, contained), part_read_of(self._db, value))

    def is_written(self, value: Value, scope: Block | None, contained: bool) -> bool:
        """Whether some node may write memory of ``value``, or of what it holds, in one execution of ``scope``."""
        return self._db.memo.answer(self._find_writers, value, scope, contained) != ()

    def _find_writers(self, value: Value, scope: Block | None, contained: bool) -> Sequence[Node] | None:
        """The nodes that may write what reading ``value`` reads; None if it is not known which."""
        memo = self._db.memo
        reach = self._reach(value, contained)
        memo.depend_on(MEMORY)
        memo.depend_on_writes(reach)
        if not self._index.touches(reach):
            return ()
        writers = self._index.few_writing(reach, _MOST_WRITERS)
        part = None if writers is None else part_read_of(self._db, value)
        if writers is None or part is None:
            return None
        if scope is not None and scope.node is not None:
            memo.depend_on(scope.node, *scope.node.around())
        read = Read(reach, part)
        return tuple(node for node in writers if self.writes(node, read, scope))

    def is_written_between(self, value: Value, first: Node, last: Node, scope: Block | None) -> bool:
        """As `AliasDb.writes_between`, of storage that is written there.

        No path between the two leaves ``scope``.
        """
        writers = self._db.memo.answer(self._find_writers, value, scope, True)
        return writers is None or (bool(writers) and writes_between(SomeWriters(writers), EMPTY, first, last))

    def writes(self, node: Node, read: Read, scope: Block | None) -> bool:
        """Whether ``node`` itself may write what is read, in one execution of ``scope``."""
        if not any(intersects(locations, read.reach) for locations in self._own(node)):
            return False
        part = read.part
        written = None if part is None else self._written_parts(node, read.reach)
        if part is None or written is None:
            return True
        return any(part.apart(other, scope, self._db.memo) is None for other in written)

    def conflict(self, a: Node, b: Node) -> bool:
        """As `AliasDb.conflict`, for nodes of which one writes storage that the other reads or writes."""
        return (
            not all(reads_elements(self._db, node) for node in (a, b))
            or self._writes_operand(a, b)
            or self._writes_operand(b, a)
        )

    def _writes_operand(self, node: Node, other: Node) -> bool:
        """Whether ``node`` may write an operand of ``other``, in one execution of their block."""
        own = self._own(node)
        if not own:
            return False
        everything = self._dag.sets.union_all(own)
        written = self._written_parts(node, everything)
        if written is None:
            return True
        operands = [v for v in other.inputs if intersects(self._reach(v, contained=True), everything)]
        parts, memo = [part_of(self._db, value) for value in operands], self._db.memo
        return any(part is None or part.apart(each, node.block, memo) is None for part in parts for each in written)

    def _reach(self, value: Value, contained: bool) -> LocationSet:
        return self._db.reach_set(value) if contained else self._db.location_set(value)

    def _own(self, node: Node) -> list[LocationSet]:
        """The locations that ``node`` itself writes, a set for each thing that it writes."""
        return [self._dag.locations(element) for element in self._index.own(node)]

    def _written_parts(self, node: Node, reach: LocationSet) -> list[Part] | None:
        """The parts in ``reach`` that ``node`` writes; None if not known."""
        targets = self._db.memo.answer(self._find_targets, node)
        if targets is None:
            return None
        parts = [part for part, locations in targets if intersects(locations, reach)]
        return [part for part in parts if part is not None] if None not in parts else None

    def _find_targets(self, node: Node) -> list[tuple[Part | None, LocationSet]] | None:
        """What ``node`` writes, and where that is, with the part if it is known to be one; None if not known."""
        memo, written = self._db.memo, regions.written(node)
        if written is None:
            return None
        memo.depend_on(MEMORY)
        places = list(map(self._db.location_set, written))
        # What it writes itself stays, while its operands and the facts do: no dependency on the writes there.
        if any(locations not in places for locations in self._own(node)):
            return None
        return [(part_of(self._db, value), locations) for value, locations in zip(written, places)]
