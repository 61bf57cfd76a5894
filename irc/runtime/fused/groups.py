"""``prim::FusionGroup``: a subgraph that runs as one unit, block by block where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.functions import inner_graph
from irc.ir.kinds import CONSTANT
from irc.runtime.execution import Code, Frame, Slots, Step, execute, label, put
from irc.runtime.fused.parts import parts_of, run_in_parts
from irc.runtime.values import arrays_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Reversible, Sequence

    from irc.ir import Graph, Node, Value
    from irc.runtime.lowering import FillIn, Lowering
    from irc.runtime.prepared import Kept


def lower_group(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
    """Lower the attribute ``Subgraph`` into the frame of the graph around the group."""
    graph = subgraph_of(node)
    return lower_part(lowering, node, graph.nodes, graph.outputs, slots_of(graph, ins, outs), outs)


def subgraph_of(node: Node) -> Graph:
    """The graph of a fusion group; Error IRC215 or IRC213 if there is none, or it does not fit."""
    graph = inner_graph(node)
    if graph is None:
        raise Error("IRC215", "a fusion group needs its graph as the attribute Subgraph", label(node))
    if len(graph.inputs) != len(node.inputs) or len(graph.outputs) != len(node.outputs):
        raise Error("IRC213", "the numbers of inputs and outputs of the group and its subgraph differ", label(node))
    return graph


def slots_of(graph: Graph, ins: Slots, outs: Slots) -> dict[Value, int]:
    """The slots of a group's inputs and of the results that it makes.

    A result that is an input or a constant, or the second of two equal ones, is in another slot than the group's.
    """
    results = reversed([*zip(graph.outputs, outs)])  # so that the first slot counts of what is returned twice
    made = {value: slot for value, slot in results if value.node is not None and value.node.kind != CONSTANT}
    return {**dict(zip(graph.inputs, ins)), **made}


def lower_part(
    lowering: Lowering,
    node: Node,
    nodes: Reversible[Node],
    returns: Sequence[Value],
    given: Mapping[Value, int],
    outs: Slots,
) -> FillIn:
    """Lower ``nodes`` of the group ``node``, which make ``returns`` for ``outs``."""
    code = lowering.inline(nodes, returns, given)
    code.units, code.breaks = 0, {}  # the group is part of a unit, which the code around it counts
    run = _run_whole(code)
    parts = parts_of(lowering, code)
    if any(part.blocks for part in parts):
        run = run_in_parts(node, code, parts)
        if code.in_place:  # none of them in blocks, which have no in-place forms
            run, code.in_place = _counting(run, code.in_place), 0
    moved = [(out, result) for out, result in zip(outs, code.returns) if out != result]
    kept = lowering.bound.prepared.group(node)
    returned = frozenset(code.returns)

    def fill_in(dead: Slots) -> Step:
        left = tuple([s for s in dead if s in returned or s not in code.captured])  # by the steps inside
        step = _moving(run, moved, left) if moved or left else run
        return step if kept is None or not set(outs).isdisjoint(dead) else _once(step, kept, outs, dead)

    return fill_in


def _moving(run: Step, moved: Sequence[tuple[int, int]], dead: Slots) -> Step:
    """Run ``run``, copy the second slot of each pair in ``moved`` to the first, and empty the slots in ``dead``."""

    def step(frame: Frame) -> None:
        run(frame)
        for out, result in moved:
            frame[out] = frame[result]
        for s in dead:
            frame[s] = None

    return step


def _once(step: Step, kept: Kept, outs: Slots, dead: Slots) -> Step:
    """``step``, run once: its results are kept and used in later runs."""

    def run(frame: Frame) -> None:
        if kept.made is not None:
            put(frame, outs, kept.made, dead)
            return
        step(frame)
        made = [frame[s] for s in outs]
        arrays = list(arrays_once(made))
        watch = frame[0].watch
        if kept.keep(made, arrays) and watch is not None:
            for array in arrays:
                watch.leave(array)

    return run


def _counting(run: Step, in_place: int) -> Step:
    def step(frame: Frame) -> None:
        run(frame)
        frame[0].counters.in_place += in_place

    return step


def _run_whole(code: Code) -> Step:
    return lambda frame: execute(code, frame)
