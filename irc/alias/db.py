"""Phase two: the database that answers, and that updates keep right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.alias import draw
from irc.alias.explain import Fact, why
from irc.alias.motion import Move
from irc.alias.updates import Updates
from irc.ir.node import Node
from irc.ir.value import Value

if TYPE_CHECKING:
    import networkx as nx


class AliasDb(Updates):
    """What is known of the memory of a graph's values. Made by ``analyze``.

    It describes the graph as it was then, with the updates made since: whatever
    changes the graph must make them.

    Attributes:
        graph: the graph it is about.
    """

    # -- explaining ------------------------------------------------------

    def why(self, a: Value, b: Value) -> list[Fact]:
        """The facts that let ``a`` and ``b``, or something they hold, share memory; empty if they never do.

        Takes one value on each side.
        """
        self.check_single(a, b)
        return why(self, a, b)

    # -- drawing ---------------------------------------------------------

    def __repr__(self) -> str:
        return f"<alias analysis of {self.graph!r}>"

    def __str__(self) -> str:
        return draw.to_text(self)

    def to_dot(self) -> str:
        """Values, locations, what they hold and which nodes write them, in Graphviz's language."""
        return draw.to_dot(self)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """The same as a networkx graph; nodes have ``label`` and ``sort``, edges ``kind``."""
        return draw.to_networkx(self)

    # -- motion ----------------------------------------------------------

    def can_move_before(self, node: Node, point: Node) -> bool:
        """Whether ``move_before`` would succeed."""
        return Move(self, node, point, before=True).plan is not None

    def can_move_after(self, node: Node, point: Node) -> bool:
        """Whether ``move_after`` would succeed."""
        return Move(self, node, point, before=False).plan is not None

    def move_before(self, node: Node, point: Node, last: Node | None = None) -> bool:
        """Move ``node`` right before ``point``, a node of the same block, if nothing can tell the difference.

        Nodes between the two move too where they must. Returns whether it was
        done; if not, nothing has changed. With ``last``, a node behind
        ``point``, all from there to ``last`` stay together: what must not stay
        before them goes behind them; ``node`` must be before them, or nothing
        is done.
        """
        return self._move(node, point, True, last)

    def move_after(self, node: Node, point: Node) -> bool:
        """Move ``node`` right after ``point``; otherwise as ``move_before``."""
        return self._move(node, point, False)

    def _move(self, node: Node, point: Node, before: bool, last: Node | None = None) -> bool:
        move = Move(self, node, point, before, last)
        if move.plan is None:
            return False
        move.carry_out()
        return True
