"""Fusion groups: kernels of a backend, or plain operators in the frame of the graph around the group.

A group says that its members *may* be computed as one. Whether that pays is for a backend to say
(`irc.runtime.backends`). Without one, the members are steps of the block around the group, as if nothing had been
fused: their values get slots of that frame, and die there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.kinds import CONSTANT
from irc.ir.region_flow import inner_graph
from irc.ir.tensor import Tensor
from irc.runtime.backends import Unsupported, suits_nothing
from irc.runtime.execution import Frame, Instruction, Run, Slots, Step, execute, label, put
from irc.runtime.kernels.support import is_constant, note_origin
from irc.runtime.steps import drop_step, may_overwrite, move_step
from irc.runtime.values import arrays_once, is_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir import Graph, Node
    from irc.runtime.backends import CompiledGroup
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.lowering import Lowering
    from irc.runtime.prepack import Kept

    Pairs = Sequence[tuple[int, int]]
    """Of a result and an operand, by position."""


def subgraph_of(node: Node) -> Graph:
    """The graph of a fusion group; Error IRC215 if there is none."""
    graph = inner_graph(node)
    if graph is None:
        raise Error("IRC215", "a fusion group needs its graph as the attribute Subgraph", label(node))
    return graph


class Members:
    """The members of a fusion group, lowered to code on slots of the block around the group.

    Args:
        lowering: of that block.
        group: the node.
        ins: the slots that it reads.
        outs: the slots that it writes.

    Attributes:
        code: the steps.
    """

    def __init__(self, lowering: Lowering, group: Node, ins: Slots, outs: Slots) -> None:
        graph = subgraph_of(group)
        # Members make results where they belong, but for inputs, constants, and the second of two equal ones.
        results = reversed([*zip(graph.outputs, outs)])
        given = {value: slot for value, slot in results if value.node is not None and value.node.kind != CONSTANT}
        self.code = lowering.members(graph.nodes, graph.outputs, {**dict(zip(graph.inputs, ins)), **given})
        self.code.units, self.code.breaks = 0, {}  # the group is part of a unit, which the code around it counts
        self._moves = [(out, result) for out, result in zip(outs, self.code.returns) if out != result]
        self._end = graph.block.return_node

    def instructions(self, dead: Slots) -> list[Instruction]:
        """The members, in order, and what is to be done after them; all together empty ``dead``, too."""
        moves = [Instruction(move_step(result, out), self._end, (result,), (out,)) for out, result in self._moves]
        emptied = self.code.captured.difference(self.code.returns)
        left = tuple([s for s in dead if s not in emptied])
        drop = [Instruction(drop_step(left), self._end, (), (), left)] if left else []
        return [*self.code.instructions, *moves, *drop]

    def step(self, dead: Slots) -> Step:
        """A step that runs the members, and empties ``dead``."""
        return partial(execute, self.code.with_instructions(self.instructions(dead)))


def lower_kept(lowering: Lowering, node: Node, ins: Slots, outs: Slots, kept: Kept) -> Step:
    """Lower a group whose results, which are made of constants alone, are ``kept`` from run to run."""
    members = Members(lowering, node, ins, outs).step(())
    dead = lowering.emptied(ins)
    keeps = set(outs).isdisjoint(dead)
    tensors = [each.attributes.get("value") for each in subgraph_of(node).nodes if each.kind == CONSTANT]

    def step(frame: Frame) -> None:
        if kept.made is not None:
            put(frame, outs, kept.made, dead)
            return
        operands = [frame[s] for s in ins]
        members(frame)
        made = [frame[s] for s in outs] if keeps else []
        put(frame, (), (), dead)
        arrays = list(arrays_once(made))
        observer = frame[0].observer
        if keeps and kept.keep(made, arrays):
            for array in arrays:
                note_origin(
                    array, [*filter(is_constant, operands), *[x.numpy() for x in tensors if isinstance(x, Tensor)]]
                )
                if observer is not None:
                    observer.retain(array)

    return step


def _place_over(results: list[Any], operands: Sequence[Any], pairs: Pairs, arena: Any, must_own_storage: bool) -> int:
    """Put operands that may be written over where results have no place yet; how many."""
    count = 0
    for result, i in pairs:
        x = operands[i]
        if results[result] is None and is_array(x) and x.flags.carray and may_overwrite(x, arena, must_own_storage):
            for y in results:  # a loop: small groups take no longer than the search for a place does
                if x is y:
                    break  # it is the place of another result, or was donated as one
            else:
                results[result] = x
                count += 1
    return count


def lower_compiled(lowering: Lowering, node: Node, ins: Slots, outs: Slots, compiled: CompiledGroup) -> Step:
    """Lower a group that a backend may compile: a kernel if it has one for the operands, else its members."""
    inside = lowering.plan.groups[node] = Members(lowering, node, ins, outs)
    dead = lowering.emptied(ins)
    members = inside.step(dead)
    for value, slot in zip(node.outputs, outs):
        lowering.may_be_placed(value, slot)
    out = outs[0] if len(outs) == 1 else None
    free = frozenset([i for i in lowering.free(ins, len(ins)) if ins[i] in dead])
    must_own_storage = lowering.sees_storage

    latest: tuple[Kernel, Pairs] = suits_nothing, ()

    def step(frame: Frame) -> None:
        nonlocal latest
        run: Run = frame[0]
        operands, given = [frame[s] for s in ins], [frame[s] for s in outs]
        kernel, pairs = latest
        placed = _place_over(given, operands, pairs, run.arena, must_own_storage) if pairs else 0
        try:
            made = kernel(*operands, out=given if out is None else given[0])
            if made is NotImplemented and (found := compiled.kernel(operands)) is not None:
                kernel, pairs = found.kernel, [pair for pair in found.over if pair[1] in free]
                if compiled.checks:
                    latest = kernel, pairs
                given = [frame[s] for s in outs]
                placed = _place_over(given, operands, pairs, run.arena, must_own_storage)
                made = kernel(*operands, out=given if out is None else given[0])
        except Unsupported as error:
            compiled.decline(str(error))
            made = NotImplemented
        if made is NotImplemented:
            del operands, given  # what is counted by references is for the members to write over
            places = [(s, x) for s in outs if is_array(x := frame[s]) and x.base is run.arena]
            members(frame)
            for s, place in places:
                if frame[s] is not None:  # it may be read where it lies: as a part of a Concat's result
                    np.copyto(place, frame[s])
                    frame[s] = place
            return
        run.in_place += placed
        run.kernels += 1
        run.compiled += 1
        put(frame, outs, made if out is None else (made,), dead)

    return step
