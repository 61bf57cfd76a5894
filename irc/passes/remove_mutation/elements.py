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
    changed = 0
    while used := _use(graph, ctx):  # once more: of what was taken out of a list of lists, more is known now
        changed += used
    if changed:
        ctx.count("elements", changed)
    return changed > 0


def _use(graph: Graph, ctx: PassContext) -> int:
    """Replace elements by what was put there, wherever that is certain now; return how many nodes took them."""
    taking = [node for node in graph.walk() if node.kind in _TAKING_ONE or node.kind in _TAKING_ALL]
    if not taking:
        return 0
    rewriter = ctx.rewriter(graph)
    db = rewriter.db
    instead: dict[Value, Value] = {}
    done: list[tuple[Node, Sequence[Value]]] = []
    for node in taking:
        source = instead.get(node.inputs[0], node.inputs[0])
        values = [instead.get(value, value) for value in _taken(node, source)]
        if not values or not db.has_writers(node.outputs) or db.has_writers(source, contained=False):
            continue
        if ctx.allow(node):
            instead.update(zip(node.outputs, values, strict=True))
            done.append((node, values))
    # All at once: after each, the analysis would follow anew all that depends on it.
    return rewriter.replace_nodes(done)


def _taken(node: Node, source: Value) -> Sequence[Value]:
    """The elements that ``node`` takes out of ``source``, which is written out; empty if it does something else."""
    made = _TAKING_ONE.get(node.kind) or _TAKING_ALL.get(node.kind)
    maker = source.made_by(made) if made is not None else None
    if maker is None:
        return ()
    values = maker.inputs
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
