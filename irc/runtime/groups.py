"""``prim::FusionGroup``: a subgraph that runs as one unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.graph import Graph
from irc.runtime.execution import Frame, Slots, Step, execute, label, put

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.lowering import FillIn, Lowering


def lower_group(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
    """Lower the attribute ``Subgraph`` into the frame of the graph around the group."""
    subgraph = node.attributes.get("Subgraph")
    if not isinstance(subgraph, Graph):
        raise Error("IRC215", "a fusion group needs its graph as the attribute Subgraph", label(node))
    if len(subgraph.inputs) != len(ins) or len(subgraph.outputs) != len(outs):
        raise Error("IRC213", "the numbers of inputs and outputs of the group and its subgraph differ", label(node))
    code = lowering.region(subgraph.block, reuse=True)
    code.units = 0  # the group is one unit, which the code around it counts

    def fill_in(dead: Slots) -> Step:
        def step(frame: Frame) -> None:
            put(frame, code.params, [frame[s] for s in ins])
            execute(code, frame)
            put(frame, outs, code.take_returns(frame), dead)

        return step

    return fill_in
