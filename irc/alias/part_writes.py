"""Which nodes write which parts of tensors, for queries of the database that is given."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import regions
from irc.alias.location_sets import LocationSet, intersects
from irc.alias.memory_dag import MemoryDAG
from irc.alias.regions import Part, is_read_as_part, part_of, reads_elements
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
        self._at: tuple[int, int] | None = None  # if nothing is remembered
        self._is_written = cache(self._find_written)
        self._part_read = cache(self._find_part_read)
        self._few_writing = cache(partial(index.few_writing, most=_MOST_WRITERS))
        self._part = cache(partial(part_of, db))
        self._own = cache(self._find_own)
        self._targets = cache(self._find_targets)
        self._memos = self._is_written, self._part_read, self._few_writing, self._part, self._own, self._targets

    def forget(self) -> None:
        """Refer to no value any more."""
        self._db.views.forget()
        if self._at is not None:  # each update calls this, and most graphs have no parts to remember
            self._at = None
            for remembered in self._memos:
                remembered.cache_clear()

    def _catch_up(self) -> None:
        """Forget what was remembered before the graph, or what its values denote, changed."""
        at = self._db.graph.changes, self._dag.version  # asking may let values denote more
        if at != self._at:
            self.forget()
            self._at = at

    def as_read(self, value: Value, contained: bool = True) -> Read:
        """What reading ``value`` reads; a part only if all that reads it surely reads no more."""
        self._catch_up()
        return Read(self._reach(value, contained), self._part_read(value))

    def _find_part_read(self, value: Value) -> Part | None:
        part = self._part(value)
        return None if part is None or not is_read_as_part(self._db, value) else part

    def is_written(self, value: Value, scope: Block | None, contained: bool) -> bool:
        """Whether some node may write memory of ``value``, or of what it holds, in one execution of ``scope``."""
        self._catch_up()
        return self._is_written(value, scope, contained)

    def _find_written(self, value: Value, scope: Block | None, contained: bool) -> bool:
        reach = self._reach(value, contained)
        if not self._index.touches(reach):
            return False
        if self._few_writing(reach) is None:
            return True
        writers = self._writers(read := Read(reach, self._part_read(value)))
        return writers is None or any(self.writes(node, read, scope) for node in writers)

    def is_written_between(self, value: Value, first: Node, last: Node, scope: Block | None) -> bool:
        """As `AliasDb.writes_between`, of storage that is written there.

        No path between the two leaves ``scope``.
        """
        read = self.as_read(value)
        writers = self._writers(read)
        if writers is None:
            return True
        writers = [node for node in writers if self.writes(node, read, scope)]
        return bool(writers) and writes_between(SomeWriters(writers), read.reach, first, last)

    def writes(self, node: Node, read: Read, scope: Block | None) -> bool:
        """Whether ``node`` itself may write what is read, in one execution of ``scope``."""
        if not any(intersects(locations, read.reach) for locations in self._own(node)):
            return False
        part = read.part
        written = None if part is None else self._written_parts(node, read.reach)
        return part is None or written is None or any(part.apart(other, scope) is None for other in written)

    def conflict(self, a: Node, b: Node) -> bool:
        """As `AliasDb.conflict`, for nodes of which one writes storage that the other reads or writes."""
        self._catch_up()
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
        parts = list(map(self._part, operands))
        return any(part is None or part.apart(each, node.block) is None for part in parts for each in written)

    def _writers(self, read: Read) -> list[Node] | None:
        """The nodes that write memory of which a part is read; None if they are too many, or it is no part."""
        return None if read.part is None else self._few_writing(read.reach)

    def _reach(self, value: Value, contained: bool) -> LocationSet:
        return self._db.reach_set(value) if contained else self._db.location_set(value)

    def _find_own(self, node: Node) -> list[LocationSet]:
        """The locations that ``node`` itself writes, a set for each thing that it writes."""
        return [self._dag.locations(element) for element in self._index.own(node)]

    def _written_parts(self, node: Node, reach: LocationSet) -> list[Part] | None:
        """The parts in ``reach`` that ``node`` writes; None if not known."""
        targets = self._targets(node)
        if targets is None:
            return None
        parts = [part for part, locations in targets if intersects(locations, reach)]
        return [part for part in parts if part is not None] if None not in parts else None

    def _find_targets(self, node: Node) -> list[tuple[Part | None, LocationSet]] | None:
        """What ``node`` writes, and where that is, with the part if it is known to be one; None if not known."""
        written = regions.written(node)
        places = list(map(self._db.location_set, written or ()))
        if written is None or any(locations not in places for locations in self._own(node)):
            return None
        return list(zip(map(self._part, written), places))
