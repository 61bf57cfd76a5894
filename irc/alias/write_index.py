"""Which nodes write what.

Kept apart from the points-to facts: a write is noted as *this node writes
what that element denotes*, so that either may change without the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from irc.alias.facts import WORLD
from irc.alias.memory_dag import MemoryDAG
from irc.alias.sets import EMPTY, BigSet, LocationSet, contains, intersects, members
from irc.alias.writer_order import WriterOrder
from irc.ir.block import Block
from irc.ir.bulk import no_collection
from irc.ir.node import Node
from irc.ops.metadata import Change

Counts = dict[int, int]
_Key = TypeVar("_Key")


class WriteLog:
    """The writes as rules note them.

    Attributes:
        entries: (node, element that it writes), in order.
        metadata: those that change metadata of tensors -> how much.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[Node, int]] = []
        self.metadata: dict[tuple[Node, int], Change] = {}

    def add(self, node: Node, element: int, change: Change = Change.ELEMENTS) -> None:
        """``node`` writes what ``element`` denotes."""
        self.entries.append((node, element))
        if change:
            self.metadata[node, element] = max(change, self.metadata.get((node, element), change))


class WriteIndex(WriteLog):
    """The writes by node and by location, for queries.

    The index takes over a log when it is first queried. Single locations, which are
    nearly all, are counted one by one, larger sets set by set, so that adding or removing a
    write takes time that does not depend on how many there are.
    """

    def __init__(self, log: WriteLog, dag: MemoryDAG) -> None:
        super().__init__()
        self.entries = log.entries
        self.metadata = log.metadata
        self._dag = dag
        self._reshaped: dict[Change, LocationSet] = {}
        """Least change -> where metadata changes by as much; filled on demand."""
        self._own: dict[Node, list[int]] = {}
        """Node -> the elements that it writes itself."""
        self._writers: dict[int, list[Node]] = {}
        """Element -> the nodes that write it themselves."""
        self._nested: dict[Node, frozenset[int]] = {}
        """Node with blocks -> the elements that it or any node inside it writes; filled on demand."""
        self._ordered: dict[LocationSet, WriterOrder] = {}
        """Locations -> the nodes that write exactly these, in order; filled on demand."""
        self._locations: dict[int, LocationSet] = {}
        """Element that is written -> its locations, as counted below."""
        self._stale: set[int] = set()
        """Those that have changed since they were counted."""
        self._at: dict[LocationSet, dict[int, None]] | None = None
        """Locations -> the written elements that denote them; None until first needed."""
        self._single: Counts = {}
        self._several: dict[LocationSet, int] = {}
        self._union: LocationSet | None = EMPTY
        """All locations in those of ``_several`` that are large; None when it has to be computed again."""
        self._small_at: dict[int, dict[LocationSet, None]] = {}
        """Location -> those of ``_several`` that are small and have it."""
        self._large: dict[LocationSet, None] = {}
        """The others of ``_several``."""

    def __bool__(self) -> bool:
        """Whether anything is written at all."""
        return bool(self.entries or self._own)

    def add(self, node: Node, element: int, change: Change = Change.ELEMENTS) -> None:
        super().add(node, element, change)
        if change:
            self._reshaped.clear()

    def _catch_up(self) -> None:
        if self.entries:
            entries, self.entries = self.entries, []
            with no_collection():
                for node, element in entries:
                    self._enter(node, element)

    def _enter(self, node: Node, element: int) -> None:
        self._own.setdefault(node, []).append(element)
        writers = self._writers.get(element)
        if writers is None:
            self._writers[element] = [node]
            self._count(element)
        else:
            writers.append(node)
        if self._ordered:
            locations = self._locations[element]
            order = self._ordered.get(locations)
            if order is not None and not order.add(node):
                del self._ordered[locations]
        self._forget_nested(node)

    def _forget_nested(self, node: Node | None) -> None:
        while self._nested and node is not None:
            self._nested.pop(node, None)
            node = node.outer

    # -- updates ---------------------------------------------------------

    def renest(self, node: Node) -> None:
        """Nodes have left the blocks of ``node``, or entered them."""
        self._ordered.clear()
        self._forget_nested(node)

    def remove(self, node: Node) -> None:
        """Forget what ``node`` itself writes."""
        self._catch_up()
        for element in self._own.pop(node, ()):
            if self.metadata and self.metadata.pop((node, element), None):
                self._reshaped.clear()
            self._forget_nested(node)
            writers = self._writers[element]
            writers.remove(node)
            locations = self._locations[element]
            order = self._ordered.get(locations)
            if order is not None and not order.remove(node):
                del self._ordered[locations]
            if not writers:
                del self._writers[element]
                self._discount(element)
        self._nested.pop(node, None)

    def redirect(self, old: int, new: int) -> None:
        """Count writes to ``old`` as writes to ``new`` instead."""
        self._catch_up()
        for node in dict.fromkeys(self._writers.get(old, ())):
            elements = self._own[node]
            changes = [self.metadata.get((node, element), Change.ELEMENTS) for element in elements]
            self.remove(node)
            for element, change in zip(elements, changes):
                self.add(node, new if element == old else element, change)
        self._catch_up()

    def changed(self, element: int) -> None:
        """What ``element`` denotes has changed. It is recounted at the next query: thousands of changes may come."""
        if element in self._locations:
            self._stale.add(element)
            self._reshaped.clear()

    def _recount(self) -> None:
        """Enter the logged writes, and count elements that have changed again."""
        self._catch_up()
        if self._stale:
            for element in list(self._stale):
                self._ordered.pop(self._locations[element], None)
                self._discount(element)
                self._count(element)
                self._ordered.pop(self._locations[element], None)

    def _count(self, element: int) -> None:
        locations = self._locations[element] = self._dag.locations(element)
        if self._at is not None:
            self._at.setdefault(locations, {})[element] = None
        if isinstance(locations, int):
            self._single[locations] = self._single.get(locations, 0) + 1
        else:
            before = self._several.get(locations, 0)
            self._several[locations] = before + 1
            if not before:
                self._enter_set(locations)

    def _discount(self, element: int) -> None:
        locations = self._locations.pop(element)
        self._stale.discard(element)
        if self._at is not None:
            del self._at[locations][element]
        if not isinstance(locations, int):
            gone = _decrement(self._several, locations)
            if gone:
                self._drop_set(locations)
        else:
            gone = _decrement(self._single, locations)
        if gone:
            self._ordered.pop(locations, None)
            if self._at is not None:
                del self._at[locations]

    def _enter_set(self, locations: LocationSet) -> None:
        if isinstance(locations, frozenset):
            for x in locations:
                self._small_at.setdefault(x, {})[locations] = None
            return
        self._large[locations] = None
        if self._union is not None:
            self._union = self._dag.sets.union(self._union, locations)

    def _drop_set(self, locations: LocationSet) -> None:
        if not isinstance(locations, frozenset):
            del self._large[locations]
            self._union = None
            return
        for x in locations:
            there = self._small_at[x]
            del there[locations]
            if not there:
                del self._small_at[x]

    # -- queries ---------------------------------------------------------

    def touches(self, locations: LocationSet) -> bool:
        """Whether anything writes one of ``locations``."""
        self._recount()
        if self._large:
            if self._union is None:
                self._union = self._dag.sets.union_all(self._large)
            if intersects(self._union, locations):
                return True
        for written in (self._single, self._small_at):
            if isinstance(locations, int) or len(locations) <= len(written):
                if any(x in written for x in members(locations)):
                    return True
            elif any(contains(locations, x) for x in written):
                return True
        return False

    def reshaped(self, least: Change) -> LocationSet:
        """The locations of tensors whose metadata something changes, at least as much as ``least``."""
        if not self.metadata:
            return EMPTY
        self._recount()
        found = self._reshaped.get(least)
        if found is None:
            elements = dict.fromkeys(element for (_, element), change in self.metadata.items() if change >= least)
            found = self._reshaped[least] = self._dag.sets.union_all([self._locations[e] for e in elements])
        return found

    def elements(self, node: Node) -> Collection[int]:
        """The elements that ``node``, or one inside it, writes."""
        self._catch_up()
        if not node.blocks:
            return self._own.get(node, ())
        found = self._nested.get(node)
        if found is None:
            inside = [node, *node.nested()]
            found = self._nested[node] = frozenset(e for n in inside for e in self._own.get(n, ()))
        return found

    def locations(self, node: Node) -> LocationSet:
        """What ``node``, and those inside it, write."""
        elements = self.elements(node)
        if not elements:
            return EMPTY
        dag = self._dag
        return dag.sets.union_all([dag.locations(e) for e in elements])

    def writes_element(self, node: Node, element: int) -> bool:
        """Whether ``node``, or one inside it, was noted to write ``element`` itself."""
        return element in self.elements(node)

    def acts_on_world_between(self, first: Node, last: Node) -> bool:
        """Whether some node strictly between two nodes of one block acts on the world."""
        self._catch_up()
        return WORLD in self._writers and self._is_written_between(WORLD, first, last)

    def written_between(self, locations: LocationSet, first: Node | None, last: Node) -> bool:
        """Whether some node strictly between ``first`` and ``last``, of one block, writes one of ``locations``.

        Without ``first``, all nodes before ``last`` count. Either the nodes are examined one by one or the sets that
        are written, whichever is shorter.
        """
        self._recount()
        left = self._ways(locations)
        node = last.prev
        while node is not None and node is not first:
            elements = self.elements(node)
            left -= 1 + len(elements)
            if left < 0:
                return any(self._is_written_between(s, first, last) for s in self._written(locations))
            if any(intersects(self._locations[e], locations) for e in elements):
                return True
            node = node.prev
        return False

    def written_in(self, block: Block, locations: LocationSet) -> bool:
        """Whether some node in ``block``, or nested in one, writes one of ``locations``."""
        return any(block in self._order(s).blocks for s in self._written(locations))

    def writes_any(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node``, or one inside it, writes one of ``locations``; looks at its elements or at written sets."""
        self._recount()
        elements = self.elements(node)
        if len(elements) > self._ways(locations):
            return any(self._order(s).has(node) for s in self._written(locations))
        return any(intersects(self._locations[e], locations) for e in elements)

    def writes_itself(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node``, not what is inside of it, writes one of ``locations``."""
        self._recount()
        return any(intersects(self._locations[e], locations) for e in self._own.get(node, ()))

    def _ways(self, locations: LocationSet) -> int:
        """How many written sets may have to be examined to find those that intersect ``locations``."""
        if isinstance(locations, BigSet):
            return len(self._several) + min(len(self._single), len(locations))
        small = self._small_at
        return len(self._large) + sum([1 + len(small[x]) if x in small else 1 for x in members(locations)])

    def _is_written_between(self, locations: LocationSet, first: Node | None, last: Node) -> bool:
        """As ``written_between``, for ``locations`` that are exactly what some written element denotes."""
        return self._order(locations).any_between(first, last)

    def _order(self, locations: LocationSet) -> WriterOrder:
        """The order of the nodes that write elements which denote exactly ``locations``."""
        found = self._ordered.get(locations)
        if found is None:
            found = self._ordered[locations] = WriterOrder(self._writing_just(locations))
        return found

    def is_in_order(self) -> bool:
        """Whether the writers kept in order are complete and still in order; for checks."""
        return all(order.blocks == WriterOrder(self._writing_just(s)).blocks for s, order in self._ordered.items())

    def writers(self, element: int) -> Sequence[Node]:
        """The nodes that were noted to write ``element`` itself."""
        self._catch_up()
        return self._writers.get(element, ())

    def writing(self, locations: LocationSet) -> list[Node]:
        """The nodes that write one of ``locations`` themselves."""
        return list(dict.fromkeys(node for s in self._written(locations) for node in self._writing_just(s)))

    def _written(self, locations: LocationSet) -> Iterator[LocationSet]:
        """The sets that written elements denote and that intersect ``locations``."""
        self._recount()
        if isinstance(locations, int) or len(locations) < len(self._single):
            yield from (x for x in members(locations) if x in self._single)
        else:
            yield from (x for x in self._single if contains(locations, x))
        if isinstance(locations, BigSet):
            yield from (s for s in self._several if intersects(s, locations))
        else:
            yield from dict.fromkeys(s for x in members(locations) for s in self._small_at.get(x, ()))
            yield from (s for s in self._large if intersects(s, locations))

    def _writing_just(self, locations: LocationSet) -> Iterator[Node]:
        """The nodes that write elements which denote all of ``locations`` and nothing else."""
        at = self._at
        if at is None:
            at = self._at = {}
            for element, found in self._locations.items():
                at.setdefault(found, {})[element] = None
        return (node for element in at[locations] for node in self._writers[element])

    def nodes(self) -> list[Node]:
        """The nodes that write themselves, not the nodes around them."""
        self._catch_up()
        return list(self._own)


def _decrement(counts: dict[_Key, int], key: _Key) -> bool:
    """Take one off a count, and drop it at zero. Returns whether it was dropped."""
    left = counts[key] - 1
    if left:
        counts[key] = left
        return False
    del counts[key]
    return True
