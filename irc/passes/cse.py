"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from irc.ir import Block, Graph, Node
from irc.ir.types import TensorType
from irc.ops import record
from irc.passes.merging import Merges, attributes_key
from irc.passes.quantised import QUANTISING
from irc.passes.registry import register

if TYPE_CHECKING:
    from irc.passes.base import PassContext
    from irc.passes.rewriter import Rewriter


@register
@dataclass(frozen=True)
class Cse:
    """Let nodes that compute the same from the same values share one result.

    A node uses the result of an equal one that dominates it: an earlier one of
    its block or of a block around it. Nodes are equal if their kind, version, attributes,
    inputs and output types agree; what is known of tensors in the types may differ. Not merged: nodes with blocks,
    (de)quantisation, side effects or random results; reads if what they read is written in between;
    results that something writes into, unless both are the same memory already.
    """

    name: ClassVar[str] = "cse"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Merge equal nodes. One walk: inputs are merged before the nodes that use them are looked at."""
        rewriter = ctx.rewriter(graph)
        merges = Merges(rewriter)
        scopes = _Scopes(graph.block)
        for node in scopes:
            merges.let_use(node)
            if node.blocks or not node.outputs or node.kind in QUANTISING or rewriter.db.writes_anything(node):
                continue
            key = _key(node)
            earlier = scopes.find(key)
            if earlier is not None and _may_merge(rewriter, merges, earlier, node) and ctx.allow(node):
                merges.add(earlier, node)
            else:
                scopes.enter(key, node)  # after a write in between, later nodes can only equal this one
        for block in graph.blocks():
            if block is not graph.block:
                merges.let_use(block.return_node)
        changed = merges.apply()
        if changed:
            ctx.count("merged", changed)
        return changed > 0


class _Scopes:
    """A walk over all nodes in pre-order, with a table of what dominates the present one."""

    def __init__(self, block: Block) -> None:
        self._table: dict[Any, Node] = {}
        # For each open block: its iterator, and what to restore in the table when it closes.
        self._open: list[tuple[Iterator[Node], list[tuple[Any, Node | None]]]] = [(iter(block.nodes), [])]

    def __iter__(self) -> Iterator[Node]:
        while self._open:
            nodes, undo = self._open[-1]
            node = next(nodes, None)
            if node is None:
                self._close(undo)
                continue
            yield node
            self._open.extend((iter(block.nodes), []) for block in reversed(node.blocks))

    def find(self, key: Any) -> Node | None:
        return self._table.get(key)

    def enter(self, key: Any, node: Node) -> None:
        self._open[-1][1].append((key, self._table.get(key)))
        self._table[key] = node

    def _close(self, undo: list[tuple[Any, Node | None]]) -> None:
        for key, before in reversed(undo):
            if before is None:
                del self._table[key]
            else:
                self._table[key] = before
        self._open.pop()


def _key(node: Node) -> tuple[Any, ...]:
    inputs = sorted(node.inputs, key=id) if record(node.kind).commutative else node.inputs
    # Casts of a union differ in nothing but the type; of tensors, shapes and element types are what inference found.
    types = tuple([TensorType if v.type.__class__ is TensorType else v.type for v in node.outputs])
    return node.kind, node.version, attributes_key(node), tuple(inputs), types


def _may_merge(rewriter: Rewriter, merges: Merges, earlier: Node, node: Node) -> bool:
    return not rewriter.db.writes_between(node.inputs, earlier, node) and merges.may_share(earlier, node)
