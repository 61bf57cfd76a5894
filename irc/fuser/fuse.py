"""The fuser: merges producers into their consumers' groups, keeping one AliasDb right all the time.

The scheme is that of PyTorch's graph fuser (pull request #37106): scan each
block backwards; while a consumer has a producer that the policy admits and
that can be moved next to it, merge the two; the AliasDb is updated at each
merge and never rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.fuser.policy import Policy, UpstreamAnchors
from irc.fuser.subgraph import is_group, make_group, merge_group, merge_node

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Graph, Node
    from irc.passes.base import PassContext


@dataclass(frozen=True)
class Fuse:
    """Fuse pointwise operators, and pointwise epilogues onto a convolution or matrix product.

    Options:
        max_size: how many operators a group may hold.
    """

    name: ClassVar[str] = "fuse"
    max_size: int = 64

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Fuse in every block."""
        fuser = _Fuser(graph, ctx, Policy(self.max_size))
        changed = False
        for block in list(graph.blocks()):
            for node in reversed(block.nodes):
                changed |= fuser.grow(node)
        return changed


class _Fuser:
    def __init__(self, graph: Graph, ctx: PassContext, policy: Policy) -> None:
        self.ctx = ctx
        self.policy = policy
        self.db: AliasDb = ctx.alias_db(graph)
        self.upstream = UpstreamAnchors(graph)

    def grow(self, consumer: Node) -> bool:
        """Merge all producers that may join into ``consumer``; return whether any did."""
        if not self.policy.may_start(consumer):
            return False
        grown = False
        refused: dict[Node, str] = {}
        while True:
            merged = self._merge_one(consumer, refused)
            if merged is None:
                break
            consumer, grown = merged, True
            refused.clear()  # what stood in the way may now be inside
        for producer, reason in refused.items():
            self.ctx.note(producer, f"does not join %{consumer.outputs[0].name}: {reason}")
        return grown

    def _merge_one(self, consumer: Node, refused: dict[Node, str]) -> Node | None:
        """Merge the last producer that may join; the group it is in now, or None."""
        for producer in self._producers(consumer):
            reason = self.policy.refusal(producer, consumer, self.upstream)
            if reason is None and not self.ctx.allow(producer):
                reason = "the optimisation limit is reached"
            if reason is None and not self.db.move_before(producer, consumer):
                reason = "it cannot be moved next to it: an operator between depends on it, or memory is written"
            if reason is not None:
                refused[producer] = reason
                continue
            with self.db.rewrite():
                group = consumer if is_group(consumer) else make_group(consumer, self.db)
                merge = merge_group if is_group(producer) else merge_node
                merge(producer, group, self.db)
            self.ctx.count("merged")
            return group
        return None

    def _producers(self, consumer: Node) -> list[Node]:
        """The nodes of ``consumer``'s block that make its inputs and may join groups, last first."""
        found = {
            value.node
            for value in consumer.inputs
            if value.node is not None and value.node.block is consumer.block and self.policy.is_candidate(value.node)
        }
        return sorted(found, key=lambda node: node.order, reverse=True)
