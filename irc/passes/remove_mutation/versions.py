"""Versions of one piece of memory: what a read sees depends on which writes came before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from irc.ir import Block, Node, Value
from irc.ir.kinds import IF
from irc.passes.last_uses import way_up

Version: TypeAlias = Node | Block | None
"""Contents of the memory: as they are after a node that writes, or has writes inside; as they are when a trip of a
loop begins, by the loop's block; None: as they were made."""


class Versions:
    """The versions of the memory of ``root``, by where in the graph.

    A write inside a branch or loop makes a new version after it; a write inside
    a loop, also one at the beginning of each trip. So each place in the graph
    sees exactly one version.

    Attributes:
        home: the block where the memory is made; outside of it, its versions have no names.
        around: the nodes that have writes inside, outermost first.
    """

    def __init__(self, root: Value, writes: Iterable[Node]) -> None:
        assert root.node is not None and root.node.block is not None
        self._root = root.node
        self.home: Block = root.node.block
        events: dict[Block, dict[Node, None]] = {}
        around: dict[Node, None] = {}
        for write in writes:
            way = way_up(write, self.home)
            assert way, "a write must be in the scope of what it writes"
            for at in way:
                assert at.block is not None
                events.setdefault(at.block, {})[at] = None
            around.update(dict.fromkeys(way[:0:-1]))
        self.around = list(around)
        self._events = {block: sorted(nodes, key=lambda n: n.order) for block, nodes in events.items()}

    def while_changing(self) -> Iterator[Node]:
        """All nodes after the one that makes the memory, up to the last that writes it, and the nodes inside them."""
        at, last = self._root, self._events[self.home][-1]
        while at is not last:
            assert at.next is not None, "a write comes after what it writes is made"
            at = at.next
            yield at
            yield from at.nested()

    def in_scope(self, node: Node) -> bool:
        """Whether ``node`` runs after the memory was made, in its block or nested there."""
        at = node.ancestor_in(self.home)
        return at is not None and self._root.is_before(at)

    def before(self, node: Node) -> Version:
        """The version that ``node``, which is in scope, sees."""
        while True:
            block = node.block
            assert block is not None
            events = self._events.get(block, [])
            index = bisect_left(events, node.order, key=lambda n: n.order)
            if index:
                return events[index - 1]
            if block is self.home:
                return None
            if events and not is_branch(block):
                return block
            assert block.node is not None
            node = block.node

    def after(self, node: Node) -> Version:
        """The version seen right after ``node``, which is in scope."""
        block = node.block
        assert block is not None
        return node if node in self._events.get(block, ()) else self.before(node)

    def at_start(self, block: Block) -> Version:
        """The version seen at the beginning of ``block``, the body of a loop in scope."""
        if self._events.get(block):
            return block
        assert block.node is not None
        return self.before(block.node)

    def at_end(self, block: Block) -> Version:
        """The version seen at the end of ``block``."""
        return self.before(block.return_node)


def is_branch(block: Block) -> bool:
    """Whether ``block`` runs at most once for each run of its node."""
    return block.node is not None and block.node.kind == IF
