"""Why two values may share memory: the facts that lead from each of them to one location."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import facts as f
from irc.alias.facts import Element, Facts
from irc.alias.location_sets import LocationSet, contains, members
from irc.ir.node import Node
from irc.ir.value import Value
from irc.ops import resolve

if TYPE_CHECKING:
    from irc.alias.db import AliasDb


class Step(NamedTuple):
    """What a fact is of: ``start`` points to ``end``, on the way to the location ``to``."""

    start: Element
    end: Element
    to: Element


class Fact(NamedTuple):
    """One step: ``subject`` may be ``object``, because of ``node``.

    Attributes:
        subject: a value, what a container holds, or unknown memory.
        object: what ``subject`` may be.
        node: the node that makes it so, if one does.
        step: the same step as elements of the analysis, for callers that need more than the text; None for a value
            that is memory of its own.
    """

    subject: str
    object: str
    node: Node | None = None
    step: Step | None = None

    def __str__(self) -> str:
        because = f"    by {self.node!r}" if self.node is not None else ""
        return f"{self.subject} may be {self.object}{because}"


def why(db: AliasDb, a: Value, b: Value) -> list[Fact]:
    """The facts from ``a`` to a location that ``b`` may denote too, then those from ``b``; empty if there is none.

    If only something that they hold is shared, the path leads through the containers.
    """
    found = meeting(db, a, b)
    return [] if found is None else [*found.from_a, *found.from_b]


class Meeting(NamedTuple):
    """The facts that lead from each of two values to ``location``, which both may be or hold."""

    from_a: list[Fact]
    from_b: list[Fact]
    location: str


def meeting(db: AliasDb, a: Value, b: Value) -> Meeting | None:
    """The nearest location that both ``a`` and ``b`` may be at or hold, and the facts that lead there; None if none."""
    path = Paths(db)
    for reach in (db.location_set, db.reach_set):
        common = _common(reach(a), reach(b))
        if common:
            from_a, from_b = path.tree(a), path.tree(b)
            nearest = min(common, key=lambda x: (from_a[x].steps + from_b[x].steps, db.is_unknown(x), x))
            facts = path.facts(a, from_a, nearest), path.facts(b, from_b, nearest)
            return Meeting(*facts, str(db.describe(nearest)))
    return None


def _common(a: LocationSet, b: LocationSet) -> list[Element]:
    """The locations of both sets."""
    return [x for x in members(a) if contains(b, x)]


class Reached(NamedTuple):
    """How an element is reached: from which one, and in how many steps."""

    before: Element
    steps: int


class Paths:
    """Shortest paths in the facts, told in words.

    Attributes:
        value_of: element -> the value that it is of.
        holder_of: element -> the location of which it is what a field holds.
    """

    def __init__(self, db: AliasDb) -> None:
        self.db = db
        self.raw: Facts = db.facts
        self.value_of = {element: value for value, element in self.raw.elements.items() if element != f.NOTHING}
        self.holder_of = {
            element: location for location, fields in self.raw.contents.items() for element in fields.values()
        }

    def facts(self, value: Value, tree: dict[Element, Reached], location: Element) -> list[Fact]:
        """From ``value``, whose `tree` is given, to ``location``."""
        start = self.raw.elements[value]
        path = [location]
        while path[-1] != start:
            path.append(tree[path[-1]].before)
        path.reverse()
        named = [e for e in path if e in (start, location) or self._is_named(e)]
        met = [next(e for e in named[i:] if e in self.raw.sites) for i in range(1, len(named))]
        found = [self._fact(x, y, object) for (x, y), object in zip(pairwise(named), met)]
        if len(named) == 1:
            found.append(Fact(f"%{value.name}", str(self.db.describe(location)), value.node))
        return found

    def tree(self, value: Value) -> dict[Element, Reached]:
        """All that ``value`` may be or hold, and the shortest ways there."""
        return self.search(self.raw.elements[value], inside=True)

    def search(self, start: Element, inside: bool) -> dict[Element, Reached]:
        """All that ``start`` leads to, through what containers hold if ``inside``, and the shortest ways there."""
        found: dict[Element, Reached] = {start: Reached(start, 0)}
        queue = deque([start])
        while queue:
            e = queue.popleft()
            further = self.raw.targets_of(e)
            if inside and e in self.raw.sites:  # on into what it holds
                further = [*further, self.db.contents_element(e)]
            for target in further:
                if target not in found:
                    found[target] = Reached(e, found[e].steps + 1)
                    queue.append(target)
        return found

    def _is_named(self, e: Element) -> bool:
        return e in self.value_of or e in self.raw.sites or e in self.holder_of or e in self.raw.unknown_atoms

    def _name(self, e: Element) -> str:
        if e in self.value_of:
            return f"%{self.value_of[e].name}"
        if e in self.holder_of:
            return f"what {self.db.describe(self.holder_of[e])} holds"
        if e in self.raw.unknown_atoms:
            return f"any unknown {self.raw.unknown_atoms[e]}"
        return str(self.db.describe(e))

    def _fact(self, x: Element, y: Element, object: Element) -> Fact:
        """That ``x`` may be ``y``, on the way to the location ``object``."""
        subject, node, step = self._name(x), None, Step(x, y, object)
        if self.is_held(x, y):
            subject = f"what {subject} holds" if self.db.is_unknown(x) else subject  # that has no element
            maker = self.maker(self.holder_of.get(x, x))
            made = maker is not None and shares(maker)  # with what it holds: nobody else stored that
            node = maker if made else self._storing(self.value_of.get(y))
        elif x in self.value_of and not (x in self.raw.unknown_atoms and y in self.raw.sites):
            node = self.value_of[x].definer
        return Fact(subject, self._name(y), node, step)

    def is_held(self, x: Element, y: Element) -> bool:
        """Whether a step from ``x`` to ``y`` leads from a container to what it holds."""
        if x in self.holder_of or x not in self.raw.sites:
            return x in self.holder_of
        held = self.db.contents_element(x)  # of a union, it stands for what its members may be
        return y == held or (not self._is_named(held) and y in self.raw.targets_of(held))

    def maker(self, location: Element) -> Node | None:
        """The node that allocates ``location``."""
        key = self.raw.site(location).key
        return key.node if isinstance(key, Value) else None

    def _storing(self, value: Value | None) -> Node | None:
        """The node that stored ``value``, if one of its users is such a node."""
        if value is None:
            return None
        users = [user for user in value.users if not user.is_return]
        writers = [user for user in users if self.db.is_mutable(user)]
        makers = [user for user in users if user.kind.endswith("Construct")]
        return next(iter([*writers, *makers]), None)


def shares(node: Node) -> bool:
    """Whether a result of ``node`` may share with an argument by irc's schema row, but not by PyTorch's."""
    from irc.ops.aten.schema_differences import is_missed  # which reads the records of torch's operators

    row = resolve(node)
    return row is not None and is_missed(row.name, row.overload)
