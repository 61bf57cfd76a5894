"""Rules of nodes that run other code: branches, loops, subgraphs, calls, and code that irc cannot see.

A loop's parameter may denote what the loop is given and, from the second iteration on, what the body returned; its
results may denote the same, as a loop may make no iteration at all. The solver finds the fixed point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Element
from irc.alias.memory_types import has_memory
from irc.alias.rules.entry import Entry, Steps
from irc.ir.graph import Graph
from irc.ir.kinds import CALL, CONSTANT, IF, ONNX_LOOP, PRIM_LOOP, SCAN, SUBGRAPHS
from irc.ir.node import Node
from irc.ir.region_flow import callee, carried, inner_graph
from irc.ir.value import Value
from irc.ops.record import Change

if TYPE_CHECKING:
    from irc.alias.recorder import Recorder


def _if(rec: Recorder, node: Node) -> Steps:
    """A result is what either block returns for it."""
    yield from node.blocks
    for i, output in enumerate(node.outputs):
        if has_memory(output.type):
            rec.bind(output, rec.join(rec.element(block.returns[i]) for block in node.blocks))


def _loop(rec: Recorder, node: Node) -> Steps:
    """A parameter is what the loop is given, or what the body returns for it; a result is the same.

    A slice of a Scan may share memory with what it is a slice of. What the loop makes itself is fresh: the number of
    the iteration, the condition, and what it stacks.
    """
    (block,) = node.blocks
    at = carried(node)
    inputs, params = node.inputs[at.input :], block.params[at.param :]
    for param in block.params[: at.param]:
        rec.fresh(param)
    elements = [_carry(rec, param, rec.element(value)) for param, value in zip(params[: at.many], inputs)]
    for param, value in zip(params[at.many :], inputs[at.many :]):
        rec.bind(param, rec.element(value))
    yield block
    returns = block.returns[at.returned :]
    for element, returned in zip(elements, returns):
        if element != NOTHING and not rec.loops_apart:
            rec.point(element, rec.element(returned))
    if node.kind == PRIM_LOOP:  # stacks nothing: a result that nothing is returned for stays undefined, which is told
        elements = elements[: len(returns)]
    else:
        for output in node.outputs[len(elements) :]:
            rec.fresh(output)
    for output, element in zip(node.outputs, elements):
        if rec.loops_apart:
            rec.fresh(output)
        else:
            rec.bind(output, element)


def _carry(rec: Recorder, param: Value, start: Element) -> Element:
    """What a loop carries in ``param``: at first ``start``; what later iterations give is added when the body is known.

    The element belongs neither to the parameter nor to the result: either may be replaced without the other.
    """
    if not has_memory(param.type):
        return NOTHING
    if rec.loops_apart:
        return rec.fresh(param)
    element = rec.facts.new()
    rec.point(element, start)
    rec.bind(param, element)
    return element


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
    if _is_functional(rec, graph):
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
    return None if name is not None and rec.call(node, name) else opaque(rec, node)


def _is_functional(rec: Recorder, graph: Graph) -> bool:
    """Whether nothing in ``graph`` shares, writes or stores, and each output is fresh memory of its own."""
    outputs = graph.outputs
    return (
        all(map(rec.is_functional, graph.nodes))
        and all(v.node is not None and v.node.kind != CONSTANT for v in outputs)
        and len(set(outputs)) == len(outputs)
    )


RULES: dict[str, Entry] = {
    IF: Entry(_if),
    PRIM_LOOP: Entry(_loop),
    ONNX_LOOP: Entry(_loop),
    SCAN: Entry(_loop),
    **dict.fromkeys(SUBGRAPHS, Entry(subgraph, runs_graph=True)),
    CALL: Entry(_call_function, runs_graph=True, choice=0),
}
