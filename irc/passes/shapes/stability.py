"""Whether types hold: a tensor of a stated type may be given another shape later, by ``aten::t_``, say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.ir.kinds import CALL
from irc.ir.region_flow import with_subgraphs
from irc.ir.types import BOOL, FLOAT, INT, NONE, STR, ListType, TensorType, Type
from irc.ops import record, resolve, schemas
from irc.ops.opaque import is_opaque
from irc.ops.record import Change

if TYPE_CHECKING:
    from irc.ir import Graph, Node


def types_hold(graph: Graph, memory: dict[Any, Any]) -> bool:
    """Whether tensors keep their shapes and element types, in functions that ``graph`` may call too.

    If not, the type of a value is what it was when the value was made, and no rule may rely on it later.

    Args:
        graph: the graph.
        memory: where passes store results for as long as they run.
    """
    changing = _changing(graph)
    if changing != {CALL} or graph.module is None:
        return not changing
    return module_types_hold(graph, memory)


def module_types_hold(graph: Graph, memory: dict[Any, Any]) -> bool:
    """As `types_hold`, for all functions of the module of ``graph``, which are all that may call it."""
    module = graph.module
    if module is None:
        return _changing(graph) <= {CALL}
    key = (types_hold, module)
    if key not in memory:
        memory[key] = all(_changing(function) <= {CALL} for function in module.graphs.values())
    return memory[key]


def _changing(graph: Graph) -> set[str]:
    """The kinds of nodes of ``graph`` that may change shapes and element types."""
    return {node.kind for node in with_subgraphs(graph) if not keeps_metadata(node)}


def keeps_metadata(node: Node) -> bool:
    """Whether ``node`` surely leaves shapes and element types of existing tensors as they are.

    Operators that other packages have registered may write elements, but change nothing else of a tensor.
    """
    kind = node.kind
    known = record(kind)
    if known.changes is not Change.ELEMENTS or kind in ("prim::CallFunction", "prim::CallMethod"):
        return False
    if is_opaque(kind) or (not kind.startswith("aten::") and (known.rows or kind.startswith(_KEEPING))):
        return True
    if not known.rows:
        return not any(_may_hold_tensors(v.type) for v in node.inputs)
    fitting = resolve(node)
    arguments = [a for row in (schemas(kind) if fitting is None else (fitting,)) for a in row.arguments]
    return not any(_lists_tensors(a.type) and any(i.write for i in a.alias.walk()) for a in arguments if a.alias)


_KEEPING = ("onnx::", "prim::", "irc::")


def _may_hold_tensors(type: Type) -> bool:
    return type not in (BOOL, INT, FLOAT, STR, NONE)


def _lists_tensors(type: Type) -> bool:
    """Whether ``type`` is that of a list of tensors: after a write, other tensors may be in their places."""
    return isinstance(type, ListType) and (isinstance(type.elem, TensorType) or _lists_tensors(type.elem))
