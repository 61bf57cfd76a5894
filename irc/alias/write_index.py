"""Who writes what.

Kept apart from the points-to facts: a write is noted as *this node writes
what that element denotes*, so that either may change without the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import TypeVar

from irc.alias.facts import WORLD
from irc.alias.memory_dag import MemoryDAG
from irc.alias.sets import EMPTY, LocationSet, contains, intersects, members
from irc.ir.block import Block
from irc.ir.bulk import no_collection
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
        self._writers: dict[int, list[Node]] = {}
        """Element -> the nodes that write it themselves."""
        self._nested: dict[Node, frozenset[int]] = {}
        """Node with blocks -> the elements that it or any node inside it writes, as far as somebody asked."""
        self._blocked: dict[Block, list[Node]] | None = None
        """Block -> its nodes that act on the world, or hold one that does, in order; None until somebody asks."""
        self._locations: dict[int, LocationSet] = {}
        """Element that is written -> its locations, as counted below."""
        self._stale: set[int] = set()
        """Those that have changed since they were counted."""
        self._at: dict[LocationSet, list[int]] | None = None
        """Locations -> the elements that denote them and are written; None until somebody asks."""
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
        self._forget_nested(node, element)

    def _forget_nested(self, node: Node | None, element: int) -> None:
        if element == WORLD:
            self._blocked = None
        while self._nested and node is not None:
            self._nested.pop(node, None)
            node = node.block.node if node.block is not None else None

    # -- updates ---------------------------------------------------------

    def renest(self, node: Node) -> None:
        """Nodes have left the blocks of ``node``, or entered them."""
        self._blocked = None
        around: Node | None = node
        while self._nested and around is not None:
            self._nested.pop(around, None)
            around = around.block.node if around.block is not None else None

    def remove(self, node: Node) -> None:
        """Forget what ``node`` itself writes."""
        self._catch_up()
        for element in self._own.pop(node, ()):
            self._forget_nested(node, element)
            writers = self._writers[element]
            writers.remove(node)
            if not writers:
                del self._writers[element]
                self._discount(element)
        self._nested.pop(node, None)

    def redirect(self, old: int, new: int) -> None:
        """Whoever writes ``old`` writes ``new`` instead."""
        self._catch_up()
        for node in dict.fromkeys(self._writers.get(old, ())):
            elements = self._own[node]
            self.remove(node)
            for element in elements:
                self._enter(node, new if element == old else element)

    def changed(self, element: int) -> None:
        """What ``element`` denotes has changed. It is looked at when somebody asks: that may be after thousands."""
        if element in self._locations:
            self._stale.add(element)

    def _recount(self) -> None:
        """Catch up, and with what has changed too."""
        self._catch_up()
        if self._stale:
            for element in list(self._stale):
                self._discount(element)
                self._count(element)

    def _count(self, element: int) -> None:
        locations = self._locations[element] = self._dag.locations(element)
        self._at = None
        if isinstance(locations, int):
            self._single[locations] = self._single.get(locations, 0) + 1
        else:
            self._several[locations] = self._several.get(locations, 0) + 1
            if self._union is not None:
                self._union = self._dag.sets.union(self._union, locations)

    def _discount(self, element: int) -> None:
        locations = self._locations.pop(element)
        self._stale.discard(element)
        self._at = None
        if isinstance(locations, int):
            _decrement(self._single, locations)
        elif _decrement(self._several, locations):
            self._union = None

    # -- queries ---------------------------------------------------------

    def touches(self, locations: LocationSet) -> bool:
        """Whether anything writes one of ``locations``."""
        self._recount()
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
        """Whether some node between two of one block, neither of them counted, acts on the world."""
        self._catch_up()
        if WORLD not in self._writers:
            return False
        if self._blocked is None:
            found: dict[Block, dict[Node, None]] = {}
            for writer in self._writers[WORLD]:
                node: Node | None = writer
                while node is not None and node.block is not None:
                    found.setdefault(node.block, {})[node] = None
                    node = node.block.node
            self._blocked = {block: sorted(nodes, key=_order) for block, nodes in found.items()}
        # Such nodes are never moved nor passed, so their order stays what it was.
        nodes = self._blocked.get(first.block, ()) if first.block is not None else ()
        at = bisect_right(nodes, first.order, key=_order)
        return at < len(nodes) and nodes[at].order < last.order

    def is_written(self, element: int) -> bool:
        """Whether any node was noted to write ``element`` itself."""
        self._catch_up()
        return element in self._writers

    def writing(self, locations: LocationSet) -> list[Node]:
        """The nodes that write one of ``locations`` themselves."""
        self._recount()
        at = self._at
        if at is None:
            at = self._at = {}
            for element, found in self._locations.items():
                at.setdefault(found, []).append(element)
        if isinstance(locations, int) or len(locations) < len(self._single):
            written = [x for x in members(locations) if x in self._single]
        else:
            written = [x for x in self._single if contains(locations, x)]
        sets: list[LocationSet] = [*written, *(s for s in self._several if intersects(s, locations))]
        return list(dict.fromkeys(node for s in sets for element in at[s] for node in self._writers[element]))

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


def _order(node: Node) -> int:
    return node.order
