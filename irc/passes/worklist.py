"""Nodes that are still to be visited."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from irc.ir import Node


class Worklist:
    """Nodes that are still to be visited, in the order in which they were added, without duplicates."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._order = deque[Node]()
        self._held = set[Node]()
        self.add(nodes)

    def add(self, nodes: Iterable[Node]) -> None:
        """Put ``nodes`` at the end, except those that are waiting already."""
        for node in nodes:
            if node not in self._held:
                self._held.add(node)
                self._order.append(node)

    def pop(self) -> Node:
        """Take the first one."""
        node = self._order.popleft()
        self._held.remove(node)
        return node

    def __len__(self) -> int:
        return len(self._order)
