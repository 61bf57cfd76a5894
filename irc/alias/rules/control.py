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
from irc.ir.node import Node
from irc.ir.ops.scan import is_batched, scan_states
from irc.ir.value import Value


def _if(rec: Recorder, node: Node) -> Steps:
    """A result is what either block returns for it."""
    yield from node.blocks
    for i, output in enumerate(node.outputs):
        if has_memory(output.type):
            rec.bind(output, rec.join(rec.element(block.returns[i]) for block in node.blocks))


def _carry(rec: Recorder, param: Value, start: Element) -> Element:
    """What a loop carries in ``param``: at first ``start``; what later trips give is added by ``_close``.

    The element is neither the parameter's nor the result's: either may be replaced without the other.
    """
    if not has_memory(param.type):
        return NOTHING
    element = rec.facts.new()
    rec.point(element, start)
    rec.bind(param, element)
    return element


def _close(rec: Recorder, carried: Element, returned: Value) -> None:
    if carried != NOTHING:
        rec.point(carried, rec.element(returned))


def _prim_loop(rec: Recorder, node: Node) -> Steps:
    """``prim::Loop(max_trip, cond, carried...)``; block (trip, carried...) -> (cond, carried...).

    What is carried may be what the loop is given, or what the block returns for it.
    """
    (block,) = node.blocks
    carried = [_carry(rec, p, rec.element(v)) for p, v in zip(block.params[1:], node.inputs[2:])]
    yield block
    for element, returned, output in zip(carried, block.returns[1:], node.outputs):
        _close(rec, element, returned)
        rec.bind(output, element)


def _onnx_loop(rec: Recorder, node: Node) -> Steps:
    """``Loop(max_trip, cond, carried...)``; block (trip, cond, carried...) -> (cond, carried..., scanned...).

    What is carried may be what the loop is given, or what the block returns for it; what is scanned is fresh memory.
    """
    (block,) = node.blocks
    rec.fresh(block.params[0])
    starts = [rec.element(v) for v in node.inputs[1:]]
    carried = [_carry(rec, p, e) for p, e in zip(block.params[1:], starts)]
    yield block
    for element, returned in zip(carried, block.returns):
        _close(rec, element, returned)
    _results(rec, node, carried[1:])


def _onnx_scan(rec: Recorder, node: Node) -> Steps:
    """``Scan(states..., scanned...)``; block (states..., slices...) -> (states..., scanned...).

    A slice may share memory with the input that it is a slice of, a state be what Scan is given or what the block
    returns for it; what is scanned is fresh memory.
    """
    (block,) = node.blocks
    inputs = node.inputs[1:] if is_batched(node) else node.inputs
    states = scan_states(node)
    carried = [_carry(rec, p, rec.element(v)) for p, v in zip(block.params[:states], inputs)]
    for param, value in zip(block.params[states:], inputs[states:]):
        rec.bind(param, rec.element(value))
    yield block
    for element, returned in zip(carried, block.returns):
        _close(rec, element, returned)
    _results(rec, node, carried)


def _results(rec: Recorder, node: Node, carried: list[Element]) -> None:
    """The carried values, then what was scanned, which is stacked into fresh memory."""
    for output, element in zip(node.outputs, carried):
        rec.bind(output, element)
    for output in node.outputs[len(carried) :]:
        rec.fresh(output)


RULES: dict[str, Entry] = {
    "prim::If": Entry(_if),
    "prim::Loop": Entry(_prim_loop),
    "onnx::Loop": Entry(_onnx_loop),
    "onnx::Scan": Entry(_onnx_scan),
}
