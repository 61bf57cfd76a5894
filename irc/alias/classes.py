"""Disjoint memory classes: values of different classes share no memory, whatever they hold."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from irc.alias.sets import EMPTY, BigSet, LocationSet, members

if TYPE_CHECKING:
    from irc.alias.db import AliasDb
    from irc.alias.locations import Kind
    from irc.ir.value import Value

FOREIGN = 0
"""The class of all memory that code outside may know, and of which nothing is known here."""


class MemoryClasses:
    """The memory classes of the values of several graphs, as precise as is needed before memory is overwritten.

    An `AliasDb` tells locations apart; here they are joined, so that the memory of a value is counted once, however
    many views of it, containers around it and paths to it there are. Joining loses precision, never soundness.

    Args:
        kinds: the kinds of memory that get classes of their own while unknown code cannot know it; all other memory
            is `FOREIGN`.
    """

    def __init__(self, kinds: Container[Kind]) -> None:
        self._kinds = kinds
        self._joined = _Joined()
        self._joined.new()  # FOREIGN, which swallows any other
        self._classes: dict[Value, int] = {}

    def add(self, db: AliasDb) -> None:
        """Add the values of the graph that ``db`` analyses, which must not change afterwards; ``db`` is not kept."""
        values = db.values_in_order()
        places = _Places(self._joined, self._kinds, db, values)
        self._classes.update((value, places.class_of(db.reach_set(value))) for value in values)

    def of(self, value: Value) -> int:
        """The class of ``value``, a number; `FOREIGN` for memory that others may know."""
        return self._joined.of(self._classes.get(value, FOREIGN))

    def join(self, a: Value, b: Value) -> None:
        """Record that ``a`` and ``b``, values of two graphs, are the same value."""
        self._joined.join(self._classes.get(a, FOREIGN), self._classes.get(b, FOREIGN))

    def values(self) -> Iterable[Value]:
        """The values of all graphs."""
        return self._classes.keys()


class _Places:
    """Joins the locations of one database that a single value of its graph may be at."""

    def __init__(self, joined: _Joined, kinds: Container[Kind], db: AliasDb, values: Iterable[Value]) -> None:
        self._joined = joined
        self._kinds = kinds
        self._db = db
        self._by_set: dict[LocationSet, int] = {EMPTY: FOREIGN}
        crowds = [value for value in values if isinstance(db.reach_set(value), BigSet)]
        # What values of very many locations may be is not worth telling apart.
        self._by_location = dict.fromkeys(members(db.reach_set(crowds)), FOREIGN)

    def class_of(self, reach: LocationSet) -> int:
        """The class of a value that may be at any of the locations in ``reach``."""
        found = self._by_set.get(reach)
        if found is None:
            found = FOREIGN if isinstance(reach, BigSet) else self._joined.new()
            for location in () if found == FOREIGN else members(reach):
                self._joined.join(found, self._location(location))
            self._by_set[reach] = found
        return found

    def _location(self, location: int) -> int:
        found = self._by_location.get(location)
        if found is None:
            private = self._db.is_private(location, self._kinds)
            found = self._by_location[location] = self._joined.new() if private else FOREIGN
        return found


class _Joined:
    """Union-find over class numbers: classes are joined, never split. `of` takes logarithmic time."""

    __slots__ = ("_parents",)

    def __init__(self) -> None:
        self._parents: list[int] = []

    def new(self) -> int:
        """A new class of its own; the first is 0."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def of(self, number: int) -> int:
        """The class that ``number`` now belongs to: the smallest number joined with it."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def join(self, a: int, b: int) -> None:
        """Make two classes one."""
        a, b = self.of(a), self.of(b)
        self._parents[max(a, b)] = min(a, b)
