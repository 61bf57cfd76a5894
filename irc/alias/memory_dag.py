"""Which locations an element denotes, and which it leads to through containers.

Both are questions of reachability in the facts' graph, whose cycles (loops,
lists that hold each other) are condensed as they are met: the elements of a
cycle denote the same locations, so what is memoised is a DAG. All is
iterative: chains may be longer than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable

from irc.alias.components import components
from irc.alias.facts import Element, Facts
from irc.alias.sets import EMPTY, Askable, LocationSet, SetTable, members
from irc.ir.types import TensorType
from irc.ir.value import Value


class MemoryDAG:
    """Memoised answers about ``facts``.

    Whatever has a memo, all that it points to has one too (a location that
    points to nothing needs none: it denotes itself).

    Args:
        facts: the elements and what they point to.
        content_of: location -> the element of all it holds, or 0 if it holds nothing with memory.

    Attributes:
        known: element -> its locations.
        answers: value -> its locations, as `askable`, as far as somebody asked since any last changed.
        interface: the inputs of the graph, its outputs, and what all these lead to; None until somebody asks again.
    """

    def __init__(self, facts: Facts, content_of: Callable[[Element], Element]) -> None:
        self.facts = facts
        self.sets = SetTable()
        self.known: dict[Element, LocationSet] = {}
        self.answers: dict[Value, frozenset[int] | Askable] = {}
        self.interface: tuple[tuple[Value, ...], tuple[Value, ...], LocationSet] | None = None
        self._closures: dict[LocationSet, LocationSet] = {}
        self._content_of = content_of

    # -- locations -------------------------------------------------------

    def locations(self, element: Element) -> LocationSet:
        """The locations that ``element`` may denote."""
        found = self.known.get(element)
        if found is not None:
            return found
        targets, known = self.facts.targets, self.known
        chain: list[Element] = []
        while isinstance(target := targets[element], int):  # views of views: one by one would be slower
            chain.append(element)
            element = target
            found = known.get(element)
            if found is not None:
                break
        else:
            if target is not None:
                found = self._compute(element)
            else:
                found = known[element] = element if element in self.facts.sites else EMPTY
        for link in chain:
            known[link] = found
        return found

    def is_known(self, element: Element) -> bool:
        """Whether the locations of ``element`` were computed and so must be kept right."""
        return element in self.known or self.facts.targets[element] is None

    def _compute(self, root: Element) -> LocationSet:
        """Tarjan's algorithm (1972) over what ``root`` reaches that has no memo yet."""
        # Not by `components`, which would look at targets twice: for 64,000 branches that took 1.27 s, and this 1.1.
        targets, sites, known, sets = self.facts.targets, self.facts.sites, self.known, self.sets
        order: dict[Element, int] = {}
        low: dict[Element, int] = {}
        gathered: dict[Element, list[LocationSet]] = {}
        open_: list[Element] = []
        stack: list[tuple[Element, list[Element], int]] = []

        def enter(e: Element) -> None:
            order[e] = low[e] = len(order)
            gathered[e] = [e] if e in sites else []
            open_.append(e)
            stack.append((e, self.facts.targets_of(e), 0))

        enter(root)
        while stack:
            e, below, at = stack.pop()
            mine, lowest = gathered[e], low[e]
            while at < len(below):
                t = below[at]
                found = known.get(t)
                if found is None and targets[t] is None:
                    found = t if t in sites else EMPTY
                if found is not None:
                    mine.append(found)
                elif t not in order:
                    break
                else:  # still open: part of a cycle through e
                    lowest = min(lowest, order[t])
                at += 1
            low[e] = lowest
            if at < len(below):
                stack.append((e, below, at))  # once more, when the target is known or found to be open
                enter(below[at])
            elif lowest == order[e]:
                cycle: list[Element] = []
                while not cycle or cycle[-1] != e:
                    cycle.append(open_.pop())
                found = sets.union_all(s for c in cycle for s in gathered.pop(c))
                for c in cycle:
                    known[c] = found
            else:
                parent = stack[-1][0]
                low[parent] = min(low[parent], lowest)
        return known[root]

    # -- containment -----------------------------------------------------

    def closure(self, locations: LocationSet) -> LocationSet:
        """``locations`` and all that objects there hold, directly or through others."""
        types_of, content_of = self.facts.type_of, self._content_of
        if not self.facts.may_hold or (isinstance(locations, int) and types_of(locations).__class__ is TensorType):
            return locations
        closures = self._closures
        found = closures.get(locations)
        if found is None:
            held: dict[LocationSet, list[LocationSet]] = {}

            def below(outer: LocationSet) -> list[LocationSet]:
                """What the objects in ``outer`` hold directly."""
                contents = [content for content in map(content_of, members(outer)) if content]
                held[outer] = list(dict.fromkeys(map(self.locations, contents)))
                return [inside for inside in held[outer] if inside not in closures]

            for cycle in components([locations], below):
                inside = dict.fromkeys(x for outer in cycle for x in held[outer])
                found = self.sets.union_all([*cycle, *(closures[x] for x in inside if x in closures)])
                closures.update(dict.fromkeys(cycle, found))
            if closures is not self._closures:  # to ask what an object holds has let some element denote more
                return self.closure(locations)
            found = closures[locations]
        return found

    def forget_closures(self) -> None:
        """Some element now denotes more, or another thing."""
        self._closures = {}  # a new one, so that code working with the old one can tell
        self.answers.clear()
        self.interface = None

    def forget_answer(self, value: Value) -> None:
        """``value`` is told to denote something else."""
        self.answers.pop(value, None)
        self.interface = None
