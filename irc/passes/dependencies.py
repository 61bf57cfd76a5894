"""Which nodes of a block must keep their order."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from irc.passes.memory_order import memory_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from irc.alias import AliasDb
    from irc.ir import Graph, Node, Value


def captures(graph: Graph) -> dict[Node, list[Value]]:
    """For every node with blocks, the outer values used inside of it, each once."""
    found: dict[Node, list[Value]] = {}
    for node in reversed([node for node in graph.walk() if node.blocks]):
        captured: dict[Value, None] = {}
        for block in node.blocks:
            for inner in (*block.unchanging_nodes(), block.return_node):
                for value in (*inner.inputs, *found.get(inner, ())):
                    if value.block is not block:
                        captured[value] = None
        found[node] = list(captured)
    return found


def operands(node: Node, captured: Mapping[Node, Sequence[Value]]) -> list[Value]:
    """What ``node`` uses, each value once: its inputs, and what is used inside of it."""
    return list(dict.fromkeys((*node.inputs, *captured.get(node, ()))))


class Dependencies:
    """The order that nodes of one block must keep: values before their uses; reads and writes of one place in order.

    The size is linear in what the nodes use and touch. Nodes are numbers: positions in ``nodes``.

    Args:
        nodes: the nodes of a block, in order.
        used: what each of them uses.
        db: the alias analysis of their graph.

    Attributes:
        after: for each node, those that must come after it; some may be named twice.
    """

    def __init__(self, nodes: Sequence[Node], used: Sequence[Iterable[Value]], db: AliasDb) -> None:
        self.after: list[list[int]] = [[] for _ in nodes]
        self._waits = [0] * len(nodes)
        maker = {value: i for i, node in enumerate(nodes) for value in node.outputs}
        for i, values in zip(range(len(nodes)), used):
            for value in values:
                if value in maker:
                    self._add(maker[value], i)
        for i, firsts in enumerate(memory_order(db, nodes)):
            for first in sorted(firsts):
                self._add(first, i)

    def _add(self, first: int, then: int) -> None:
        self.after[first].append(then)
        self._waits[then] += 1

    def leads_to(self, start: int, goals: Iterable[int], effort: int) -> bool:
        """Whether one of ``goals`` must come after ``start``; True, too, if ``effort`` steps do not settle it."""
        wanted = set(goals)
        end = max(wanted)
        seen = {start}
        pending = [start]
        while pending:
            for i in self.after[pending.pop()]:
                effort -= 1
                if i in wanted or effort < 0:
                    return True
                if i < end and i not in seen:
                    seen.add(i)
                    pending.append(i)
        return False

    def order(self, wishes: Mapping[int, Iterable[int]]) -> list[int]:
        """The nodes in order, except where wishes ask otherwise.

        Next is always the first node for which all nodes are done that it must, or wishes to, come after; if wishes
        leave none, the first node that can run at all.

        Args:
            wishes: node -> others that it would rather come after.
        """
        must = list(self._waits)
        held: dict[int, list[int]] = {}
        rather: dict[int, int] = {}
        for node, firsts in wishes.items():
            for first in firsts:
                held.setdefault(first, []).append(node)
                rather[node] = rather.get(node, 0) + 1
        ready = [i for i, n in enumerate(must) if not n and not rather.get(i)]
        waiting = [i for i, n in enumerate(must) if not n and rather.get(i)]
        done = [False] * len(must)
        found: list[int] = []
        while ready or waiting:
            node = heappop(ready or waiting)
            if done[node]:
                continue
            done[node] = True
            found.append(node)
            for then in self.after[node]:
                must[then] -= 1
                if not must[then]:
                    heappush(waiting if rather.get(then) else ready, then)
            for then in held.get(node, ()):
                rather[then] -= 1
                if not rather[then] and not must[then]:
                    heappush(ready, then)
        return found
