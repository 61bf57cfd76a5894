"""Constant pooling: equal constants become one, at the top of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from irc.ir import Graph, Node, Tensor
from irc.ir.kinds import CONSTANT
from irc.ir.types import DType
from irc.passes.merging import Merges, attributes_key
from irc.passes.registry import register

if TYPE_CHECKING:
    from irc.passes.base import PassContext


@register
@dataclass(frozen=True)
class ConstantPool:
    """Merge equal constants, nested ones too, and move them to the top of the graph, keeping their order.

    Weights are equal if their contents are, whatever their names. A constant
    that something writes into (a list that is appended to) is left alone.
    """

    name: ClassVar[str] = "constant-pool"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Merge and hoist all constants."""
        rewriter = ctx.rewriter(graph)
        top = _Top(graph)
        pool = _Pool()
        merges = Merges(rewriter)
        changed = False
        for node in graph.walk():
            if node.kind != CONSTANT:
                continue
            earlier = None if rewriter.db.has_writers(node.output) else pool.equal(node)
            if earlier is not None and merges.may_share(earlier, node) and ctx.allow(node):
                merges.add(earlier, node)
            else:
                changed |= top.hoist(node, ctx)
        merged = merges.apply()
        if merged:
            ctx.count("merged", merged)
        return changed or merged > 0


class _Pool:
    """The constants seen so far, by contents."""

    def __init__(self) -> None:
        self._first: dict[Any, Node] = {}
        self._by_contents: dict[Any, Node] = {}

    def equal(self, node: Node) -> Node | None:
        """The first constant equal to ``node``; None if that is ``node``, which is then remembered."""
        tensor = _weight(node)
        if tensor is None:
            return self._find(self._first, (node.output.type, attributes_key(node)), node)
        key = tensor.type, tensor.sample()
        first = self._find(self._first, key, node)
        if first is None:
            return None
        # Only of those that look alike are whole contents read.
        self._find(self._by_contents, (key, _digest(first)), first)
        return self._find(self._by_contents, (key, _digest(node)), node)

    def _find(self, table: dict[Any, Node], key: Any, node: Node) -> Node | None:
        found = table.setdefault(key, node)
        return None if found is node else found


class _Top:
    """The constants at the top of the graph, and where the next one goes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.last: Node | None = None

    def hoist(self, node: Node, ctx: PassContext) -> bool:
        """Move ``node`` behind the constants hoisted before; return whether it was elsewhere."""
        first = next(iter(self.graph.nodes)) if self.last is None else self.last.next
        moved = node is not first
        if moved:
            if not ctx.allow(node):
                return False
            if self.last is None:
                assert first is not None
                node.move_before(first)
            else:
                node.move_after(self.last)
            ctx.count("hoisted")
        self.last = node
        return moved


def _weight(node: Node) -> Tensor | None:
    """The weight that ``node`` holds, if its contents are known and are not all equal."""
    content = node.attributes.get("value")
    known = isinstance(content, Tensor) and content.name and not content.is_splat and not content.is_absent
    return content if known else None


def _digest(node: Node) -> Any:
    """A cryptographic hash of a weight's contents: different weights with the same hash cannot be constructed."""
    from hashlib import blake2b  # slow to import, seldom needed

    tensor: Tensor = node.attributes["value"]
    if tensor.dtype is DType.STRING:
        return tuple(tensor.peek().reshape(-1).tolist())
    return blake2b(np.ascontiguousarray(tensor.peek()).reshape(-1).view(np.uint8).data, digest_size=32).digest()
