"""Moving nodes within a block where nothing can tell the difference.

A node may move past another if neither needs the other's results, neither
reads or writes memory that the other writes, and neither acts on the world.
What depends on a node moves along with it, or is left behind on the other
side of the point, as the case may be; all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from irc.alias.sets import EMPTY, LocationSet, intersects
from irc.ir.node import Node

if TYPE_CHECKING:
    from irc.alias.queries import Queries


_FAR = 128
"""After how many nodes a look at all between two asks first whether it can lead to anything."""


class Footprint:
    """The memory that some nodes read and write, taken together."""

    def __init__(self, db: Queries, nodes: Iterable[Node] = ()) -> None:
        self._db = db
        self._read: LocationSet = EMPTY
        self._written: LocationSet = EMPTY
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add what ``node`` reads and writes."""
        db = self._db
        if db.any_writes():
            self._read = db.union(self._read, db.read_set(node))
            self._written = db.union(self._written, db.write_set(node))

    def conflicts(self, node: Node) -> bool:
        """Whether ``node`` writes what these nodes read or write, or reads what they write."""
        written = self._db.write_set(node)
        if written is not EMPTY and (intersects(written, self._read) or intersects(written, self._written)):
            return True
        return self._written is not EMPTY and intersects(self._db.read_set(node), self._written)


def links(node: Node, forward: bool) -> set[Node]:
    """The nodes of the same block that use results of ``node`` (forward) or make what it uses, nested uses included."""
    block = node.block
    assert block is not None
    found: set[Node] = set()
    if forward:
        for value in node.outputs:
            for user in value.iter_users():
                outer = user if user.block is block else user.ancestor_in(block)
                if outer is not None:
                    found.add(outer)
        return found
    inside = [node]
    while inside:
        inner = inside.pop()
        for value in inner.inputs:
            if value.node is not None:
                outer = value.node if value.node.block is block else value.node.ancestor_in(block)
                if outer is not None and outer is not node:
                    found.add(outer)
        for nested in inner.blocks:
            inside.extend(nested.nodes)
            inside.append(nested.return_node)
    return found


def plan_move(db: Queries, node: Node, point: Node, before: bool, last: Node | None = None) -> list[Node] | None:
    """Which nodes move so that ``node`` gets right before (or else right after) ``point``.

    Args:
        db: the alias analysis.
        node: what is to move.
        point: where to.
        before: to which side of it.
        last: if given, the nodes from ``point`` to this one, which is behind it, count as one point. ``node`` must
            be before it.

    Returns:
        ``node``, then those that move because they depend on it, from its
        place towards the point; None if it cannot be.

    Raises:
        Error: IRC343 one of the nodes is of another graph than the database.
    """
    for given in (node, point, last or point):
        db.check_own(given)
    if node.block is None or node.block is not point.block or node.is_return or (point.is_return and not before):
        return None
    last = last or point
    if last is not point and not (node.block is last.block and node.is_before(point) and point.is_before(last)):
        return None
    if node is point or (before and node.next is point):
        return [node]
    forward = node.is_before(point)
    between = (node, point) if forward else (point, node)
    if db.acts_on_world_between(*between):
        return None
    if db.has_side_effects(node) and _step(node, point, forward) is not point:
        return None
    stays = before == forward
    moving = _by_values(db, node, point, last, forward, stays)
    if moving is None:
        moving = _by_looking(db, node, point, last, forward, stays)
    crossing = moving[1:] if stays else moving
    if crossing and (point.is_return or any(map(db.has_side_effects, (node, *_run(point, last))))):
        return None  # nothing passes what acts on the world, nor the end of the block
    return moving or None


def move(node: Node, point: Node, before: bool, moving: list[Node], last: Node | None = None) -> None:
    """Carry out a plan."""
    if node is point or (before and node.next is point):
        return
    side = before
    if before == node.is_before(point):
        # It stays on its side of the point, what depends on it goes to the other.
        (node.move_before if before else node.move_after)(point)
        moving, side = moving[1:], not before
        point = last or point
    at = point
    for other in moving:
        (other.move_before if side else other.move_after)(at)
        at = other


def _run(first: Node, last: Node) -> list[Node]:
    """The nodes from ``first`` to ``last``."""
    found = [first]
    while found[-1] is not last:
        after = found[-1].next
        assert after is not None, "the last node is not behind the point"
        found.append(after)
    return found


def _by_looking(db: Queries, node: Node, point: Node, last: Node, forward: bool, stays: bool) -> list[Node]:
    """The plan from looking at the nodes between, up to one that must move and cannot; empty if there is none."""
    goal = _run(point, last)
    memory_of_goal, memory_of_moving = Footprint(db, goal), Footprint(db)
    moving: list[Node] = []
    linked: set[Node] = set()
    walk, walked = node, 0
    while walk is not point:
        walked += 1
        if walked == _FAR and _is_between(node, goal, forward, stays):
            return []
        if walk is node or walk in linked or memory_of_moving.conflicts(walk):
            found = links(walk, forward)
            crosses = walk is not node or not stays
            if crosses and (not found.isdisjoint(goal) or memory_of_goal.conflicts(walk)):
                return []  # at once: of a tensor that is read and written in turn, all that follows would join
            moving.append(walk)
            linked |= found
            memory_of_moving.add(walk)
        walk = _step(walk, point, forward)
    return moving


def _by_values(db: Queries, node: Node, point: Node, last: Node, forward: bool, stays: bool) -> list[Node] | None:
    """The plan from following values alone, whatever the distance; empty if there is none.

    None if memory is involved that is written on the way, so that one has to look at the nodes between.
    """
    moving: list[Node] = []
    sign = 1 if forward else -1
    pending = [(sign * node.order, node)]
    seen = {node}
    end, beyond = sign * point.order, sign * last.order
    is_far = False
    while pending:
        if not is_far and (len(moving) == _FAR or (not moving and forward and _has_many_users(node))):
            is_far = True
            if _is_between(node, _run(point, last), forward, stays):
                return []
        _, member = heappop(pending)
        if db.touches_written(member) and (db.writes_anything(member) or db.reads_written(member, last)):
            return None
        moving.append(member)
        for linked in links(member, forward):
            at = sign * linked.order
            if end <= at <= beyond:
                if not (stays and member is node):
                    return []
            elif at < end and linked not in seen:
                seen.add(linked)
                heappush(pending, (at, linked))
    return moving


def _is_between(node: Node, goal: list[Node], forward: bool, stays: bool) -> bool:
    """Whether the goal is linked, by values alone, to what must pass it; looked for from there, among so many nodes.

    What all layers of a deep model use is used in the layer before, too.
    """
    sign = -1 if forward else 1
    pending = sorted((sign * member.order, member) for member in goal)
    seen = set(goal)
    for _ in range(2 * _FAR):
        if not pending:
            break
        _, member = heappop(pending)
        for linked in links(member, not forward) - seen:
            if linked is node:
                if not stays or member not in goal:
                    return True
            elif sign * linked.order < sign * node.order:
                seen.add(linked)
                heappush(pending, (sign * linked.order, linked))
    return False


def _has_many_users(node: Node) -> bool:
    """Whether a look at all users of ``node`` is one at very many."""
    return sum([value.user_count for value in node.outputs]) > _FAR


def _step(node: Node, point: Node, forward: bool) -> Node:
    return (node.next if forward else node.prev) or point
