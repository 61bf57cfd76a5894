"""Which writes nothing can see, because all that they write is overwritten before anything reads it.

Invariants:

- An answer is about two nodes of one block, in one execution of it. Every value that a chain of views is made of is
  defined once in that time.
- `Coverage.covers` fails closed: it follows views that certainly show no more than their operand, and compares places
  only where both views are taken of one value.
- What unknown code may have kept, it may read whenever it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from irc.alias.location_sets import intersects
from irc.alias.memory_types import has_memory
from irc.alias.must import Cover, step_of
from irc.alias.regions import MOST_VIEWS, part_of, reads_elements, written
from irc.ir import INT, NONE, Node, Value
from irc.ir.polynomials import Size, minus, plus
from irc.ops import record
from irc.ops.regions import is_from_0, quantity

if TYPE_CHECKING:
    from irc.alias.db import AliasDb

_FARTHEST = 128
"""How many nodes before a write are looked at."""

_MOST_ASKED = 8
"""Of how many of them that use the storage it is asked which parts of it they use."""


def dead_stores(db: AliasDb) -> list[Node]:
    """In-place operators of which a later one in their block overwrites all they write, before it is read.

    A node and its users may do without it: its result is its first operand. Each of the first n may go by itself.
    """
    if db.declares_unknown():
        return []
    search = _Search(db)
    for node in db.writing_nodes():
        if record(node.kind).overwrites and node not in search.dead:
            search.kill(node)
    return list(search.dead)


class _Search:
    """Finds the writes that nothing reads; remembers what is asked of each node and value again and again.

    Attributes:
        dead: those found.
    """

    def __init__(self, db: AliasDb) -> None:
        self.dead: dict[Node, None] = {}
        self._db = db
        self._coverage = Coverage()
        self._target = cache(partial(_target, db))
        self._reads_elements = cache(partial(reads_elements, db))
        self._part = cache(partial(part_of, db))
        self._read_set = cache(db.read_set)
        self._reach_set = cache(db.reach_set)
        self._may_be_known = cache(db.may_be_known)
        self._looks_at_no_elements = cache(self._gives_views)
        targets = filter(None, map(self._target, db.writing_nodes()))
        self._places_written = Counter(places for target in targets for places in self._coverage.around(target))

    def kill(self, node: Node) -> None:
        """Add the writes that nothing reads before ``node`` overwrites what it writes."""
        whole = self._target(node)
        if whole is None or self._is_written_once(whole) or self._may_read(node, whole):
            return
        memory = self._db.location_set(whole)
        at, asked = node.prev, 0
        for _ in range(_FARTHEST):
            if at is None or asked == _MOST_ASKED:
                return
            if at not in self.dead:
                uses = intersects(self._read_set(at), memory)
                asked += uses
                target = self._target(at) if uses else None
                if target is not None and self._coverage.covers(whole, target):
                    self.dead[at] = None
                elif self._may_read(at, whole):
                    return
            at = at.prev

    def _is_written_once(self, value: Value) -> bool:
        """Whether ``value`` is one place along a dimension, where no other node is known to write."""
        found = next(self._coverage.around(value), None)
        return found is not None and found[1].is_one and self._places_written[found] == 1

    def _may_read(self, node: Node, value: Value) -> bool:
        """Whether ``node``, of the block of a later write, may read elements that ``value`` shows."""
        memory = self._db.location_set(value)
        if not intersects(self._read_set(node), memory):
            return self._may_be_known(value) and not self._reads_elements(node)
        if self._looks_at_no_elements(node):
            return False
        if not self._reads_elements(node):
            return True
        part = self._part(value)
        for other in node.inputs[1:] if record(node.kind).overwrites else node.inputs:
            if intersects(self._reach_set(other), memory):
                read = None if part is None else self._part(other)
                if part is None or read is None or part.apart(read, node.block, self._db.memo) is None:
                    return True
        return False

    def _gives_views(self, node: Node) -> bool:
        """Whether ``node`` certainly does no more than give views of its operands, or tell of their shapes."""
        if node.blocks or not node.outputs or self._db.writes_anything(node):
            return False
        if record(node.kind).contents_from == "shapes":
            return True
        return all(self._coverage.shown(value) is not None for value in node.outputs)


def _target(db: AliasDb, node: Node) -> Value | None:
    """The tensor of which ``node`` writes elements, if it does nothing else and its result is that tensor."""
    if not node.inputs or not db.writes_anything(node) or written(node) != [node.inputs[0]]:
        return None
    if db.is_random(node) or db.has_side_effects(node) or db.has_metadata_writers(node.inputs[0]):
        return None
    is_same = all(db.same_tensor(value, node.inputs[0]) for value in node.outputs)
    return node.inputs[0] if is_same else None


class Coverage:
    """Which views show all elements that others show. Holds until the graph changes.

    Attributes:
        shown: from a value to the operand of which it shows no more than elements; None if there is none.
    """

    def __init__(self) -> None:
        self.shown = cache(_shown)
        self._first_name = cache(_first_name)
        self._places = cache(_places)

    def covers(self, whole: Value, part: Value) -> bool:
        """Whether ``whole`` certainly shows all elements that ``part`` shows, in one execution of a block.

        Nothing changes the shape or strides of either.
        """
        whole, at = self._first_name(whole), part
        for _ in range(MOST_VIEWS):
            at = self._first_name(at)
            if at is whole or self._is_within(at, whole):
                return True
            shown = self.shown(at)
            if shown is None:
                return False
            at = shown
        return False

    def around(self, part: Value) -> Iterator[tuple[Value, _Places]]:
        """Places that show all that ``part`` shows, each with the value that they are of; nearest first."""
        at: Value | None = part
        for _ in range(MOST_VIEWS):
            node = self._first_name(at).node
            places = None if node is None else self._places(node)
            if node is not None and places is not None:
                yield self._first_name(node.inputs[0]), places
            at = self.shown(self._first_name(at))
            if at is None:
                return

    def _is_within(self, part: Value, whole: Value) -> bool:
        """Whether two views of one value are equal, or ``part`` shows no more places along one dimension."""
        a, b = part.node, whole.node
        if a is None or b is None or not a.inputs or not b.inputs:
            return False
        if self._first_name(a.inputs[0]) is not self._first_name(b.inputs[0]):
            return False
        inner, outer = self._places(a), self._places(b)
        if inner is None or outer is None or inner.dim != outer.dim or outer.step != 1:
            return part.index == whole.index and _are_equal(a, b) and self.shown(part) is not None
        if outer.high is not None and (inner.high is None or not is_from_0(minus(outer.high, inner.high))):
            return False
        return is_from_0(minus(inner.low, outer.low))


def _first_name(value: Value) -> Value:
    """The earliest value that certainly is the same tensor as ``value``, of the last few that are."""
    for _ in range(MOST_VIEWS):
        link = step_of(value)
        if link is None or link.cover is not Cover.SAME:
            break
        value = link.value
    return value


def _shown(value: Value) -> Value | None:
    """The operand of which ``value`` shows no more than elements; None if there is none."""
    link = step_of(value)
    if link is None or (value.node is not None and "storage" in record(value.node.kind).layout):
        return None
    is_view = value.node is not None and not value.node.blocks
    return link.value if is_view or link.cover is Cover.SAME else None


def _are_equal(a: Node, b: Node) -> bool:
    """Whether two nodes of one first operand are views with the same numbers."""
    if a.kind != b.kind or a.attributes or b.attributes or len(a.inputs) != len(b.inputs):
        return False
    return all(
        not has_memory(v.type) and (v is w or (v.type == w.type == INT and quantity(v) == quantity(w) is not None))
        for v, w in zip(a.inputs[1:], b.inputs[1:])
    )


class _Places(NamedTuple):
    """Every ``step``-th place from ``low`` to before ``high`` along a dimension; None: to its end."""

    dim: int
    low: Size
    high: Size
    step: int = 1

    @property
    def is_one(self) -> bool:
        """Whether it is no more than one place."""
        return plus(self.low, 1) == self.high


def _places(node: Node) -> _Places | None:
    """The places that a view shows, if it is cut along one dimension by numbers that are at least 0."""
    count = _CUTTING.get(node.kind)
    if count is None or len(node.inputs) != count:
        return None
    is_open = [v.type == NONE for v in node.inputs]
    dim, low, *more = (quantity(v) for v in node.inputs[1:])
    step: Size = 1
    if node.kind == "aten::slice":
        low, (high, step) = 0 if is_open[2] else low, more
    else:
        high = plus(low, *more or [1])
    ends = is_open[3:4] == [True] or is_from_0(high)
    if not isinstance(dim, int) or not isinstance(step, int) or step < 1 or not is_from_0(low) or not ends:
        return None
    return _Places(dim, low, high, step)


_CUTTING = {"aten::select": 3, "aten::narrow": 4, "aten::slice": 5}
"""Views that are cut along one dimension, with how many operands."""
