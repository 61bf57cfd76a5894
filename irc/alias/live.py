"""What values may denote, and which nodes write it, found by walking the facts instead of by sets of locations.

Each element is visited once, however many lead there: where n values may
denote n locations each, all of them together take n steps, not n².
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from irc.alias.locations import Kind
from irc.ir.node import Node
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.alias.facts import Element
    from irc.alias.solver import Solver

_LOCAL = frozenset([Kind.TEMPORARY, Kind.RANDOM])
"""A write there matters only if something live reads it. Writes to all other memory are seen outside of the graph."""


class Descent:
    """Walks the facts from values down to locations.

    Args:
        solver: has the facts.
        contained: whether the walk goes on to what objects hold.
    """

    def __init__(self, solver: Solver, contained: bool) -> None:
        self._solver = solver
        self._contained = contained
        self._seen: set[Element] = set()

    def locations(self, value: Value) -> Iterator[Element]:
        """The locations that ``value`` leads to and that earlier calls have not returned."""
        solver, seen = self._solver, self._seen
        facts = solver.facts
        pending = [solver.element(value)]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            pending += facts.targets_of(at)
            if at in facts.sites:
                yield at
                if self._contained:
                    pending.append(solver.all_contents(at))


class LiveMemory:
    """The locations that matter. Each answer names nodes that write some of them and that no earlier answer named."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._descent = Descent(solver, contained=True)
        self._above: set[Element] = set()
        """These may denote something that matters."""

    def foreign(self) -> Iterator[Node]:
        """Memory that is seen outside of the graph matters."""
        facts = self._solver.facts
        return self._rise([x for x in facts.sites if facts.site(x).kind not in _LOCAL])

    def use(self, value: Value) -> Iterator[Node]:
        """What ``value`` may denote, and all that objects there hold, matters."""
        return self._rise(self._descent.locations(value))

    def _rise(self, locations: Iterable[Element]) -> Iterator[Node]:
        solver, above = self._solver, self._above
        for location in locations:
            pending = [location]
            while pending:
                at = pending.pop()
                if at not in above:
                    above.add(at)
                    pending += solver.facts.sources_of(at)
                    yield from solver.index.writers(at)
