"""From an optimised module to one of plain ONNX operators: groups dissolved, in-place operators made functional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx_export.interfaces import settle_declared
from irc.frontend.onnx_export.operators import is_known
from irc.frontend.onnx_export.opsets import choose
from irc.frontend.onnx_export.spelling import FIRST_OPSET, spell_out
from irc.frontend.onnx_export.targets import state_sizes
from irc.ir import Graph, Module, Node, Tensor
from irc.ir.functions import graphs_of, with_subgraphs
from irc.ir.kinds import CALL, CONSTANT, GROUP, IF
from irc.ir.transfer import exchange_outputs, transfer_node
from irc.ir.types import FUNCTION, NONE
from irc.ops.opaque import is_opaque
from irc.passes import PassManager
from irc.passes.shapes import Inference

if TYPE_CHECKING:
    from irc.ir import Value


def prepare(module: Module) -> dict[str, int]:
    """Change ``module`` into one that ONNX can express; returns domain -> opset version.

    Raises:
        Error: IRC350 if there is something that ONNX cannot express; the message lists all. IRC351 if no operator set
            has all operators as they are bound.
    """
    for graph in _graphs(module):
        _dissolve_groups(graph)
    if any(node.kind.endswith("_") and not is_opaque(node.kind) for node in _nodes(module)):
        PassManager("remove-mutation").run(module)
    _refuse(module)
    for graph in _graphs(module):
        settle_declared(graph, Inference(graph).run())
    opsets = choose(_nodes(module), module.metadata)
    for graph in _graphs(module):
        spell_out(graph, opsets[""])
        state_sizes(graph)
    return opsets


def _graphs(module: Module) -> Iterator[Graph]:
    """All graphs of a module, those that are attributes too."""
    pending = list(module.graphs.values())
    while pending:
        graph = pending.pop()
        yield graph
        pending.extend(inner for node in graph.walk() for inner in graphs_of(node))


def _nodes(module: Module) -> Iterator[Node]:
    return with_subgraphs(*module.graphs.values())


def _dissolve_groups(graph: Graph) -> None:
    """Put the nodes of fusion groups in place of the groups. Values that are used outside keep their names."""
    groups = [node for node in graph.walk() if node.kind == GROUP]
    for group in groups:  # grows by those that were inside of others
        inner: Graph = group.attributes["Subgraph"]
        for param, value in zip(inner.inputs, group.inputs, strict=True):
            param.replace_all_uses_with(value)
        results = list(zip(inner.outputs, group.outputs, strict=True))
        inner.set_outputs(())
        for node in list(inner.nodes):
            transfer_node(node, group)
            groups += [each for each in (node, *node.nested()) if each.kind == GROUP]
        for made, value in results:
            _stand_for(made, value)
        group.erase()


def _stand_for(made: Value, value: Value) -> None:
    """Use ``made`` in place of ``value``, under the name of ``value``."""
    if made.node is not None and made is not value:
        exchange_outputs(made, value)
        made.replace_all_uses_with(value)
    else:
        value.replace_all_uses_with(made)


def _refuse(module: Module) -> None:
    """Raise IRC350 if there are nodes that ONNX cannot express."""
    found: dict[str, tuple[int, Node, str]] = {}
    if module.objects:
        names = ", ".join(f"%{name}" for name in module.objects)
        raise Error("IRC350", f"ONNX has no objects with attributes, but {names} is one")
    for node in _nodes(module):
        reason = _reason(node)
        if reason:
            count, first, _ = found.get(f"{node.kind}: {reason}", (0, node, ""))
            found[f"{node.kind}: {reason}"] = (count + 1, first, reason)
    if found:
        lines = [f"{len(found)} kind{'s' * (len(found) > 1)} of nodes cannot be expressed in ONNX:"]
        for label, (count, first, _) in sorted(found.items()):
            values = ", ".join(f"%{v.name}" for v in first.outputs) or "without results"
            lines.append(f"  {label} ({count} node{'s' * (count > 1)}, first {values})")
        raise Error("IRC350", "\n".join(lines))


def has_form(kind: str) -> bool:
    """Whether ONNX can express nodes of ``kind``; constants, only if it has a form for their type."""
    return kind in (CONSTANT, CALL, IF) or kind in FIRST_OPSET or is_known(kind) or is_opaque(kind)


def _reason(node: Node) -> str:
    """Why ONNX cannot express ``node``; "" if it can."""
    if node.kind == CONSTANT:
        value, type = node.attributes.get("value"), node.output.type
        if isinstance(value, Tensor) or type in (NONE, FUNCTION):
            return ""
        return f"constants of type {type} are no tensors"
    if has_form(node.kind):
        return ""
    if node.kind.endswith("_"):
        return "it writes into memory, and could not be made functional"
    return "ONNX has no such operator"
