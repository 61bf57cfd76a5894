"""Moving nodes within a block where it makes no observable difference.

A node may move past another if neither needs the other's results, neither
reads or writes memory that the other writes, and neither acts on the world.
What depends on a node moves along with it, or is left behind on the other
side of the point, as the case may be; all or nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from irc.alias.location_sets import EMPTY, LocationSet, intersects
from irc.ir.node import Node

if TYPE_CHECKING:
    from irc.alias.db import AliasDb
    from irc.ir import Value


_FAR = 128
"""After how many nodes a look at all between two asks first whether it can lead to anything."""


_MOST_PARTS = 8
"""The most nodes of which it is asked which parts of tensors they use."""

_MOST_ASKED = 32
"""How many nodes are looked at that use storage which those nodes write, or the other way round."""


class Footprint:
    """The memory that some nodes read and write, taken together."""

    def __init__(self, db: AliasDb, nodes: Iterable[Node] = ()) -> None:
        self._db = db
        self._nodes: list[Node] = []
        self._asked = 0
        self._read: LocationSet = EMPTY
        self._written: LocationSet = EMPTY
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add what ``node`` reads and writes."""
        db = self._db
        self._nodes.append(node)
        if db.any_writes():
            self._read = db.union(self._read, db.read_set(node))
            self._written = db.union(self._written, db.write_set(node))

    def conflicts(self, node: Node) -> bool:
        """Whether ``node`` writes what these nodes read or write, or reads what they write."""
        written = self._db.write_set(node)
        meets = written is not EMPTY and (intersects(written, self._read) or intersects(written, self._written))
        if not meets and (self._written is EMPTY or not intersects(self._db.read_set(node), self._written)):
            return False
        self._asked += 1
        if len(self._nodes) > _MOST_PARTS or self._asked > _MOST_ASKED:
            return True
        return any(self._db.conflict(node, other) for other in self._nodes)


def links(node: Node, forward: bool) -> set[Node]:
    """Nodes of the block that use results of ``node`` (forward) or make what it uses, nested uses too."""
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


class Move:
    """Getting a node right before a point of its block, or else right after it.

    Args:
        db: the alias analysis.
        node: what is to move.
        point: where to.
        before: to which side of it.
        last: if given, the nodes from ``point`` to this one, which is behind it, count as one point. ``node`` must
            be before it.

    Attributes:
        plan: ``node``, then those that move because they depend on it, from its place towards the point; None if it
            cannot be.
        blocker: a node that keeps it from there, if it cannot be; None if none was singled out.

    Raises:
        Error: IRC343 one of the nodes is of another graph than the database.
    """

    def __init__(self, db: AliasDb, node: Node, point: Node, before: bool, last: Node | None = None) -> None:
        self._db, self._node, self._point, self._before, self._last = db, node, point, before, last or point
        for given in (node, point, self._last):
            db.check_own(given)
        self.plan: list[Node] | None = None
        self.blocker: Node | None = None
        if self._is_one():
            self._forward = node.is_before(point)
            self._stays = before == self._forward  # on its side of the point; what depends on it goes to the other
            self._sign = 1 if self._forward else -1
            self.plan = self._find_plan()

    def carry_out(self) -> None:
        """Move what moves. There must be a plan, and nothing must have changed since it was made."""
        assert self.plan is not None, "it cannot be moved"
        if self._is_there():
            return
        at, before, moving = self._point, self._before, self.plan
        if self._stays:
            (self._node.move_before if before else self._node.move_after)(at)
            at, before, moving = self._last, not before, moving[1:]
        for other in moving:
            (other.move_before if before else other.move_after)(at)
            at = other

    def _is_one(self) -> bool:
        """Whether the node, the point and the last node are in one block and in the required order."""
        node, point, last = self._node, self._point, self._last
        if node.block is None or node.block is not point.block or node.is_return:
            return False
        if point.is_return and not self._before:
            return False
        return last is point or (node.block is last.block and node.is_before(point) and point.is_before(last))

    def _is_there(self) -> bool:
        """Whether nothing has to move."""
        return self._node is self._point or (self._before and self._node.next is self._point)

    def _find_plan(self) -> list[Node] | None:
        db, node, point = self._db, self._node, self._point
        if self._is_there():
            return [node]
        if db.acts_on_world_between(*((node, point) if self._forward else (point, node))):
            return None
        if db.has_side_effects(node) and self._step(node) is not point:
            return None
        moving = self._by_values()
        if moving is None:
            moving = self._by_looking()
        crossing = moving[1:] if self._stays else moving
        if crossing and (point.is_return or any(map(db.has_side_effects, (node, *self._goal)))):
            return None  # nothing passes what acts on the world, nor the end of the block
        return moving or None

    @cached_property
    def _goal(self) -> list[Node]:
        """The nodes from ``point`` to ``last``."""
        found = [self._point]
        while found[-1] is not self._last:
            after = found[-1].next
            assert after is not None, "the last node is not behind the point"
            found.append(after)
        return found

    def _step(self, node: Node) -> Node:
        """What is next to ``node`` on the way to the point."""
        return (node.next if self._forward else node.prev) or self._point

    def _by_looking(self) -> list[Node]:
        """The plan found by examining each node on the way; empty if a node that must move cannot."""
        goal = self._goal
        memory_of_goal, memory_of_moving = Footprint(self._db, goal), Footprint(self._db)
        moving: list[Node] = []
        linked: set[Node] = set()
        walk, walked = self._node, 0
        while walk is not self._point:
            walked += 1
            if walked == _FAR and self._is_linked():
                return []
            if walk is self._node or walk in linked or memory_of_moving.conflicts(walk):
                found = links(walk, self._forward)
                crosses = walk is not self._node or not self._stays
                if crosses and (not found.isdisjoint(goal) or memory_of_goal.conflicts(walk)):
                    self.blocker = walk
                    return []  # at once: of a tensor that is read and written in turn, all that follows would join
                moving.append(walk)
                linked |= found
                memory_of_moving.add(walk)
            walk = self._step(walk)
        return moving

    def _by_values(self) -> list[Node] | None:
        """The plan found by following values alone, at any distance; empty if there is none.

        None if the nodes use memory that is written on the way: then the nodes between must be examined.
        """
        db, sign = self._db, self._sign
        moving: list[Node] = []
        pending = [(sign * self._node.order, self._node)]
        seen = {self._node}
        end, beyond = sign * self._point.order, sign * self._last.order
        is_far = False
        while pending:
            if not is_far and (len(moving) == _FAR or (not moving and self._has_many_users())):
                is_far = True
                if self._is_linked():
                    return []
            _, member = heappop(pending)
            if db.touches_written(member) and (db.writes_anything(member) or db.reads_written(member, self._last)):
                return None
            moving.append(member)
            for linked in links(member, self._forward):
                at = sign * linked.order
                if end <= at <= beyond:
                    if not (self._stays and member is self._node):
                        self.blocker = member
                        return []
                elif at < end and linked not in seen:
                    seen.add(linked)
                    heappush(pending, (at, linked))
        return moving

    def _is_linked(self) -> bool:
        """Whether, by values alone, the goal is linked to the node: a bounded search that starts at the goal.

        In a deep model, what all layers use is also used in the layer right before the goal.
        """
        sign = -self._sign
        pending = sorted((sign * member.order, member) for member in self._goal)
        seen = set(self._goal)
        for _ in range(2 * _FAR):
            if not pending:
                break
            _, member = heappop(pending)
            for linked in links(member, not self._forward) - seen:
                if linked is self._node:
                    if not self._stays or member not in self._goal:
                        return True
                elif sign * linked.order < sign * self._node.order:
                    seen.add(linked)
                    heappush(pending, (sign * linked.order, linked))
        return False

    def _has_many_users(self) -> bool:
        """Whether the node moves forward and has too many users to look at each of them."""
        return self._forward and sum([value.user_count for value in self._node.outputs]) > _FAR


def backward_slice(db: AliasDb, outputs: Iterable[Value], cuts: Container[Value] = ()) -> tuple[set[Node], set[Value]]:
    """The top block's nodes that ``outputs`` come from, and the values that they lead to.

    Among the nodes are those that write memory on the way. Nodes that make values in ``cuts`` are left out.
    """
    nodes: set[Node] = set()
    reached = dict.fromkeys(outputs)
    for node in reversed(list(db.graph.nodes)):  # what reads memory comes after what writes it
        makes = any(value in reached and value not in cuts for value in node.outputs)
        if makes or (db.is_mutable(node) and db.writes_to_alias(node, list(reached))):
            nodes.add(node)
            reached.update(dict.fromkeys([*node.inputs, *node.captures()]))
    return nodes, set(reached)
