"""Fusion groups: kernels of a backend, or plain operators in the frame of the graph around the group.

A group says that its members *may* be computed as one. Whether that pays is for a backend to say
(`irc.runtime.backends`). Without one, the members are steps of the block around the group, as if nothing had been
fused: their values get slots of that frame, and die there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from irc.errors import Error
from irc.ir.functions import inner_graph
from irc.ir.kinds import CONSTANT
from irc.runtime.execution import Code, Frame, Slots, Step, execute, label, put
from irc.runtime.values import arrays_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir import Graph, Node, Value
    from irc.runtime.backends import CompiledGroup
    from irc.runtime.kernels.registry import Kernel
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


class Members(NamedTuple):
    """The members of a fusion group as code of their own.

    Attributes:
        code: their steps.
        moves: pairs of slots: where a result of the group belongs, and where its member has left it.
    """

    code: Code
    moves: list[tuple[int, int]]

    @classmethod
    def of(cls, lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Members:
        """The members of ``node``, which reads the slots ``ins`` and writes ``outs``."""
        graph = subgraph_of(node)
        code = lowering.members(graph.nodes, graph.outputs, member_slots(graph, ins, outs))
        code.units, code.breaks = 0, {}  # the group is part of a unit, which the code around it counts
        return cls(code, [(out, result) for out, result in zip(outs, code.returns) if out != result])

    def left(self, dead: Slots) -> Slots:
        """Which of the slots that the group is to empty its members do not."""
        return tuple([s for s in dead if s in self.code.returns or s not in self.code.captured])

    def step(self, dead: Slots) -> Step:
        """A step that runs the members, and then empties ``dead``."""
        code, pairs, left = self.code, self.moves, self.left(dead)

        def step(frame: Frame) -> None:
            execute(code, frame)
            for out, result in pairs:
                frame[out] = frame[result]
            for s in left:
                frame[s] = None

        return step


def lower_kept(lowering: Lowering, node: Node, ins: Slots, outs: Slots, kept: Kept) -> FillIn:
    """Lower a group whose results, which are made of constants alone, are ``kept`` from run to run."""
    inside = Members.of(lowering, node, ins, outs)

    def fill_in(dead: Slots) -> Step:
        members = inside.step(())
        keeps = set(outs).isdisjoint(dead)

        def step(frame: Frame) -> None:
            if kept.made is not None:
                put(frame, outs, kept.made, dead)
                return
            members(frame)
            if keeps:
                _keep([frame[s] for s in outs], kept, frame)
            put(frame, (), (), dead)

        return step

    return fill_in


def lower_compiled(lowering: Lowering, node: Node, ins: Slots, outs: Slots, compiled: CompiledGroup) -> FillIn:
    """Lower a group that a backend may compile: a kernel if it has one for the operands, else its members."""
    inside = Members.of(lowering, node, ins, outs)
    lowering.groups[node] = inside
    if len(outs) == 1:
        lowering.may_be_placed(node.output, outs[0])

    def fill_in(dead: Slots) -> Step:
        members = inside.step(dead)

        def one(kernel: Kernel, operands: Sequence[Any], frame: Frame) -> None:
            frame[outs[0]] = kernel(*operands, out=frame[outs[0]])

        def several(kernel: Kernel, operands: Sequence[Any], frame: Frame) -> None:
            put(frame, outs, kernel(*operands))

        call = one if len(outs) == 1 else several

        def step(frame: Frame) -> None:
            operands = [frame[s] for s in ins]
            kernel = compiled.kernel(operands)
            if kernel is None:
                del operands  # what is counted by references is for the members to write over
                members(frame)
                return
            call(kernel, operands, frame)
            counters = frame[0].counters
            counters.kernels += 1
            counters.compiled += 1
            for s in dead:
                frame[s] = None

        return step

    return fill_in


def _keep(made: list[object], kept: Kept, frame: Frame) -> None:
    arrays = list(arrays_once(made))
    watch = frame[0].watch
    if kept.keep(made, arrays) and watch is not None:
        for array in arrays:
            watch.leave(array)
