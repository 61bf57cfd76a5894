"""Who writes what.

Kept apart from the points-to facts: a write is noted as *this node writes
what that element denotes*, so that either may change without the other.
"""

from __future__ import annotations

from typing import TypeVar

from irc.alias.memory_dag import MemoryDAG
from irc.alias.sets import EMPTY, LocationSet, contains, intersects, members
from irc.ir.node import Node

Counts = dict[int, int]
_Key = TypeVar("_Key")


class WriteLog:
    """The writes as rules note them: (node, element that it writes), in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[Node, int]] = []

    def add(self, node: Node, element: int) -> None:
        """``node`` writes what ``element`` denotes."""
        self.entries.append((node, element))


class WriteIndex(WriteLog):
    """The writes by node and by location: what queries ask.

    It takes over a log when it is first asked. Single locations, which are
    nearly all, are counted one by one, larger sets set by set, so that a
    write comes and goes in time that does not depend on how many there are.
    """

    def __init__(self, log: WriteLog, dag: MemoryDAG) -> None:
        super().__init__()
        self.entries = log.entries
        self._dag = dag
        self._own: dict[Node, list[int]] = {}
        """Node -> the elements that it writes itself."""
        self._around: dict[Node, tuple[Node, ...]] = {}
        """Writing node -> the nodes it is nested in, innermost first."""
        self._all: dict[Node, Counts] = {}
        """Node -> element -> how often the node, or one inside it, writes it."""
        self._writers: dict[int, dict[Node, None]] = {}
        """Element -> the nodes that write it themselves."""
        self._locations: dict[int, LocationSet] = {}
        """Element that is written -> its locations, as counted below."""
        self._single: Counts = {}
        self._several: dict[LocationSet, int] = {}
        self._union: LocationSet | None = EMPTY
        """All locations in ``_several``; None when it has to be computed again."""

    def __bool__(self) -> bool:
        """Whether anything is written at all."""
        return bool(self.entries or self._own)

    def _catch_up(self) -> None:
        if self.entries:
            entries, self.entries = self.entries, []
            for node, element in entries:
                self._enter(node, element)

    def _enter(self, node: Node, element: int) -> None:
        own = self._own.get(node)
        if own is None:
            own = self._own[node] = []
            self._around[node] = _around(node)
        own.append(element)
        for n in (node, *self._around[node]):
            counts = self._all.setdefault(n, {})
            counts[element] = counts.get(element, 0) + 1
        writers = self._writers.get(element)
        if writers is None:
            writers = self._writers[element] = {}
            self._count(element)
        writers[node] = None

    # -- updates ---------------------------------------------------------

    def remove(self, node: Node) -> None:
        """Forget what ``node`` itself writes."""
        self._catch_up()
        around = self._around.pop(node, ())
        for element in self._own.pop(node, ()):
            for n in (node, *around):
                _decrement(self._all[n], element)
                if not self._all[n]:
                    del self._all[n]
            writers = self._writers[element]
            writers.pop(node, None)
            if not writers:
                del self._writers[element]
                self._discount(element)

    def redirect(self, old: int, new: int) -> None:
        """Whoever writes ``old`` writes ``new`` instead."""
        self._catch_up()
        for node in list(self._writers.get(old, ())):
            elements = self._own[node]
            self.remove(node)
            for element in elements:
                self._enter(node, new if element == old else element)

    def changed(self, element: int) -> None:
        """What ``element`` denotes has changed."""
        if element in self._locations:
            self._discount(element)
            self._count(element)

    def _count(self, element: int) -> None:
        locations = self._locations[element] = self._dag.locations(element)
        if isinstance(locations, int):
            self._single[locations] = self._single.get(locations, 0) + 1
        else:
            self._several[locations] = self._several.get(locations, 0) + 1
            if self._union is not None:
                self._union = self._dag.sets.union(self._union, locations)

    def _discount(self, element: int) -> None:
        locations = self._locations.pop(element)
        if isinstance(locations, int):
            _decrement(self._single, locations)
        elif _decrement(self._several, locations):
            self._union = None

    # -- queries ---------------------------------------------------------

    def touches(self, locations: LocationSet) -> bool:
        """Whether anything writes one of ``locations``."""
        self._catch_up()
        if self._several:
            if self._union is None:
                self._union = self._dag.sets.union_all(self._several)
            if intersects(self._union, locations):
                return True
        single = self._single
        if isinstance(locations, int):
            return locations in single
        if len(single) < len(locations):
            return any(contains(locations, x) for x in single)
        return any(x in single for x in members(locations))

    def locations(self, node: Node) -> LocationSet:
        """What ``node``, and those inside it, write."""
        self._catch_up()
        counts = self._all.get(node)
        if counts is None:
            return EMPTY
        found = self._locations
        if len(counts) == 1:
            return found[next(iter(counts))]
        return self._dag.sets.union_all([found[e] for e in counts])

    def writes_element(self, node: Node, element: int) -> bool:
        """Whether ``node``, or one inside it, was noted to write ``element`` itself."""
        self._catch_up()
        counts = self._all.get(node)
        return counts is not None and element in counts

    def is_written(self, element: int) -> bool:
        """Whether any node was noted to write ``element`` itself."""
        self._catch_up()
        return element in self._writers

    def writing(self, locations: LocationSet) -> list[Node]:
        """The nodes that write one of ``locations`` themselves."""
        self._catch_up()
        found = {
            node: None
            for element, nodes in self._writers.items()
            if intersects(self._locations[element], locations)
            for node in nodes
        }
        return list(found)

    def nodes(self) -> list[Node]:
        """The nodes that write, not those around them."""
        self._catch_up()
        return list(self._own)


def _decrement(counts: dict[_Key, int], key: _Key) -> bool:
    """Take one off a count; whether it has come to nothing and is gone."""
    left = counts[key] - 1
    if left:
        counts[key] = left
        return False
    del counts[key]
    return True


def _around(node: Node) -> tuple[Node, ...]:
    """The nodes that ``node`` is nested in, innermost first."""
    found: list[Node] = []
    outer = node.block.node if node.block is not None else None
    while outer is not None:
        found.append(outer)
        outer = outer.block.node if outer.block is not None else None
    return tuple(found)
