"""Whether types hold: a tensor of a stated type may be given another shape later, by ``aten::t_``, say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.ir.functions import with_subgraphs
from irc.ir.kinds import CALL
from irc.passes.shapes.torch_pointwise import keeps_metadata

if TYPE_CHECKING:
    from irc.ir import Graph


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
