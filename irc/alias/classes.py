"""Disjoint memory classes: values of different classes share no memory, whatever they hold."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from irc.alias.db import AliasDb
from irc.alias.facts import Kind
from irc.alias.location_sets import EMPTY, BigSet, LocationSet, members
from irc.ir.node import Value

ESCAPED = 0
"""The class of all memory that code outside the graph may reach: nothing may be assumed of it."""

_UNKNOWN = (ESCAPED,)
"""The locations of a value of which nothing is known."""


class MemoryClasses:
    """The memory classes of the values of several graphs, for deciding what may be overwritten.

    An `AliasDb` tells locations apart; here they are joined, so that the memory of a value is counted once, however
    many views of it, containers around it and paths to it there are. Joining loses precision, never soundness. The
    locations of a value are kept beside its class: values that a container has brought into one class may have none in
    common.

    Args:
        kinds: the kinds of memory that get classes of their own while unknown code cannot know it; all other memory
            is `ESCAPED`.
    """

    def __init__(self, kinds: Container[Kind]) -> None:
        self._kinds = kinds
        self._joined = _Joined()  # locations, to classes
        self._merged = _Joined()  # locations that stand for the same memory
        self._new()  # ESCAPED, which swallows any other
        self._locations: dict[Value, tuple[int, ...]] = {}

    def add(self, db: AliasDb, loose: Collection[Value] = ()) -> None:
        """Add the values of the graph that ``db`` analyses; it must not change afterwards. ``db`` is not kept.

        Args:
            db: the analysis.
            loose: lists that hold what they do and nothing else: their elements need not be of one class.
        """
        by_set: dict[LocationSet, tuple[int, ...]] = {EMPTY: _UNKNOWN}
        values = db.values_in_order()
        crowds = [value for value in values if isinstance(db.reach_set(value), BigSet)]
        # What values of very many locations may be is not worth telling apart.
        numbers = dict.fromkeys(members(db.reach_set(crowds)), ESCAPED)
        for value in values:
            reach = db.reach_set(value)
            if value in loose and not isinstance(reach, BigSet):
                self._locations[value] = self._numbers(db, reach, numbers) or _UNKNOWN
                continue
            if reach not in by_set:
                by_set[reach] = _UNKNOWN if isinstance(reach, BigSet) else self._numbers(db, reach, numbers)
                first, *others = by_set[reach]
                for other in others:
                    self._joined.join(first, other)
            self._locations[value] = by_set[reach]

    def add_fresh(self, values: Iterable[Value]) -> None:
        """Add values each of which is in memory of its own."""
        for value in values:
            self._locations[value] = (self._new(),)

    def of(self, value: Value) -> int:
        """The class of ``value``, a number; `ESCAPED` for memory that others may know."""
        return self._joined.of(self._locations.get(value, _UNKNOWN)[0])

    def locations(self, value: Value) -> frozenset[int]:
        """Where ``value`` and what it holds may be: numbers of locations of its class."""
        return frozenset(map(self._merged.of, self._locations.get(value, _UNKNOWN)))

    def class_at(self, location: int) -> int:
        """The class of what is at a location."""
        return self._joined.of(location)

    def join(self, a: Value, b: Value) -> None:
        """Record that ``a`` and ``b`` are the same value: of two graphs, or what is not told apart."""
        first, *others = (*self._locations.get(a, _UNKNOWN), *self._locations.get(b, _UNKNOWN))
        for other in others:
            self._joined.join(first, other)
            self._merged.join(first, other)

    def values(self) -> Iterable[Value]:
        """The values of all graphs."""
        return self._locations.keys()

    def _new(self) -> int:
        self._merged.new()
        return self._joined.new()

    def _numbers(self, db: AliasDb, reach: LocationSet, numbers: dict[int, int]) -> tuple[int, ...]:
        """The numbers of the locations in ``reach``; ``numbers`` has those of earlier calls."""
        for location in members(reach):
            if location not in numbers:
                numbers[location] = self._new() if db.is_private(location, self._kinds) else ESCAPED
        return tuple(dict.fromkeys(numbers[location] for location in members(reach)))


class _Joined:
    """Union-find over numbers: sets are joined, never split. `of` takes logarithmic time."""

    __slots__ = ("_parents",)

    def __init__(self) -> None:
        self._parents: list[int] = []

    def new(self) -> int:
        """A new number, in a set of its own; the first is 0."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def of(self, number: int) -> int:
        """The set that ``number`` now belongs to: the smallest number joined with it."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def join(self, a: int, b: int) -> None:
        """Make the sets of two numbers one."""
        a, b = self.of(a), self.of(b)
        self._parents[max(a, b)] = min(a, b)
