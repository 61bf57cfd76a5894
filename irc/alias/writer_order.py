"""The order of the nodes that write the same memory, kept while they come and go."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable

from irc.ir.block import Block
from irc.ir.node import Node


class WriterOrder:
    """Writers, and all nodes that contain one, in order, by block.

    Nodes that write the same memory are never moved past each other, so their order stays what it was.

    Attributes:
        blocks: block -> these nodes there, in order.
    """

    def __init__(self, writers: Iterable[Node]) -> None:
        self.blocks: dict[Block, list[Node]] = {}
        self._counts: dict[Node, int] = {}
        """Node -> for how many reasons it is there: what it writes itself, and nodes right inside it that are."""
        for writer in writers:
            self._add(writer, _append)
        for nodes in self.blocks.values():
            nodes.sort(key=_order)

    def has(self, node: Node) -> bool:
        """Whether ``node`` is a writer, or contains one."""
        return node in self._counts

    def any_between(self, first: Node | None, last: Node) -> bool:
        """Whether such a node is between two nodes of one block; without ``first``, before ``last``."""
        nodes = self.blocks.get(last.block, ()) if last.block is not None else ()
        at = 0 if first is None else bisect_right(nodes, first.order, key=_order)
        return at < len(nodes) and nodes[at].order < last.order

    def add(self, writer: Node) -> bool:
        """Add ``writer``; False if it is in no block, which makes this order useless."""
        return self._add(writer, _insert)

    def _add(self, writer: Node, put: Callable[[list[Node], Node], None]) -> bool:
        node: Node | None = writer
        while node is not None:
            if node.block is None:
                return False
            count = self._counts.get(node, 0)
            self._counts[node] = count + 1
            if count:
                return True  # and so is what is around it
            put(self.blocks.setdefault(node.block, []), node)
            node = node.block.node
        return True

    def remove(self, writer: Node) -> bool:
        """Remove ``writer``; False if it is not where it was, which makes this order useless."""
        node: Node | None = writer
        while node is not None:
            count = self._counts.pop(node, 0)
            if count > 1:
                self._counts[node] = count - 1
                return True
            nodes = self.blocks.get(node.block, []) if node.block is not None else []
            at = bisect_left(nodes, node.order, key=_order)
            if node.block is None or at == len(nodes) or nodes[at] is not node:
                return False
            del nodes[at]
            if not nodes:
                del self.blocks[node.block]
            node = node.block.node
        return True


def _append(nodes: list[Node], node: Node) -> None:
    nodes.append(node)


def _insert(nodes: list[Node], node: Node) -> None:
    insort(nodes, node, key=_order)


def _order(node: Node) -> int:
    return node.order
