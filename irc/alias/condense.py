"""Condensing the facts of a function: elements that denote the same are merged.

Elements that lead to each other denote the same, and so do elements that point
to the same others and are loaded from the same. An element that points to a
single other one, and to nothing else, denotes what that one does. Chains of
calls consist almost entirely of such elements; without them, a summary says
which memory is passed on, but not through how many calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain

from irc.alias.components import components
from irc.alias.facts import ESCAPED, NOTHING, OUTSIDE, Element, Facts, Load, Store
from irc.alias.locations import Kind
from irc.ir.types import TensorType


class Condensed:
    """What the elements of ``facts`` point to, with one element for all that denote the same.

    Of the elements that the facts name (locations, contents, unknown memory), only
    tensors that nothing tells apart are merged: whatever leads to one leads to all.

    Args:
        facts: recorded, and not solved.
        growing: elements that callers will let denote more.
        used: elements that callers refer to.
        written: elements that the function writes.

    Attributes:
        same: element -> the one that stands for it.
        targets: each element that stands for itself or others -> the elements that it points to.
    """

    def __init__(self, facts: Facts, growing: set[Element], used: set[Element], written: set[Element]) -> None:
        self._facts = facts
        self._loads: dict[Element, list[Load]] = {}
        """Element -> what is loaded into it."""
        for constraint in facts.constraints:
            if isinstance(constraint, Load):
                self._loads.setdefault(constraint.target, []).append(constraint)
        self._every = range(len(facts.targets))
        self._named = dict.fromkeys(filter(self._is_named, self._every))
        self.same: dict[Element, Element] = {}
        self.targets: dict[Element, list[Element]] = {}
        self._condense(growing, {})
        stored = {c.source for c in facts.constraints if isinstance(c, Store)}
        kept = growing.union(self._loads, used, written, stored)
        self._splice(kept)
        twins = self._twins({self.same[e] for e in used})
        if twins:
            self._condense(growing, twins)
            self._splice(kept)

    def _condense(self, growing: set[Element], twins: dict[Element, Element]) -> None:
        """Find `same` and `targets`, with one location for all ``twins``."""
        same, loaded = self.same, self._loads.keys()
        found: dict[Hashable, Element] = {}
        self.targets.clear()
        same.update(zip(self._every, self._every))
        same.update(twins)
        for cycle in self._in_order():
            first = cycle[0]
            if len(cycle) > 1:
                first = min(cycle)
                same.update(dict.fromkeys(cycle, first))
            targets = self._outside(cycle, first)
            if growing.isdisjoint(cycle):
                if not loaded.isdisjoint(cycle):
                    denoted = found.setdefault((frozenset(targets), self._loads_of(cycle)), first)
                elif len(targets) > 1:
                    denoted = found.setdefault(frozenset(targets), first)
                else:
                    denoted = targets[0] if targets else first
                if denoted != first:
                    same.update(dict.fromkeys(cycle, denoted))
                    continue
            self.targets[first] = targets
        self.targets.update((e, self._outside([e], e)) for e in self._named)

    def _in_order(self) -> Iterator[list[Element]]:
        """Groups of elements that lead to each other, each after the elements that it leads to and is loaded from."""
        same, below, loads, named = self.same.__getitem__, self._facts.targets_of, self._loads, self._named

        def before(e: Element) -> Iterable[Element]:
            others = chain(below(e), [load.base for load in loads[e]]) if e in loads else below(e)
            return [t for t in map(same, others) if t not in named]

        for group in components([e for e in self._every if e not in named], before):
            if len(group) == 1:
                yield group
            else:  # only what leads on by pointers denotes the same
                inside = set(group)
                yield from components(group, lambda e, inside=inside: inside.intersection(map(same, below(e))))

    def _is_named(self, e: Element) -> bool:
        facts = self._facts
        return e in facts.sites or e in facts.content_type or e in facts.unknown_of or e in (ESCAPED, OUTSIDE)

    def _loads_of(self, cycle: list[Element]) -> frozenset[Hashable]:
        """The loads into any element of ``cycle``."""
        same, loads = self.same, self._loads
        return frozenset([(same[x.base], x.field, x.type) for e in cycle if e in loads for x in loads[e]])

    def _outside(self, cycle: list[Element], first: Element) -> list[Element]:
        """What the elements of a cycle point to outside of it; ``first`` is the element that stands for the cycle."""
        targets = dict.fromkeys(self.same[t] for e in cycle for t in self._facts.targets_of(e))
        targets.pop(first, None)
        return list(targets)

    def _splice(self, kept: set[Element]) -> None:
        """Leave out each element that only one other points to; that one then points to its targets."""
        keep = {self.same[e] for e in kept}
        counts = Counter(t for targets in self.targets.values() for t in targets)
        spliced = {e for e in self.targets if counts[e] == 1 and e not in keep and e not in self._named}
        for e in [e for e in self.targets if e not in spliced]:
            found: dict[Element, None] = {}
            pending = self.targets[e][::-1]
            while pending:
                t = pending.pop()
                if t in spliced:
                    pending += self.targets.pop(t)[::-1]
                elif t != e:
                    found[t] = None
            self.targets[e] = list(found)

    def _twins(self, used: set[Element]) -> dict[Element, Element]:
        """Fresh tensors that callers cannot tell apart -> the first of them.

        The same elements point to them, and they are stored in the same places.
        """
        facts, same = self._facts, self.same
        used = used.union(facts.private.values())
        sources: dict[Element, list[Hashable]] = {}
        for source, targets in self.targets.items():
            for t in targets:
                if t in facts.sites and t not in used:
                    sources.setdefault(t, []).append(source)
        stores = [c for c in facts.constraints if isinstance(c, Store)]
        for store in dict.fromkeys(c._replace(base=same[c.base], source=same[c.source]) for c in stores):
            if store.source in facts.sites and store.source not in used:
                sources.setdefault(store.source, []).append(store._replace(source=NOTHING))
        found: dict[Element, Element] = {}
        first: dict[frozenset[Hashable], Element] = {}
        for t, leading in sources.items():
            if isinstance(facts.type_of(t), TensorType) and facts.site(t).kind is Kind.TEMPORARY:
                twin = first.setdefault(frozenset(leading), t)
                if twin != t:
                    found[t] = twin
        return found

    def above(self, elements: Iterable[Element]) -> set[Element]:
        """``elements`` and all that lead to them."""
        sources: dict[Element, list[Element]] = {}
        for source, targets in self.targets.items():
            for target in targets:
                sources.setdefault(target, []).append(source)
        found = set(elements)
        pending = list(found)
        while pending:
            new = [e for e in sources.get(pending.pop(), ()) if e not in found]
            found.update(new)
            pending += new
        return found
