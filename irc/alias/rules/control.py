"""Branches and loops.

A loop's parameter may denote what the loop is given and, from the second trip
on, what the body returned; its results may denote the same, as a loop may
make no trip at all. The solver finds the fixed point.
"""

from __future__ import annotations

from irc.alias.facts import NOTHING, Element
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder, Steps
from irc.alias.rules.entry import Entry
from irc.ir.kinds import IF, ONNX_LOOP, PRIM_LOOP, SCAN
from irc.ir.loops import carried
from irc.ir.node import Node
from irc.ir.value import Value


def _if(rec: Recorder, node: Node) -> Steps:
    """A result is what either block returns for it."""
    yield from node.blocks
    for i, output in enumerate(node.outputs):
        if has_memory(output.type):
            rec.bind(output, rec.join(rec.element(block.returns[i]) for block in node.blocks))


def _loop(rec: Recorder, node: Node) -> Steps:
    """A parameter is what the loop is given, or what the body returns for it; a result is the same.

    A slice of a Scan may share memory with what it is a slice of. What the loop makes itself is fresh: the number of
    the trip, the condition, and what it stacks.
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
    """What a loop carries in ``param``: at first ``start``; what later trips give is added when the body is known.

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


RULES: dict[str, Entry] = {
    IF: Entry(_if),
    PRIM_LOOP: Entry(_loop),
    ONNX_LOOP: Entry(_loop),
    SCAN: Entry(_loop),
}
