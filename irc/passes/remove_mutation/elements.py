"""Elements taken out of lists and tuples that are written out: ``[a, b][0]`` is ``a``, if nothing changes the list.

The alias analysis knows of a list what all its elements may be. A write into one of them is certain only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irc.ir.constants import constant_value
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.passes.base import PassContext

_TAKING_ONE = {"aten::__getitem__": "prim::ListConstruct", "prim::TupleIndex": "prim::TupleConstruct"}
_TAKING_ALL = {"prim::ListUnpack": "prim::ListConstruct", "prim::TupleUnpack": "prim::TupleConstruct"}


def use_elements(graph: Graph, ctx: PassContext) -> bool:
    """Let all use elements themselves that are written and were taken out of lists; return whether any changed."""
    taking = [node for node in graph.walk() if node.kind in _TAKING_ONE or node.kind in _TAKING_ALL]
    if not taking:
        return False
    rewriter = ctx.rewriter(graph)
    db, changed = rewriter.db, 0
    for node in taking:
        values = _taken(node)
        if not values or not db.has_writers(node.outputs) or db.has_writers(node.inputs[0], contained=False):
            continue
        if ctx.allow(node):
            rewriter.replace_node(node, values)
            changed += 1
    if changed:
        ctx.count("elements", changed)
    return changed > 0


def _taken(node: Node) -> Sequence[Value]:
    """The elements that ``node`` takes out of a list or tuple that is written out; empty if it does something else."""
    made = _TAKING_ONE.get(node.kind) or _TAKING_ALL.get(node.kind)
    source = node.inputs[0].made_by(made) if made is not None else None
    if source is None:
        return ()
    values = source.inputs
    if node.kind in _TAKING_ONE:
        index = constant_value(node.inputs[1])
        if type(index) is not int or not -len(values) <= index < len(values):
            return ()
        values = [values[index]]
    if len(values) != len(node.outputs) or not all(_are_alike(v, out) for v, out in zip(values, node.outputs)):
        return ()
    return values


def _are_alike(element: Value, taken: Value) -> bool:
    """Whether types say the same of both, but for what they know of a tensor."""
    return element.type == taken.type or (isinstance(element.type, TensorType) and isinstance(taken.type, TensorType))
