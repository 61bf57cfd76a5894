"""Who may refer to which memory: the alias analysis read backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias.sets import LocationSet, intersects, members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from irc.alias import AliasDb
    from irc.ir import Value

_WIDE = 16
"""A value that may be at more places than this is kept apart, and looked at for every place."""


class Holders:
    """Memory location -> the values that may denote it, or hold it in a container.

    Built in one walk; whoever changes the graph says what moved (``moved``).
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self._generation = -1, -1
        self._by_location: dict[int, dict[Value, None]] = {}
        self._wide: dict[Value, None] = {}

    def of(self, locations: LocationSet) -> list[Value]:
        """The values that may denote one of ``locations``, or lead to it."""
        return [v for v in self.candidates(locations) if self.holds(v, locations)]

    def candidates(self, locations: LocationSet) -> Iterator[Value]:
        """These values and perhaps some more, one by one. Cheaper: ask what rules most of them out before ``holds``."""
        self._index()
        found: set[Value] = set()
        for location in members(locations):
            for value in self._by_location.get(location, ()):
                if value not in found:
                    found.add(value)
                    yield value
        yield from self._wide

    def holds(self, value: Value, locations: LocationSet) -> bool:
        """Whether ``value`` may denote one of ``locations``, or lead to it."""
        return intersects(self._db.reach_set(value), locations)

    def moved(self, old: LocationSet, new: LocationSet) -> None:
        """Whatever was at ``old`` is at ``new`` now."""
        if not isinstance(old, int):
            self._generation = -1, -1  # several places, of which others may stay: look at everything anew
            return
        gone = self._by_location.pop(old, None)
        if gone:
            for place in members(new):
                self._by_location.setdefault(place, {}).update(gone)

    def replaced(self, old: Value, new: Value) -> None:
        """``new`` has taken the place of ``old``, which is gone. Tell it after ``moved``."""
        self._enter(new)
        self.forget([old], self._db.reach_set(new))
        self._wide.pop(old, None)

    def forget(self, values: Iterable[Value], locations: LocationSet) -> None:
        """``values`` are gone, or will never again be used while they are at ``locations``."""
        gone = list(values)
        for location in members(locations):
            held = self._by_location.get(location, {})
            for value in gone:
                held.pop(value, None)

    def _index(self) -> None:
        if self._generation == self._db.generation:
            return
        self._generation = self._db.generation  # analysing again gives locations other numbers
        self._by_location.clear()
        self._wide.clear()
        for value in self._db.values_in_order():
            self._enter(value)

    def _enter(self, value: Value) -> None:
        reach = self._db.reach_set(value)
        places = members(reach)
        if not isinstance(reach, int) and len(reach) > _WIDE:
            self._wide[value] = None
            return
        for location in places:
            self._by_location.setdefault(location, {})[value] = None
