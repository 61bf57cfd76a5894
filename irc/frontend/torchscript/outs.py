"""Overloads of operators that write their result into a tensor given as ``out=``.

Each becomes the operator without it, and a copy: a thousand more rows would say the same. PyTorch would change
the size of a tensor that does not fit, which is refused when it runs.
"""

from __future__ import annotations

from irc.ir import Graph, Node
from irc.ir.ops.resolution import accepts
from irc.ir.types import TENSOR, TensorType


def copy_into_outs(graph: Graph) -> None:
    """Write out where results go that ``out=`` is given for."""
    for node in list(graph.walk()):
        if _has_out(node):
            _copy_into_out(node)


def _has_out(node: Node) -> bool:
    """Whether an overload takes all arguments but the last one, which is a tensor, and none takes all."""
    if len(node.inputs) < 2 or len(node.outputs) != 1 or not node.kind.startswith("aten::"):
        return False
    kinds = [v.type for v in node.inputs]
    if not isinstance(kinds[-1], TensorType) or accepts(node.kind, kinds):
        return False
    return accepts(node.kind, kinds[:-1])


def _copy_into_out(node: Node) -> None:
    graph, out = node.graph, node.inputs[-1]
    node.erase_inputs([len(node.inputs) - 1])
    as_out = graph.create("aten::view_as", [node.output, out], (TENSOR,)).insert_after(node)
    written = graph.create("aten::copy_", [out, as_out.output], (TENSOR,)).insert_after(as_out)
    for user in node.output.users:
        if user is not as_out:
            user.replace_uses(node.output, written.output)
