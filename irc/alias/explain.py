"""Why two values may share memory: the facts that lead from each of them to one location."""

from __future__ import annotations

from collections import deque
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import facts as f
from irc.alias.facts import Element, Facts
from irc.alias.memory_types import atoms
from irc.alias.sets import LocationSet, contains, members
from irc.ir.kinds import LOOPS
from irc.ir.node import Node
from irc.ir.ops import resolve
from irc.ir.ops.aten.beyond import is_missed
from irc.ir.types import Type
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.alias.queries import Queries


class Fact(NamedTuple):
    """One step: ``subject`` may be ``object``, because of ``node``.

    Attributes:
        subject: a value, what a container holds, or unknown memory.
        object: what ``subject`` may be.
        node: the node that makes it so, if one does.
        case: the number of the case in ``docs/alias-analysis.md`` if PyTorch's
            analysis misses this fact, else 0: 1 back edges of loops, 2 loops without
            a trip, 3 what containers hold, 4 unknown types that overlap, 5 results
            that share memory although their schema calls them fresh, 7 what becomes
            known outside as a union.
    """

    subject: str
    object: str
    node: Node | None = None
    case: int = 0

    def __str__(self) -> str:
        because = f"    by {self.node!r}" if self.node is not None else ""
        return f"{self.subject} may be {self.object}{because}"


def why(db: Queries, a: Value, b: Value) -> list[Fact]:
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


def meeting(db: Queries, a: Value, b: Value) -> Meeting | None:
    """The nearest location that both ``a`` and ``b`` may be at or hold, and the facts that lead there; None if none."""
    path = _Paths(db)
    for reach in (db.location_set, db.reach_set):
        common = _common(reach(a), reach(b))
        if common:
            from_a, from_b = path.tree(a), path.tree(b)
            nearest = min(common, key=lambda x: (from_a[x].steps + from_b[x].steps, db.is_wild(x), x))
            facts = path.facts(a, from_a, nearest), path.facts(b, from_b, nearest)
            return Meeting(*facts, str(db.describe(nearest)))
    return None


def _common(a: LocationSet, b: LocationSet) -> list[Element]:
    """The locations of both sets."""
    return [x for x in members(a) if contains(b, x)]


class _Reached(NamedTuple):
    """How an element is reached: from which one, and in how many steps."""

    before: Element
    steps: int


class _Paths:
    """Shortest paths in the facts, told in words."""

    def __init__(self, db: Queries) -> None:
        self.db = db
        self.raw: Facts = db.facts
        self.value_of = {element: value for value, element in self.raw.elements.items() if element != f.NOTHING}
        self.holder_of = {
            element: location for location, fields in self.raw.contents.items() for element in fields.values()
        }

    def facts(self, value: Value, tree: dict[Element, _Reached], location: Element) -> list[Fact]:
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

    def tree(self, value: Value) -> dict[Element, _Reached]:
        """All that ``value`` may be or hold, and the shortest ways there."""
        return self._search(self.raw.elements[value], inside=True)

    def _search(self, start: Element, inside: bool) -> dict[Element, _Reached]:
        """All that ``start`` leads to, through what containers hold if ``inside``, and the shortest ways there."""
        found: dict[Element, _Reached] = {start: _Reached(start, 0)}
        queue = deque([start])
        while queue:
            e = queue.popleft()
            further = self.raw.targets_of(e)
            if inside and e in self.raw.sites:  # on into what it holds
                further = [*further, self.db.contents_element(e)]
            for target in further:
                if target not in found:
                    found[target] = _Reached(e, found[e].steps + 1)
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
        subject, target = self.value_of.get(x), self.value_of.get(y)
        if x in self.holder_of or (x in self.raw.sites and y == self.db.contents_element(x)):
            maker = self._maker(self.holder_of.get(x, x))
            if maker is not None and _is_missed(maker):
                return Fact(self._name(x), self._name(y), maker, 5)
            held = self.raw.content_type.get(x)
            case = 4 if held is not None and self._is_other(held, object) else 3
            holder = f"what {self._name(x)} holds" if self.db.is_wild(x) else self._name(x)  # that has no element
            return Fact(holder, self._name(y), self._storing(target), case)
        if x in self.raw.unknown_atoms and y in self.raw.sites:
            differs = self._is_other(self.raw.unknown_atoms[x], y)
            return Fact(self._name(x), self._name(y), None, 4 if differs else self._case_of_escape(y))
        if subject is None:
            return Fact(self._name(x), self._name(y))
        node = subject.definer
        case = _case(subject, node, target)
        if y in self.holder_of:  # taken out of a container
            if node is not None and _is_missed(node):
                case = 5
            elif self._is_other(subject.type, object):
                case = 4  # as something else than it is there
        return Fact(self._name(x), self._name(y), node, case)

    def _case_of_escape(self, location: Element) -> int:
        """The case if ``location`` escaped as a value of another type than its own (4) or of a union (7); else 0.

        PyTorch then lets unknown values of that type be at ``location``, but not unknown values of its own type.
        """
        if location not in self.escaped:
            return 0
        e, before = location, self.escaped[location].before
        while e != before:
            value = self.value_of.get(e)
            if value is not None and self._is_other(value.type, location):
                return 4
            if value is not None and len(atoms(value.type)) > 1:
                return 7
            e, before = before, self.escaped[before].before
        return 0

    @cached_property
    def escaped(self) -> dict[Element, _Reached]:
        """All that unknown code may hold, and the shortest ways there."""
        return self._search(f.ESCAPED, inside=False)

    def _is_other(self, type: Type, location: Element) -> bool:
        """Whether ``type`` has no atom in common with the type of the object at ``location``."""
        return set(atoms(type)).isdisjoint(atoms(self.raw.type_of(location)))

    def _maker(self, location: Element) -> Node | None:
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


def _case(subject: Value, node: Node | None, target: Value | None) -> int:
    """The number of the case if PyTorch misses that ``subject`` may be ``target``, because of ``node``; else 0."""
    if node is None or target is None:
        return 0
    if node.kind not in LOOPS:
        return 5 if _is_missed(node) else 0
    if subject.is_param and target in node.blocks[0].returns:
        return 1
    return 2 if not subject.is_param and target in node.inputs else 0


def _is_missed(node: Node) -> bool:
    """Whether PyTorch's schema of ``node`` wrongly calls results fresh that share memory."""
    row = resolve(node)
    return row is not None and is_missed(row.name, row.overload)
