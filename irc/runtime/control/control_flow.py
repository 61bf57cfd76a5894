"""If and Loop: ``prim::If``, ``prim::Loop``, ``onnx::Loop``.

Their blocks run in the frame of the graph around them. Block parameters and
carried values are moved from slot to slot, never copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.ops.loops import carried, scanned_rows
from irc.runtime.control.stacking import Stack
from irc.runtime.execution import Frame, Slots, Step, execute, fail, is_located, put
from irc.runtime.values import describe, is_array, read_only

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.lowering import Lowering


def lower_if(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::If(cond)`` with blocks then, else; the condition is a bool or a tensor of one element."""
    (condition,) = ins
    then, otherwise = (lowering.block(block) for block in node.blocks)
    dead = lowering.emptied(ins)

    def step(frame: Frame) -> None:
        code = then if truth(frame[condition]) else otherwise
        execute(code, frame)
        put(frame, outs, code.take_returns(frame), dead)

    return step


def lower_prim_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::Loop(max_trips, cond, carried...)``; the body's parameters are the trip number and the carried values."""
    return _lower_loop(lowering, node, ins, outs, [lambda i: i])


def lower_onnx_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``onnx::Loop(M?, cond?, carried...)``, with scan outputs after the carried values.

    The body's parameters are trip number, condition and carried values. The first two are tensors of one element, of
    the rank that the parameters state. (The condition of a trip that is made is always true.)
    """
    params = (param for block in node.blocks for param in block.params)
    trip_rank, condition_rank, *_ = (*(param.type.rank or 0 for param in params), 0, 0)

    def number(i: int) -> Any:
        return np.array(i, np.int64, ndmin=trip_rank)

    def condition(i: int) -> Any:
        return np.array(True, ndmin=condition_rank)

    return _lower_loop(lowering, node, ins, outs, [number, condition])


def _lower_loop(
    lowering: Lowering, node: Node, ins: Slots, outs: Slots, leading: Sequence[Callable[[int], Any]]
) -> Step:
    """``leading`` makes the values of the parameters before the carried ones."""
    body = Body(lowering, node, ins, outs)
    limit_slot, condition_slot = (*ins, None, None)[:2]
    initial = ins[2:]
    dead = lowering.emptied(ins)
    # The first trip owns the initial values that nothing else needs.
    handed_over = tuple(set(initial).intersection(dead) - body.code.captured)

    def step(frame: Frame) -> None:
        limit = None if limit_slot is None else trip_count(frame[limit_slot])
        go_on = condition_slot is None or frame[condition_slot] is None or truth(frame[condition_slot])
        values = body.lend([frame[s] for s in initial])
        for s in handed_over:
            frame[s] = None
        stacks = body.stacks(limit)
        i = 0
        try:
            while go_on and (limit is None or i < limit):
                (condition,), values = body.run(frame, [make(i) for make in leading], values, (), stacks)
                go_on = truth(condition)
                i += 1
        except Exception as error:
            if is_located(error):
                raise
            fail(error, node, [frame[s] for s in ins if s not in handed_over])  # of the others nothing is known
        values.extend(stack.result() for stack in stacks)
        put(frame, outs, values, dead)

    return step


class Body:
    """The body of a loop or scan, which is run trip by trip.

    What a loop is given, at its beginning or by the trip before, is handed over, or else *borrowed*
    (`irc.runtime.memory.loop_aliases`): it enters as a read-only view.

    Args:
        lowering: of the graph.
        node: the loop.
        ins: its slots.
        outs: those of its results.

    Attributes:
        code: the body's.
    """

    def __init__(self, lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> None:
        at = carried(node)
        (block,) = node.blocks
        self.code = lowering.region(block)
        self._rows = scanned_rows(node)
        self._returned = slice(at.returned, at.returned + at.many)
        takers = [(param, *outs[i : i + 1]) for i, param in enumerate(self.code.params[at.param :][: at.many])]
        self._borrowed_first = lowering.borrowed(block, ins[at.input :][: at.many], takers)
        self._borrowed_later = lowering.borrowed(block, self.code.returns[self._returned], takers)

    def stacks(self, trips: int | None) -> list[Stack]:
        """What collects the rows of so many trips at the most; None: it is not known."""
        return [Stack(row, trips) for row in self._rows]

    def lend(self, values: list[Any]) -> list[Any]:
        """The initial ``values``, as the first trip may have them."""
        return _read_only(values, self._borrowed_first)

    def run(
        self, frame: Frame, before: Iterable[Any], values: list[Any], after: Iterable[Any], stacks: Sequence[Stack]
    ) -> tuple[list[Any], list[Any]]:
        """Run a trip: what the body returns before the carried values, and these.

        Args:
            frame: of the graph.
            before: the parameters before the carried values.
            values: these; the list is emptied, as whatever is still needed is in the frame.
            after: the parameters after them.
            stacks: get the rows.
        """
        put(frame, self.code.params, [*before, *values, *after])
        values.clear()
        execute(self.code, frame)
        found = self.code.take_returns(frame)
        for stack, row in zip(stacks, found[self._returned.stop :]):
            stack.append(row)
        return found[: self._returned.start], _read_only(found[self._returned], self._borrowed_later)


def _read_only(values: list[Any], positions: Slots) -> list[Any]:
    """``values``, with what is at ``positions`` made read-only."""
    for i in positions:
        if is_array(values[i]):
            values[i] = read_only(values[i])
    return values


def truth(value: Any) -> bool:
    """A condition as a bool; Error if it is a tensor that does not have exactly one element."""
    return bool(_number(value, "condition"))


def trip_count(value: Any) -> int | None:
    """A loop's maximal number of trips; None if it has no limit."""
    number = _number(value, "trip count")
    if number is not None and (not isinstance(number, int) or (isinstance(number, bool) and is_array(value))):
        raise Error("IRC430", f"a trip count must be an integer, not {describe(value)}")
    return number


def _number(value: Any, what: str) -> Any:
    if is_array(value):
        if value.size != 1:
            raise Error("IRC430", f"a {what} must have exactly one element; its shape is {list(value.shape)}")
        return value.item()
    return value
