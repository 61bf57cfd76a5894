"""In-place operators whose operand nothing needs any more: what the pass ``in-place`` makes, the other way round.

Such an operator need not be certain what it writes. Whoever may see the
operand's memory does not look at it again, so a result in memory of its own
is as good; the pass ``in-place`` itself says whether that is so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.ops.twins import twin_of
from irc.passes.in_place import may_overwrite
from irc.passes.remove_mutation.forms import functional_kind

if TYPE_CHECKING:
    from irc.ir import Graph, Node
    from irc.passes.base import PassContext


def undo(node: Node, graph: Graph, ctx: PassContext) -> bool:
    """Replace ``node`` by its functional form if ``in-place`` could make it from that; return whether it could."""
    kind = functional_kind(node)
    if kind is None or len(node.outputs) != 1 or not ctx.allow(node):
        return False
    plain = _put(kind, node, ctx)
    if twin_of(plain) == node.kind and may_overwrite(plain, 0, graph, ctx):
        return True
    _put(node.kind, plain, ctx)
    return False


def _put(kind: str, node: Node, ctx: PassContext) -> Node:
    """A node of ``kind`` in the place of ``node``, all else being equal."""
    other = node.graph.create(
        kind, node.inputs, [node.output.type], attributes=dict(node.attributes), version=node.version, name=node.name
    )
    other.scope = node.scope
    rewriter, name = ctx.rewriter(node.graph), node.output.name
    with rewriter.db.rewrite():
        rewriter.insert(other, before=node)
        rewriter.replace(node.output, other.output)
        rewriter.erase(node)
    other.output.name = name
    return other
