"""Which locations an element denotes, and which it leads to through containers.

Both are questions of reachability in the facts' graph, whose cycles (loops,
lists that hold each other) are condensed as they are met: the elements of a
cycle denote the same locations, so what is memoised is a DAG. All is
iterative: chains may be longer than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from irc.alias.facts import Element, Facts
from irc.alias.location_sets import EMPTY, Askable, LocationSet, SetTable, common
from irc.ir import TensorType, Value


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
        version: how often anything came to denote more, or other things.
    """

    def __init__(self, facts: Facts, content_of: Callable[[Element], Element]) -> None:
        self.facts = facts
        self.sets = SetTable()
        self.known: dict[Element, LocationSet] = {}
        self.answers: dict[Value, frozenset[int] | Askable] = {}
        self.version = 0
        self._closures: dict[LocationSet, LocationSet] = {}
        """What some element denotes -> that, and all that objects there hold."""
        self._found_objects: LocationSet = EMPTY
        self._looked_at = 0
        """How many of the objects made are among those found."""
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
        """Find the locations of ``root``, and of all that it leads to and that has no memo yet."""
        targets, sites, known, union_all = self.facts.targets, self.facts.sites, self.known, self.sets.union_all
        found: dict[Element, list[LocationSet]] = {}
        """Element -> the locations that it is known to denote, itself included."""
        unknown: dict[Element, list[Element]] = {}
        """Element -> its targets that had no memo."""

        def below(e: Element) -> list[Element]:
            mine: list[LocationSet] = [e] if e in sites else []
            rest: list[Element] = []
            for t in self.facts.targets_of(e):
                denoted = known.get(t)
                if denoted is None and targets[t] is None:
                    denoted = t if t in sites else EMPTY
                if denoted is None:
                    rest.append(t)
                else:
                    mine.append(denoted)
            found[e], unknown[e] = mine, rest
            return rest

        for cycle in components([root], below):
            several = [s for e in cycle for s in found.pop(e)]
            # Those below have a memo by now; those of the cycle itself add nothing.
            several += [known[t] for e in cycle for t in unknown.pop(e) if t in known]
            denoted = union_all(several)
            for e in cycle:
                known[e] = denoted
        return known[root]

    # -- containment -----------------------------------------------------

    def closure(self, element: Element) -> LocationSet:
        """What ``element`` may denote, and all that objects there hold, directly or through others."""
        locations = self.locations(element)
        if not self.facts.objects_made:
            return locations
        if isinstance(locations, int) and self.facts.type_of(locations).__class__ is TensorType:
            return locations
        found = self._closures.get(locations)
        if found is None:
            while not self._close(element):
                pass
            found = self._closures[self.locations(element)]
        return found

    def _close(self, root: Element) -> bool:
        """Compute the closure of ``root`` and of its parts; False if anything grew meanwhile.

        To ask what an object holds may let elements denote more, and then what was found of them before may be too
        little: nothing of it is kept. All that was asked exists afterwards, so the next attempt finds what is there.

        The closure of a location is made of that of its content; that of an element, of those of all objects that it
        may denote, or of its targets, whichever are fewer: thousands of elements may each denote thousands of objects.
        """
        closures, facts = self._closures, self.facts
        version = self.version
        locations: dict[Element, LocationSet] = {}
        within: dict[Element, list[Element]] = {}
        new: dict[LocationSet, LocationSet] = {}

        def below(e: Element) -> list[Element]:
            ways = facts.targets_of(e)
            locations[e] = self.locations(e)
            some = list(islice(common(locations[e], self._objects()), len(ways) + 1))
            if len(some) > len(ways) > 0:
                some, more = ([e] if e in facts.sites else []), ways
            else:
                more = ()
            within[e] = [content for content in map(self._content_of, some) if content]
            within[e] += more
            at = ((inside, self.locations(inside)) for inside in within[e])
            return [inside for inside, denoted in at if denoted not in closures and denoted not in new]

        for cycle in components([root], below):
            inside = dict.fromkeys(self.locations(x) for e in cycle for x in within[e])
            outer = dict.fromkeys(locations[e] for e in cycle)
            known = (closures.get(x) or new.get(x) for x in inside)
            found = self.sets.union_all([*outer, *(x for x in known if x is not None)])
            new.update(dict.fromkeys(outer, found))
        if version != self.version:
            return False
        closures.update(new)
        return True

    def _objects(self) -> LocationSet:
        """The locations of all but tensors."""
        made, looked_at = self.facts.objects_made, self._looked_at
        if looked_at < len(made):
            self._looked_at = len(made)
            self._found_objects = self.sets.union(self._found_objects, self.sets.of(made[looked_at:]))
        return self._found_objects

    def changed(self, *elements: Element) -> None:
        """``elements`` now denote more, or other things."""
        self.version += 1
        self.answers.clear()
        held, unknown = self.facts.content_type, self.facts.unknown_of  # the latter is what unknown objects hold
        if any(element in held or element in unknown for element in elements):
            self._closures.clear()

    def forget_closures(self) -> None:
        """What some object holds has changed."""
        self.version += 1
        self.answers.clear()
        self._closures.clear()

    def forget_answer(self, value: Value) -> None:
        """``value`` is told to denote something else."""
        self.version += 1
        self.answers.pop(value, None)


class Descent:
    """Walks from elements down to locations, each of which is met once: for sweeps over a whole graph.

    Where n values may denote n locations each, all of them together take n steps, and nothing is memoised.

    Args:
        facts: the elements and what they point to.
        content_of: location -> the element of all it holds; None to leave out what objects hold.
    """

    def __init__(self, facts: Facts, content_of: Callable[[Element], Element] | None = None) -> None:
        self._facts = facts
        self._content_of = content_of
        self._seen: set[Element] = set()

    def locations(self, element: Element) -> Iterator[Element]:
        """The locations that ``element`` leads to and that earlier calls have not returned."""
        facts, seen = self._facts, self._seen
        pending = [element]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            pending += facts.targets_of(at)
            if at in facts.sites:
                yield at
                if self._content_of is not None:
                    pending.append(self._content_of(at))


# -- strongly connected components ---------------------------------------------


_T = TypeVar("_T")


def components(roots: Iterable[_T], below: Callable[[_T], Iterable[_T]]) -> Iterator[list[_T]]:
    """The strongly connected components reachable from ``roots``, each after those that it leads to.

    Tarjan, "Depth-first search and linear graph algorithms", 1972; iterative.
    """
    order: dict[_T, int] = {}
    low: dict[_T, int] = {}
    open_: list[_T] = []
    closed: set[_T] = set()
    stack: list[tuple[_T, Iterator[_T]]] = []
    for root in roots:
        following: _T | None = None if root in order else root
        while following is not None or stack:
            if following is not None:
                order[following] = low[following] = len(order)
                open_.append(following)
                stack.append((following, iter(below(following))))
            top, rest = stack[-1]
            following = None
            for other in rest:
                if other not in order:
                    following = other
                    break
                if other not in closed:
                    low[top] = min(low[top], order[other])
            if following is not None:
                continue
            stack.pop()
            if stack:
                caller = stack[-1][0]
                low[caller] = min(low[caller], low[top])
            if low[top] == order[top]:
                found: list[_T] = []
                while not found or found[-1] != top:
                    found.append(open_.pop())
                closed.update(found)
                yield found
