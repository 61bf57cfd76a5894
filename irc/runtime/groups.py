"""Fusion groups: kernels of a backend, or plain operators in the frame of the graph around the group.

A group says that its members *may* be computed as one. Whether that pays is for a backend to say
(`irc.runtime.backends`). Without one, the members are steps of the block around the group, as if nothing had been
fused: their values get slots of that frame, and die there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.functions import inner_graph
from irc.ir.kinds import CONSTANT
from irc.runtime.execution import Code, Frame, Slots, Step, execute, label, put
from irc.runtime.values import arrays_once

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.runtime.lowering import FillIn, Lowering
    from irc.runtime.prepared import Kept


def subgraph_of(node: Node) -> Graph:
    """The graph of a fusion group; Error IRC215 or IRC213 if there is none, or it does not fit."""
    graph = inner_graph(node)
    if graph is None:
        raise Error("IRC215", "a fusion group needs its graph as the attribute Subgraph", label(node))
    if len(graph.inputs) != len(node.inputs) or len(graph.outputs) != len(node.outputs):
        raise Error("IRC213", "the numbers of inputs and outputs of the group and its subgraph differ", label(node))
    return graph


def member_slots(graph: Graph, ins: Slots, outs: Slots) -> dict[Value, int]:
    """The slots of a group's inputs and of the results that its members make.

    A result that is an input or a constant of the group, or the second of two equal ones, is not made in the slot of
    the group's output: it has to be copied there.
    """
    results = reversed([*zip(graph.outputs, outs)])  # so that the first slot counts of what is returned twice
    made = {value: slot for value, slot in results if value.node is not None and value.node.kind != CONSTANT}
    return {**dict(zip(graph.inputs, ins)), **made}


def moves(code: Code, outs: Slots) -> list[tuple[int, int]]:
    """Pairs of slots: where a group's result belongs, and where its member has left it."""
    return [(out, result) for out, result in zip(outs, code.returns) if out != result]


def lower_apart(lowering: Lowering, node: Node, ins: Slots, outs: Slots, kept: Kept) -> FillIn:
    """Lower a group whose results, which are made of constants alone, are ``kept`` from run to run."""
    graph = subgraph_of(node)
    code = lowering.members(graph.nodes, graph.outputs, member_slots(graph, ins, outs))
    pairs = moves(code, outs)
    returned = frozenset(code.returns)

    def fill_in(dead: Slots) -> Step:
        left = tuple([s for s in dead if s in returned or s not in code.captured])  # by the steps inside
        keeps = set(outs).isdisjoint(dead)

        def step(frame: Frame) -> None:
            if kept.made is not None:
                put(frame, outs, kept.made, dead)
                return
            execute(code, frame)
            for out, result in pairs:
                frame[out] = frame[result]
            if keeps:
                _keep([frame[s] for s in outs], kept, frame)
            put(frame, (), (), left)

        return step

    return fill_in


def _keep(made: list[object], kept: Kept, frame: Frame) -> None:
    arrays = list(arrays_once(made))
    watch = frame[0].watch
    if kept.keep(made, arrays) and watch is not None:
        for array in arrays:
            watch.leave(array)
