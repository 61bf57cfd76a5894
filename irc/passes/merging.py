"""Merging equal nodes: each merge is decided on its own, all are carried out at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir import Node, Value

if TYPE_CHECKING:
    from irc.passes.rewriter import Rewriter


class Merges:
    """The nodes of one graph that are to be replaced by earlier ones, which compute the same.

    Very many nodes may be merged into one, and each update of the alias analysis may re-analyse much of the
    graph. So it is updated once, when all is decided; until then, the decisions are remembered here.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._pairs: list[tuple[Node, Node]] = []
        self._escaping: set[Value] = set()
        """Results that give the callers of a function what was merged into them."""

    def may_share(self, earlier: Node, node: Node) -> bool:
        """Whether results of ``node`` may become the same memory as those of ``earlier`` and of all merged into it."""
        db = self._rewriter.db
        return all(
            self._rewriter.can_share(a, b) and (a not in self._escaping or not db.escapes(b) or db.must_alias(a, b))
            for a, b in zip(earlier.outputs, node.outputs, strict=True)
        )

    def add(self, earlier: Node, node: Node) -> None:
        """Plan to merge ``node`` into ``earlier``, which is never itself merged into another."""
        self._pairs.append((earlier, node))
        if self._rewriter.graph.is_function:
            pairs = zip(earlier.outputs, node.outputs, strict=True)
            self._escaping.update(a for a, b in pairs if self._rewriter.db.escapes(b))

    def apply(self) -> int:
        """Carry out the planned merges. Returns how many."""
        return self._rewriter.replace_nodes([(node, earlier.outputs) for earlier, node in self._pairs])
