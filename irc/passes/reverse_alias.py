"""Which values may refer to which memory: the alias analysis in reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias.location_sets import EMPTY, LocationSet, contains, intersects, members

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from irc.alias import AliasDb
    from irc.ir import Value

_WIDE = 16
"""A value that may be at more places than this is kept apart, and looked at for every place."""


class ReverseAlias:
    """Memory location -> the values that may denote it, or hold it in a container.

    Only values that were entered count. Whatever changes the graph must call ``moved``.
    """

    def __init__(self, db: AliasDb, values: Iterable[Value] = ()) -> None:
        self._db = db
        self._generation = db.generation
        self._places: dict[Value, set[int]] = {}
        self._by_location: dict[int, dict[Value, None]] = {}
        self._wide: dict[Value, None] = {}
        self._wide_places: LocationSet = EMPTY
        """All places of wide values, and perhaps some more."""
        self.enter(values)

    def enter(self, values: Iterable[Value]) -> None:
        """``values`` are new."""
        for value in values:
            places = self._db.reach_set(value)
            if places is not EMPTY:
                self._add(value, places)

    def drop(self, values: Iterable[Value]) -> None:
        """``values`` are no longer needed."""
        for value in values:
            self._leave(value)
            self._wide.pop(value, None)

    def candidates(self, locations: LocationSet) -> Iterator[Value]:
        """All values that may denote, or lead to, one of ``locations``, and perhaps some others, one by one.

        It is cheaper to rule out most of them first and ask ``holds`` for the rest.
        """
        yield from self.narrow(locations)
        yield from self.wide(locations)

    def narrow(self, locations: LocationSet) -> Iterator[Value]:
        """The candidates that may be at few places only."""
        self._catch_up()
        at = self._by_location
        if isinstance(locations, int) or len(locations) < len(at):
            places = [location for location in members(locations) if location in at]
        else:
            places = [location for location in at if contains(locations, location)]
        found: set[Value] = set()
        for location in places:
            for value in at[location]:
                if value not in found:
                    found.add(value)
                    yield value

    def wide(self, locations: LocationSet) -> Collection[Value]:
        """All values that may be at very many places, if any of them may be at one of ``locations``."""
        self._catch_up()
        return self._wide if intersects(self._wide_places, locations) else ()

    def holds(self, value: Value, locations: LocationSet) -> bool:
        """Whether ``value`` was entered, and may denote one of ``locations`` or lead to it."""
        return (value in self._places or value in self._wide) and intersects(self._db.reach_set(value), locations)

    def moved(self, old: LocationSet, new: LocationSet) -> None:
        """All that was at ``old`` is at ``new`` now."""
        if not isinstance(old, int):
            self._generation = -1, -1  # several places, of which others may stay: look at everything anew
            return
        for value in self._by_location.pop(old, ()):
            self._places[value].remove(old)
            self._add(value, new)
        if contains(self._wide_places, old):
            self._wide_places = self._db.union(self._wide_places, new)

    def _add(self, value: Value, places: LocationSet) -> None:
        mine = self._places.setdefault(value, set())
        if isinstance(places, int) or len(places) <= _WIDE:
            mine.update(members(places))
            if len(mine) <= _WIDE:
                for location in members(places):
                    self._by_location.setdefault(location, {})[value] = None
                return
        self._wide[value] = None
        for some in (places, frozenset(mine)):
            self._wide_places = self._db.union(self._wide_places, some)
        self._leave(value)

    def _leave(self, value: Value) -> None:
        for location in self._places.pop(value, ()):
            held = self._by_location.get(location, {})
            held.pop(value, None)
            if not held:
                self._by_location.pop(location, None)

    def _catch_up(self) -> None:
        if self._generation == self._db.generation:
            return
        self._generation = self._db.generation  # analysing again gives locations other numbers
        known = [*self._places, *self._wide]
        for kept in (self._places, self._by_location, self._wide):
            kept.clear()
        self._wide_places = EMPTY
        self.enter(known)
