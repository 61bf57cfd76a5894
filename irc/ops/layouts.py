"""How nodes treat memory layouts: which ones look at strides, and how their results lie in memory.

A layout is the order and the strides in which the elements of a tensor lie. The field `layout` of records tells what
operators do; a pass that gives a tensor another layout changes what those do that see layouts, and the layouts of
what takes its own from that tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir import CALL, DOMAINS, Graph, Node, TensorType, Value, constant_value, is_none, with_subgraphs
from irc.ops import record, schemas
from irc.ops.pointwise import is_elementwise, is_torch_pointwise

_SEEING = {"seen", "view-or-copy"}

_PRESERVE = 1
"""The memory format of results that lie as the operand does, as torch counts formats; 0 is contiguous."""


def sees_layout(kind: str) -> bool:
    """Whether the layout of the first operand decides what ``kind`` gives, or whether that is a view."""
    return not _SEEING.isdisjoint(record(kind).layout)


def sees_layouts(graph: Graph) -> bool:
    """Whether something in ``graph``, or around a function, may observe how tensors lie in memory.

    It takes a look at each node; `irc.passes.layouts` tells of which tensors.
    """
    kinds = {node.kind for node in with_subgraphs(graph)}
    return graph.is_function or CALL in kinds or any(map(sees_layout, kinds))


def sees_storage(graph: Graph) -> bool:
    """Whether something in ``graph``, or around a function, may observe where tensors' memory begins.

    A view with the strides of a new tensor is not like a new one there: it may begin in the middle.
    """
    kinds = {node.kind for node in with_subgraphs(graph)}
    return graph.is_function or CALL in kinds or any("storage" in record(kind).layout for kind in kinds)


_MAKERS = tuple(f"{namespace}::" for namespace in ("aten", "irc", *DOMAINS))
"""Namespaces of operators whose kernels return fresh results in which no two elements share memory."""


def makes_dense(kind: str) -> bool:
    """Whether fresh results of operators of ``kind`` have no gaps, and each element a place of its own."""
    return kind.startswith(_MAKERS) and "gaps" not in record(kind).layout


def keeps_layout(node: Node) -> bool:
    """Whether ``node``'s result lies as its first operand, if that has no gaps, whatever the others do."""
    return lies_as_first(node) and not any(isinstance(v.type, TensorType) for v in node.inputs[1:])


def lies_as_first(node: Node) -> bool:
    """Whether ``node``'s result lies as its first operand, if that has no gaps and the result's shape."""
    layout = record(node.kind).layout
    return "varies" not in layout if _is_pointwise(node) else "like-first" in layout and _format(node) is None


def contiguous_if(node: Node) -> Sequence[Value] | None:
    """The operands whose contiguity makes ``node``'s only result contiguous; None if nothing surely does."""
    layout = record(node.kind).layout
    if "contiguous" in layout:
        return () if _format(node) in (None, 0) else None
    if "like-first" in layout:
        wanted = _format(node)
        return node.inputs[:1] if wanted is None else () if wanted == 0 else None
    if "in-order" in layout:
        return node.inputs[:1]
    if "part" in layout:
        step = constant_value(node.inputs[4]) if len(node.inputs) == 5 else 1
        dim = constant_value(node.inputs[1]) if len(node.inputs) > 1 else None
        is_part = isinstance(node.output.type, TensorType) and dim == 0 and step == 1
        return node.inputs[:1] if is_part else None
    if _is_pointwise(node):
        return [v for v in node.inputs if isinstance(v.type, TensorType)]
    return None


def _is_pointwise(node: Node) -> bool:
    return is_torch_pointwise(node.kind) and is_elementwise(node)


def _format(node: Node) -> object:
    """The memory format given to ``node``, as torch's number; None if none, "?" if not constant."""
    names = [argument.name for row in schemas(node.kind)[:1] for argument in row.arguments]
    at = names.index("memory_format") if "memory_format" in names else len(node.inputs)
    if at >= len(node.inputs) or is_none(node.inputs[at]):
        return None
    found = constant_value(node.inputs[at])
    if type(found) is not int:
        return "?"
    return None if found == _PRESERVE else found
