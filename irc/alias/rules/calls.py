"""Nodes that run other code: subgraphs, and code that irc cannot see."""

from __future__ import annotations

from irc.alias import facts as f
from irc.alias.recorder import Recorder, Steps, is_functional
from irc.alias.rules.entry import Entry
from irc.alias.summaries import call
from irc.ir.functions import callee, inner_graph
from irc.ir.graph import Graph
from irc.ir.kinds import CALL, CONSTANT, SUBGRAPHS
from irc.ir.node import Node
from irc.ops.metadata import Change


def opaque(rec: Recorder, node: Node) -> Steps:
    """Code that irc cannot see.

    It may keep what it is given, write whatever any unknown code may hold,
    store anything unknown anywhere there, and return anything unknown.
    """
    rec.write(node, f.OUTSIDE, Change.MEMORY)
    rec.write(node, f.WORLD)
    yield _unseen(rec, node)


def passing_through(rec: Recorder, node: Node) -> Steps:
    """An operator of an ONNX model that irc does not know: it writes into none of its inputs.

    It may keep what it is given, draw random numbers, act on the world and return anything unknown, which its inputs
    are from then on: results may share memory with them, with each other and with those of other such nodes.
    """
    rec.write(node, f.RANDOM)
    yield _unseen(rec, node)


def _unseen(rec: Recorder, node: Node) -> Steps:
    """Code that irc cannot see is given the inputs, returns the outputs, and runs the blocks as often as it likes."""
    for value in node.inputs:
        rec.escape(rec.element(value))
    for output in node.outputs:
        rec.bind(output, rec.unknown(output.type))
    for block in node.blocks:
        for param in block.params:
            rec.bind(param, rec.unknown(param.type))
        yield block
        for value in block.returns:
            rec.escape(rec.element(value))


def subgraph(rec: Recorder, node: Node) -> Steps:
    """A node that runs the graph in its attribute ``Subgraph``, such as ``prim::FusionGroup``."""
    graph = inner_graph(node)
    if graph is None:
        yield opaque(rec, node)
        return
    if _is_functional(graph):
        for output in node.outputs:
            rec.fresh(output)
        return
    for param, value in zip(graph.inputs, node.inputs):
        rec.bind(param, rec.element(value))
    with rec.on_behalf_of(node):
        yield graph.block
    for output, inner in zip(node.outputs, graph.outputs):
        rec.bind(output, rec.element(inner))
    # The subgraph's values are of another graph: the database answers for its own.
    for block in graph.blocks():
        values = (*block.params, *(v for inner_node in block.nodes for v in inner_node.outputs))
        for value in values:
            rec.facts.disown(value)


def _call_function(rec: Recorder, node: Node) -> Steps | None:
    """A call of a function by name: what its summary says."""
    name = callee(node)
    return None if name is not None and call(rec, node, name) else opaque(rec, node)


def _is_functional(graph: Graph) -> bool:
    """Whether nothing in ``graph`` shares, writes or stores, and each output is fresh memory of its own."""
    outputs = graph.outputs
    return (
        all(map(is_functional, graph.nodes))
        and all(v.node is not None and v.node.kind != CONSTANT for v in outputs)
        and len(set(outputs)) == len(outputs)
    )


def _keeps(node: Node) -> bool:
    """Whether anything that runs inside leaves traces; True if the code is not available."""
    from irc.alias.rules import leaves_traces

    graph = inner_graph(node)
    return graph is None or any(map(leaves_traces, graph.walk()))


RULES: dict[str, Entry] = {
    **dict.fromkeys(SUBGRAPHS, Entry(subgraph, keeps=_keeps)),
    CALL: Entry(_call_function, keeps=_keeps),
}
