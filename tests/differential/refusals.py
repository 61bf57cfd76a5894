"""Why irc refuses a move, told by a planner that is slow and plain, and knows of each obstacle why it is one.

If PyTorch makes the move, something that it does not see must be what stands
in the way: without that, the planner has to allow the move too.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from irc.alias import AliasDb
from irc.alias import facts as f
from irc.alias.explain import Fact
from irc.alias.location_sets import EMPTY, intersects, members
from irc.alias.motion import links
from irc.ir import Node, Value
from tests.alias.missed import cases as missed_cases
from tests.alias.missed import numbers
from tests.differential.both import Both, between

UNSEEN_SHARING = frozenset({1, 2, 4, 5, 7})
"""The cases in which PyTorch does not see that two values may share memory."""

UNSEEN_WRITES = UNSEEN_SHARING | {3}
"""Those in which it does not see a write: it does not look into containers."""

RANDOM, INSIDE = "random state", "effects inside"
"""What PyTorch does not heed when it moves nodes: ``test_cases.py`` shows what comes of it."""


class Refusal:
    """A move that irc refuses.

    Attributes:
        excuses: what PyTorch does not see and that stands in the way: ``case n``, ``RANDOM``, ``INSIDE``. Empty if the
            move is to be refused, or to be made, whether or not one sees all that.
    """

    def __init__(self, both: Both, node: Node, point: Node, before: bool) -> None:
        self._db = both.db
        self._between = between(node, point)
        self._node, self._point, self._before = node, point, before
        self._known: dict[tuple[Node, Node], frozenset[str]] = {}
        self.excuses: set[str] = set()
        if not self._is_made(excused=()) and self._is_made(excused=self._excusable):
            needed = {e for e in self._excusable if not self._is_made(excused=self._excusable - {e})}
            self.excuses = needed or {e for e in self._excusable if e in self._met}

    @cached_property
    def _met(self) -> set[str]:
        return {reason for reasons in self._known.values() for reason in reasons} | set(
            self._effects(self._between) & {INSIDE}
        )

    @cached_property
    def _excusable(self) -> frozenset[str]:
        return frozenset({RANDOM, INSIDE}) | cases(UNSEEN_WRITES)

    def _is_made(self, excused: Collection[str]) -> bool:
        """Whether the move could be made, were it not for what is ``excused``."""
        node, point = self._node, self._point
        if node is point or (self._before and node.next is point) or (not self._before and node.prev is point):
            return True
        forward = node.is_before(point)
        walk = self._between if forward else self._between[::-1]
        passed = walk[1:-1]
        if self._effects(passed) - set(excused) or (passed and self._effects([node]) - set(excused)):
            return False
        members = [node]
        for other in passed:
            if any(self._obstacles(m, other) - set(excused) for m in members):
                members.append(other)
        crossing = members[1:] if self._before == forward else members
        if crossing and self._effects([node, point]) - set(excused):
            return False
        return not any(self._obstacles(m, point) - set(excused) for m in crossing)

    def _effects(self, nodes: list[Node]) -> set[str]:
        """How some of ``nodes`` act on the world."""
        acting = [n for n in nodes if self._db.has_side_effects(n)]
        return {INSIDE if n.blocks else "effects" for n in acting}

    def _obstacles(self, a: Node, b: Node) -> frozenset[str]:
        """Why two nodes may not change places; of memory, one reason for each pair of what is written and read."""
        if (a, b) not in self._known:
            self._known[a, b] = self._known[b, a] = frozenset(self._find(a, b))
        return self._known[a, b]

    def _find(self, a: Node, b: Node) -> Iterator[str]:
        if b in links(a, True) or b in links(a, False):
            yield "values"
        for writer, reader in ((a, b), (b, a)):
            yield from self._conflicts(writer, reader)
        written = [self._db.write_set(n) for n in (a, b)]
        both = [x for x in members(written[0]) if x != f.WORLD and intersects(written[1], x)]
        if f.RANDOM in both:
            yield RANDOM

    def _conflicts(self, node: Node, other: Node) -> Iterator[str]:
        """What one node writes and another reads."""
        for writer in inside(node):
            if writer.blocks or self._db.write_set(writer) is EMPTY:
                continue  # what is written in blocks, nodes inside write
            for reader in inside(other):
                for read in reads(reader):
                    for written in written_inputs(self._db, writer):
                        if self._db.may_contain_alias(written, read):
                            yield from self._cases(written, read)

    def _cases(self, written: Value, read: Value) -> Iterator[str]:
        unseen = set(missed_cases(self._db, written, read)) & UNSEEN_WRITES
        yield min(cases(unseen), default="memory")  # one that is not seen is enough for all not to be seen


CLASS = "unknown class"
"""PyTorch knows which attributes a class has; irc is not told, and takes them for anything, so that case 4 applies."""


def reasons(db: AliasDb, facts: Sequence[Fact], unseen: Collection[int]) -> set[str]:
    """What of ``facts`` PyTorch does not see: cases, or ``CLASS`` if 4 only is one because of what objects hold."""
    missed = numbers(db, facts)
    found = set(missed) & set(unseen)
    before = [held.subject for held, case in zip([Fact("", ""), *facts], missed) if case == 4]
    if 4 in found and all(subject.startswith("unknown : __torch__.") for subject in before):
        return cases(found - {4}) | {CLASS}
    return cases(found)


def cases(numbers: Iterable[int]) -> set[str]:
    """The names of cases."""
    return {f"case {n}" for n in numbers}


def inside(node: Node) -> Iterator[Node]:
    """``node`` and all nodes in it."""
    yield node
    yield from node.nested()


def reads(node: Node) -> Iterator[Value]:
    """What ``node`` itself reads; what a branch or a body hands on stays as it is."""
    if not node.is_return:
        yield from node.inputs


def written_inputs(db: AliasDb, node: Node) -> list[Value]:
    """The inputs of ``node`` that it writes itself, or whose elements it does."""
    elements = set(db._solver.index.elements(node))
    found = [v for v in node.inputs if db.facts.elements.get(v) in elements]
    if not found:
        found = [v for v in node.inputs if any(db.contents_element(x) in elements for x in members(db.location_set(v)))]
    written = db.write_set(node)
    return found or [v for v in node.inputs if intersects(written, db.reach_set(v))]
