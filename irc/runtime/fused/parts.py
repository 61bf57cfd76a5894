"""The steps of a fusion group by what may run block by block: the pointwise operators at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from irc.ir.ops.torch_pointwise import is_elementwise
from irc.runtime.execution import Code, Frame, Run, Slots, Step, Watch, execute, fail, is_located, put
from irc.runtime.foreign import on_blocks
from irc.runtime.fused.blocks import Operation
from irc.runtime.fused.tiles import Tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir import Node
    from irc.runtime.lowering import Bound, Lowering


class _Part(NamedTuple):
    """Some steps of a group.

    Attributes:
        code: the steps.
        blocks: what may run them block by block; None: nothing.
        results: the slots of what that returns.
        dead: the slots that nothing needs after that.
    """

    code: Code
    blocks: Tail | None = None
    results: Slots = ()
    dead: Slots = ()


def spans_in_blocks(bound: Bound, nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """Where those of a group's ``nodes`` stand that may run block by block, with the ends of each span.

    The operators of a span take one turn: one reads its operands while another writes results.
    """
    start = len(nodes)
    while start and is_elementwise(nodes[start - 1]) and bound.takes_out(nodes[start - 1]):
        start -= 1
    return [(start, len(nodes))] if start < len(nodes) else []


def parts_of(lowering: Lowering, code: Code) -> list[_Part]:
    """The steps of ``code``, in order."""
    parts: list[_Part] = []
    spans = spans_in_blocks(lowering.bound, [node for node, _, _ in code.nodes])
    others = code.kernels - sum(end - start for start, end in spans)
    done = 0
    for start, end in [*spans, (len(code.nodes), len(code.nodes))]:
        if done < start:
            parts.append(_Part(_some(code, done, start, others)))
            others = 0  # all are counted with the first
        if start < end:
            parts.append(_in_blocks(lowering, code, start, end))
        done = end
    return parts


def _some(code: Code, start: int, end: int, kernels: int) -> Code:
    part = Code()
    part.steps, part.nodes, part.kernels = code.steps[start:end], code.nodes[start:end], kernels
    return part


def _in_blocks(lowering: Lowering, code: Code, start: int, end: int) -> _Part:
    """The steps of a span, whose results become registers."""
    nodes = code.nodes[start:end]
    made = dict.fromkeys(outs[0] for _, _, outs in nodes)
    slots = tuple(dict.fromkeys(s for _, ins, _ in nodes for s in ins if s not in made))
    register = {slot: number for number, slot in enumerate((*slots, *made))}
    operations = [
        Operation(node, on_blocks(lowering.bound.kernel(node)), tuple([register[s] for s in ins]), register[outs[0]])
        for node, ins, outs in nodes
    ]
    needed = {s for _, ins, _ in code.nodes[end:] for s in ins}.union(code.returns)
    results = tuple([s for s in made if s in needed])
    places = {register[s]: s for s in results if s in lowering.place_slots}
    kept = tuple([s for s in code.returns if s not in made])
    spare = lowering.free(slots + kept, len(slots))
    blocks = Tail(slots, operations, tuple([register[s] for s in results]), spare, places)
    dead = tuple(set(lowering.dead(slots)).difference(needed))
    return _Part(_some(code, start, end, end - start), blocks, results, dead)


def run_in_parts(node: Node, code: Code, parts: Sequence[_Part]) -> Step:
    """Run the steps of ``code``, which are those of the group ``node``, in blocks where that can be."""

    def watched(frame: Frame, watch: Watch) -> None:
        if not watch.in_blocks:
            execute(code, frame)
            return
        for part in parts:
            found = part.blocks and part.blocks.run(frame)
            if found is None:
                execute(part.code, frame)
            else:
                put(frame, part.results, found, part.dead)

    unwatched = [(part.code.steps, part.code.kernels, part.blocks, part.results, part.dead) for part in parts]

    def step(frame: Frame) -> None:
        run: Run = frame[0]
        kernels, member, blocks = code.kernels, None, None
        try:  # as `execute` would, without calls of it: small groups are half as fast with them
            if run.watch is not None:
                watched(frame, run.watch)
                return
            for steps, count, blocks, results, dead in unwatched:
                if blocks is not None:
                    member = None
                    found = blocks.run(frame)
                    if found is not None:
                        put(frame, results, found, dead)
                        kernels -= count  # they are counted
                        continue
                for member in steps:
                    member(frame)
        except Exception as error:
            if is_located(error):
                raise
            if member is None:  # what the group has read before is gone
                fail(error, node, [frame[s] for s in blocks.slots] if blocks else ())
            code.fail(error, member, frame)
        run.counters.kernels += kernels

    return step
