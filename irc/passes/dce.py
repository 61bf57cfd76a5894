"""Dead code elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.ir import Graph, Node
from irc.ir.kinds import CONSTANT
from irc.ir.objects import tensors_of
from irc.ir.region_flow import Slot, bodies, cut_slots, with_subgraphs
from irc.ops import record
from irc.passes.liveness import Liveness
from irc.passes.quantised import annotation_names
from irc.passes.registry import register

if TYPE_CHECKING:
    from irc.passes.base import PassContext
    from irc.passes.rewriter import Rewriter


@register
@dataclass(frozen=True)
class Dce:
    """Remove what has no effect on the graph's outputs, on memory that others see, or on the world.

    Also removed: what an If, Loop, Scan or fusion group computes or carries
    without use, unused optional outputs, and weights that no constant
    refers to any more. The graph's own inputs and outputs stay.
    """

    name: ClassVar[str] = "dce"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Mark what is live, backwards from outputs and effects; remove the rest."""
        db = ctx.alias_db(graph)
        changed = _remove_nodes_and_slots(graph, Liveness(graph, db), ctx)
        while not db.is_tight:
            # What stored or escaped is gone: more may turn out to be dead. Ends, since each round erases a node.
            db.tighten()
            changed |= _remove_nodes_and_slots(graph, Liveness(graph, db), ctx)
        changed |= _trim_outputs(graph, ctx)
        _drop_weights(graph)
        return changed


def _remove_nodes_and_slots(graph: Graph, live: Liveness, ctx: PassContext) -> bool:
    rewriter = ctx.rewriter(graph)
    cut: list[tuple[Node, list[Slot]]] = []
    for node in live.order:
        if node in live.nodes and (dead := live.dead_slots(node)):
            if not ctx.allow(node):
                return bool(cut)
            ctx.alias_db(graph).cut_inputs(node)
            cut_slots(node, dead)
            cut.append((node, dead))
    erased = 0
    named = _annotating(graph, live)
    for node in reversed(live.order):
        around = live.around(node)
        if node in live.nodes or node in named or (around is not None and around not in live.nodes):
            continue
        if not ctx.allow(node):
            break
        rewriter.erase(node)
        erased += 1
    else:
        for node, dead in cut:
            _remove_slots(rewriter, node, dead)
    if erased:
        ctx.count("erased", erased)
    if cut:
        ctx.count("slots", sum(len(dead) for _, dead in cut))
    return bool(cut or erased)


def _annotating(graph: Graph, live: Liveness) -> set[Node]:
    """The constants that quantization annotations of live values name, though no node may use them."""
    names = annotation_names(graph, live.nodes.__contains__)
    found = [graph.value(name).made_by(CONSTANT) for name in names if graph.has_value(name)]
    return {node for node in found if node is not None}


def _remove_slots(rewriter: Rewriter, node: Node, dead: list[Slot]) -> None:
    """Remove the parameters and outputs of ``dead`` slots, which have no uses left."""
    for body in bodies(node):
        rewriter.erase_params(body, [s.param for s in dead if s.param is not None])
    rewriter.erase_outputs(node, [s.output for s in dead if s.output is not None])


def _trim_outputs(graph: Graph, ctx: PassContext) -> bool:
    rewriter = ctx.rewriter(graph)
    trimmed = 0
    for node in with_subgraphs(graph):
        kept = len(node.outputs)
        least = record(node.kind).needed_outputs
        while least is not None and kept > least and not node.outputs[kept - 1].has_uses and ctx.allow(node):
            kept -= 1
        unused = range(kept, len(node.outputs))
        if unused:
            rewriter.erase_outputs(node, unused)
            trimmed += len(unused)
    if trimmed:
        ctx.count("outputs", trimmed)
    return bool(trimmed)


def _drop_weights(graph: Graph) -> None:
    """Drop the weights that no graph of the module refers to. (The text of a graph does not show them.)"""
    if graph.is_function:
        return  # once a module is enough
    module = graph.module
    graphs = [graph] if module is None or module.weights is not graph.weights else module.graphs.values()
    used = {tensor.name for node in with_subgraphs(*graphs) for tensor in tensors_of(node)}
    for name in [name for name in graph.weights if name not in used]:
        del graph.weights[name]
