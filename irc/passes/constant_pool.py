"""Constant pooling: equal constants become one, at the top of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from irc.ir import Graph, Node, Tensor
from irc.ir.types import DType
from irc.passes.constants import CONSTANT
from irc.passes.keys import attributes_key
from irc.passes.registry import register

if TYPE_CHECKING:
    from irc.passes.base import PassContext
    from irc.passes.rewriter import Rewriter

_SAMPLES = 64
"""Elements of a tensor looked at to tell unequal ones apart before whole ones are compared."""


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
        pool: dict[Any, list[Node]] = {}
        changed = False
        for node in graph.walk():
            if node.kind != CONSTANT:
                continue
            same = pool.setdefault(_key(node), [])
            if earlier := _equal(rewriter, same, node):
                if ctx.allow(node) and rewriter.replace_node(node, earlier.outputs):
                    ctx.count("merged")
                    changed = True
                    continue
            else:
                same.append(node)
            changed |= top.hoist(node, ctx)
        return changed


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


def _key(node: Node) -> tuple[Any, ...]:
    content = node.attributes.get("value")
    if isinstance(content, Tensor) and content.name and not content.is_splat and not content.is_absent:
        return (content.type, _sample(content))
    return (node.output.type, attributes_key(node))


def _sample(tensor: Tensor) -> Any:
    """A few elements' bits: tensors with different samples differ."""
    if tensor.dtype is DType.STRING:
        return tuple(tensor.numpy().flat[:_SAMPLES].tolist())
    flat = tensor.numpy().reshape(-1)
    return flat[:: max(1, flat.size // _SAMPLES)].tobytes()


def _equal(rewriter: Rewriter, candidates: list[Node], node: Node) -> Node | None:
    """The one of ``candidates``, whose keys are those of ``node``, that ``node`` may be merged with."""
    for earlier in candidates:
        if _same_contents(earlier, node) and rewriter.can_share(earlier.output, node.output):
            return earlier
    return None


def _same_contents(a: Node, b: Node) -> bool:
    x, y = a.attributes.get("value"), b.attributes.get("value")
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or not (x.name or y.name):
        return True  # the key says all
    if x.name == y.name:
        return True
    if x.is_splat or y.is_splat or x.dtype is DType.STRING:
        return x.same_contents(y)
    return all(np.array_equal(p, q) for p, q in zip(_chunks(x), _chunks(y), strict=True))


def _chunks(tensor: Tensor, size: int = 1 << 20) -> Iterator[Any]:
    """The bits of a tensor, a piece at a time, so that unequal tensors are told apart early."""
    bits = np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)
    return (bits[i : i + size] for i in range(0, bits.size, size))
