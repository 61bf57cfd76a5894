"""Merging equal nodes: decided one by one, done all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir import Node, Value

if TYPE_CHECKING:
    from irc.passes.rewriter import Rewriter


class Merges:
    """The nodes of one graph that shall give way to earlier ones, which compute the same.

    Very many may be merged into one, and each change that the alias analysis is told may have it look at much of the
    graph. So it is told once, when all is decided; what was decided since the beginning is remembered here.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._pairs: list[tuple[Node, Node]] = []
        self._instead: dict[Value, Value] = {}
        self._escaping: set[Value] = set()
        """Results that give the callers of a function what was merged into them."""

    def may_share(self, earlier: Node, node: Node) -> bool:
        """Whether each result of ``node`` may become one memory with that of ``earlier``, and all merged into it."""
        db = self._rewriter.db
        return all(
            self._rewriter.can_share(a, b) and (a not in self._escaping or not db.escapes(b) or db.must_alias(a, b))
            for a, b in zip(earlier.outputs, node.outputs, strict=True)
        )

    def add(self, earlier: Node, node: Node) -> None:
        """``node`` shall be merged into ``earlier``, which never is merged into others."""
        self._pairs.append((earlier, node))
        self._instead.update(zip(node.outputs, earlier.outputs, strict=True))
        if self._rewriter.graph.is_function:
            pairs = zip(earlier.outputs, node.outputs, strict=True)
            self._escaping.update(a for a, b in pairs if self._rewriter.db.escapes(b))

    def let_use(self, node: Node) -> None:
        """Let ``node`` use already what is left of its operands, so that it can be told to be equal to others.

        All of them at once: one by one, a node with n operands that merge would cost n². Not for the graph's end,
        whose results may have to keep their names, and the alias analysis learns of it from `apply` only.
        """
        if self._instead and any(value in self._instead for value in node.inputs):
            node.set_inputs([self._instead.get(value, value) for value in node.inputs])

    def apply(self) -> int:
        """Merge them. Returns how many."""
        return self._rewriter.replace_nodes([(node, earlier.outputs) for earlier, node in self._pairs])
