"""``prim::FusionGroup``: a subgraph that runs as one unit, its pointwise tail block by block where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.functions import inner_graph
from irc.ir.kinds import CONSTANT
from irc.ir.ops.torch_pointwise import is_elementwise
from irc.runtime.execution import Code, Frame, Run, Slots, Step, Watch, execute, fail, is_located, label, put
from irc.runtime.foreign import on_blocks
from irc.runtime.fused.blocks import Operation
from irc.runtime.fused.tiles import Tail
from irc.runtime.kernels.registry import takes_out
from irc.runtime.values import arrays_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Reversible, Sequence

    from irc.ir import Graph, Node, Value
    from irc.runtime.lowering import Bound, FillIn, Lowering
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
    start = tail_start(lowering.bound, code)
    if start < len(code.steps):
        tail = find_tail(lowering, code, start)
        run = _run_in_tiles(node, code, start, tail, tuple(set(lowering.dead(tail.slots)).difference(code.returns)))
        if code.in_place:  # none of them in the tail, which has no in-place forms
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


def _run_in_tiles(node: Node, code: Code, start: int, tail: Tail, dead: Slots) -> Step:
    """Run the steps of ``code``, those from ``start`` on as ``tail`` if possible, which then empties ``dead``."""
    head, rest = _part(code, 0, start), _part(code, start, len(code.steps))
    rest.kernels = len(rest.steps)
    head.kernels = code.kernels - rest.kernels
    results = tuple([code.nodes[start + r - len(tail.slots)][2][0] for r in tail.outputs])

    def watched(frame: Frame, watch: Watch) -> None:
        if not watch.in_blocks:
            execute(code, frame)
            return
        if head.steps:
            execute(head, frame)
        found = tail.run(frame)
        if found is None:
            execute(rest, frame)
        else:
            put(frame, results, found, dead)

    def step(frame: Frame) -> None:
        run: Run = frame[0]
        kernels, member = code.kernels, None
        try:  # as `execute` would, without calls of it: small groups are half as fast with them
            if run.watch is not None:
                watched(frame, run.watch)
                return
            for member in head.steps:
                member(frame)
            member = None
            found = tail.run(frame)
            if found is None:
                for member in rest.steps:
                    member(frame)
            else:
                put(frame, results, found, dead)
                kernels = head.kernels  # the others are counted
        except Exception as error:
            if is_located(error):
                raise
            if member is None:  # what the group has read before is gone
                fail(error, node, [frame[s] for s in tail.slots])
            code.fail(error, member, frame)
        run.counters.kernels += kernels

    return step


def _part(code: Code, start: int, end: int) -> Code:
    part = Code()
    part.steps, part.nodes = code.steps[start:end], code.nodes[start:end]
    return part


def tail_start(bound: Bound, code: Code) -> int:
    """The index of the first of the pointwise operators that the steps of ``code`` end with."""
    start = len(code.nodes)
    while start and may_be_tiled(bound, code.nodes[start - 1][0]):
        start -= 1
    return start


def may_be_tiled(bound: Bound, node: Node) -> bool:
    """Whether ``node``, at the end of a group, may run block by block with what follows it."""
    return is_elementwise(node) and takes_out(bound.kernel(node))


def find_tail(lowering: Lowering, code: Code, start: int) -> Tail:
    """The operators of ``code`` from ``start`` on, whose results become registers."""
    made = dict.fromkeys(outs[0] for _, _, outs in code.nodes[start:])
    slots = tuple(dict.fromkeys(s for _, ins, _ in code.nodes[start:] for s in ins if s not in made))
    register = {slot: number for number, slot in enumerate((*slots, *made))}
    operations = [
        Operation(node, on_blocks(lowering.bound.kernel(node)), tuple([register[s] for s in ins]), register[outs[0]])
        for node, ins, outs in code.nodes[start:]
    ]
    outputs = tuple(dict.fromkeys(register[s] for s in code.returns if s in made))
    kept = tuple([s for s in code.returns if s not in made])
    spare = lowering.free(slots + kept, len(slots))
    made_in = {r: code.nodes[start + r - len(slots)][2][0] for r in outputs}
    places = {r: slot for r, slot in made_in.items() if slot in lowering.place_slots}
    return Tail(slots, operations, outputs, spare, places)
