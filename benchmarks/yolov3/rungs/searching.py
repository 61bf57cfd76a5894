"""Locations by breadth-first search, each time anew."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.yolov3.rungs.counters import Counters
from irc.alias.facts import Element, Facts
from irc.alias.location_sets import LocationSet, SetTable, members
from irc.alias.memory_dag import MemoryDAG
from irc.ir import Value


class PlainSets(SetTable):
    """Sets whose unions are not remembered."""

    __slots__ = ("_counters",)

    def __init__(self, counters: Counters) -> None:
        super().__init__()
        self._counters = counters

    def union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        return self.union_all((a, b))

    def union_all(self, sets: Iterable[LocationSet]) -> LocationSet:
        found: set[int] = set()
        for each in sets:
            self._counters.unions += 1
            found.update(members(each))
        return self.of(found)


class _Forgetful(dict[Value, Any]):
    """A memo that keeps nothing."""

    def __setitem__(self, value: Value, locations: LocationSet) -> None:
        pass


class SearchingDag(MemoryDAG):
    """Answers by following pointers and contents. Remembers nothing."""

    def __init__(self, facts: Facts, content_of: Callable[[Element], Element], counters: Counters) -> None:
        super().__init__(facts, content_of)
        self.sets = PlainSets(counters)
        self.answers = _Forgetful()
        self.counters = counters

    def locations(self, element: Element) -> LocationSet:
        return self._search((element,), contents=False)

    def closure(self, element: Element) -> LocationSet:
        return self._search((element,), contents=True)

    def _search(self, start: Iterable[Element], contents: bool) -> LocationSet:
        """The locations that ``start`` leads to, through pointers and, if asked, through what is held there."""
        facts, sites = self.facts, self.facts.sites
        seen = set(start)
        pending = deque(seen)
        found: list[Element] = []
        while pending:
            e = pending.popleft()
            targets = facts.targets_of(e)
            if e in sites:
                found.append(e)
                if contents and (held := self._content_of(e)):
                    targets = [*targets, held]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
        self.counters.visited += len(seen)
        return self.sets.of(found)

    def is_known(self, element: Element) -> bool:
        return False

    def above(self, element: Element) -> set[Element]:
        """``element`` and all that leads to it."""
        seen = {element}
        pending = deque(seen)
        while pending:
            for source in self.facts.sources_of(pending.popleft()):
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        self.counters.visited += len(seen)
        return seen
