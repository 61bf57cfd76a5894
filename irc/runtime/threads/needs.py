"""Which operators of a block must have run before which: values, memory and side effects ask for it.

What an operator needs may be left to one of those that it needs, so that a graph has needs of no more than its size.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from irc.alias.sets import EMPTY, BigSet, LocationSet, intersects, members

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from irc.alias import AliasDb
    from irc.ir import Node

_MOST = 16
"""If more than so many are waited for, others wait for the first that has waited for all of these."""


def find_needs(
    db: AliasDb,
    nodes: Sequence[Node],
    reads: Sequence[Collection[int]],
    makes: Sequence[Collection[int]],
    touched: Sequence[Collection[int]],
    overwritten: Sequence[Collection[int]],
) -> list[set[int]]:
    """For each operator of a block the positions of earlier ones that must have run before it.

    Those that these need in turn may be missing.

    Args:
        db: the analysis of the graph.
        nodes: the operators, in order.
        reads: for each the slots that it reads.
        makes: for each the slots that it fills.
        touched: for each the classes of memory that it reads.
        overwritten: for each the classes of memory that it may write over because nothing needs them later, which
            the graph does not say. Nobody may be reading them any more then.
    """
    needs: list[set[int]] = [set() for _ in nodes]
    maker: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for position in range(len(nodes)):
        needs[position].update(maker[slot] for slot in reads[position] if slot in maker)
        for storage in overwritten[position]:
            needs[position].update(readers.get(storage, ()))
            readers[storage] = [position]
        for storage in touched[position]:
            readers.setdefault(storage, []).append(position)
        for slot in makes[position]:
            maker[slot] = position
    _add_memory(db, nodes, needs)
    return needs


def _add_memory(db: AliasDb, nodes: Sequence[Node], needs: list[set[int]]) -> None:
    """Whoever writes waits for who wrote or read the same before; whoever reads, for who wrote it."""
    written = [db.write_set(node) for node in nodes]
    if all(places is EMPTY for places in written):
        return
    read = [db.read_set(node) for node in nodes]
    large = dict.fromkeys(places for places in (*read, *written) if isinstance(places, BigSet))
    memory = _Memory(reduce(db.union, large, EMPTY))
    barrier: int | None = None
    for position, node in enumerate(nodes):
        if db.has_side_effects(node):
            needs[position].update(range(barrier or 0, position))
            barrier = position
        elif barrier is not None:
            needs[position].add(barrier)
        memory.access(read[position], False, position, needs[position])
        memory.access(written[position], True, position, needs[position])
        needs[position].discard(position)


class _Memory:
    """Who has read and written which memory.

    Small sets are looked at place by place. What is in a large one, such as all that a list of thousands may hold, is
    not listed for each who reads it: there, it is taken to meet all that meets any large set.

    Args:
        shared: all that is in large sets.
    """

    def __init__(self, shared: LocationSet) -> None:
        self._shared = shared
        self._writer: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}
        self._crowds = {(large, writes): _Crowd() for large in (False, True) for writes in (False, True)}

    def access(self, places: LocationSet, writes: bool, position: int, needs: set[int]) -> None:
        """The operator at ``position`` reads or writes ``places``; what it waits for goes into ``needs``."""
        large = isinstance(places, BigSet)
        if intersects(places, self._shared):
            for (other_large, other_writes), crowd in self._crowds.items():
                if (large or other_large) and (writes or other_writes):
                    crowd.wait(position, needs)
            self._crowds[large, writes].positions.append(position)
        for location in () if large else members(places):
            if location in self._writer:
                needs.add(self._writer[location])
            if writes:
                needs.update(self._readers.pop(location, ()))
                self._writer[location] = position
            else:
                self._readers.setdefault(location, []).append(position)


class _Crowd:
    """Operators that others wait for."""

    def __init__(self) -> None:
        self.positions: list[int] = []

    def wait(self, position: int, needs: set[int]) -> None:
        needs.update(self.positions)
        if len(self.positions) > _MOST:
            self.positions = [position]
