"""A fuser that builds the alias analysis anew where PyTorch's did before pull request #37106."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.fuser.fuse import Fuse, Fuser

if TYPE_CHECKING:
    from irc.fuser.fuse import Cluster
    from irc.ir import Block, Graph
    from irc.passes import PassContext


@dataclass(frozen=True)
class RebuildingFuse(Fuse):
    """irc's fuser but for the alias analysis: a new one for every scan of every block, and after every group."""

    name: ClassVar[str] = "fuse"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        return _RebuildingFuser(graph, ctx, self.policy(graph)).run()


class _RebuildingFuser(Fuser):
    def scan(self, block: Block) -> bool:
        self._rebuild()
        return super().scan(block)

    def close(self, cluster: Cluster) -> None:
        super().close(cluster)
        self._rebuild()  # it knows nothing of the group

    def _rebuild(self) -> None:
        self.ctx.drop_alias_db(self.graph)
        self.db = self.ctx.alias_db(self.graph)
