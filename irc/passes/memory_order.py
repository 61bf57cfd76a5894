"""Which nodes of a block must stay in order because of memory, in at most as many pairs as nodes and accesses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from irc.alias.location_sets import EMPTY, BigSet, LocationSet, intersects, members

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Node

_MOST = 16
"""Once more nodes than this are waited for, the first node that waited for all of them stands in for them."""


def memory_order(db: AliasDb, nodes: Sequence[Node]) -> list[set[int]]:
    """For each node of a block, the positions of earlier nodes that must run before it.

    A node that writes memory waits for those that wrote or read it before; a node that reads memory waits for those
    that wrote it. A node that acts on the world waits for all nodes before it, and all later nodes wait for it.
    Positions that others imply may be missing; otherwise their number would be quadratic.

    Args:
        db: the analysis of the graph.
        nodes: nodes of one block, in order.
    """
    waits: list[set[int]] = [set() for _ in nodes]
    if not db.any_writes():
        return waits
    written = [db.write_set(node) for node in nodes]
    if all(places is EMPTY for places in written):
        return waits
    read = [db.read_set(node) for node in nodes]
    large = dict.fromkeys(places for places in (*read, *written) if isinstance(places, BigSet))
    memory = _Memory(reduce(db.union, large, EMPTY))
    barrier: int | None = None
    for position, node in enumerate(nodes):
        before = waits[position]
        if db.has_side_effects(node):
            before.update(range(barrier or 0, position))
            barrier = position
        elif barrier is not None:
            before.add(barrier)
        memory.access(read[position], False, position, before)
        memory.access(written[position], True, position, before)
        before.discard(position)
    return waits


class _Memory:
    """The nodes that have read and written each location so far.

    Small sets are handled location by location. A large set, such as all that a list of thousands may hold, is not
    listed for each node that reads it: it is taken to meet every set that meets any large set.

    Args:
        shared: the union of all large sets.
    """

    def __init__(self, shared: LocationSet) -> None:
        self._shared = shared
        self._writer: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}
        self._crowds = {(large, writes): _Crowd() for large in (False, True) for writes in (False, True)}

    def access(self, places: LocationSet, writes: bool, position: int, waits: set[int]) -> None:
        """The node at ``position`` reads or writes ``places``; add the positions it must wait for to ``waits``."""
        large = isinstance(places, BigSet)
        if intersects(places, self._shared):
            for (other_large, other_writes), crowd in self._crowds.items():
                if (large or other_large) and (writes or other_writes):
                    crowd.wait(position, waits)
            self._crowds[large, writes].positions.append(position)
        for location in () if large else members(places):
            if location in self._writer:
                waits.add(self._writer[location])
            if writes:
                waits.update(self._readers.pop(location, ()))
                self._writer[location] = position
            else:
                self._readers.setdefault(location, []).append(position)


class _Crowd:
    """Positions of nodes that later nodes wait for."""

    def __init__(self) -> None:
        self.positions: list[int] = []

    def wait(self, position: int, waits: set[int]) -> None:
        waits.update(self.positions)
        if len(self.positions) > _MOST:
            self.positions = [position]
