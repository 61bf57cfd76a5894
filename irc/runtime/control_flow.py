"""If and Loop: ``prim::If``, ``prim::Loop``, ``onnx::Loop``.

Their blocks run in the frame of the graph around them. Block parameters and
carried values are moved from slot to slot, never copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.types import TensorType
from irc.runtime.execution import Code, Frame, Slots, Step, execute, label
from irc.runtime.stacking import Stack
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.runtime.lowering import FillIn, Lowering


def lower_if(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
    """``prim::If(cond)`` with blocks then, else; the condition is a bool or a tensor of one element."""
    (condition,) = ins
    then, otherwise = (lowering.block(block) for block in node.blocks)

    def fill_in(dead: Slots) -> Step:
        def step(frame: Frame) -> None:
            code = then if truth(frame[condition]) else otherwise
            execute(code, frame)
            for s, value in zip(outs, code.take_returns(frame), strict=True):
                frame[s] = value
            for s in dead:
                frame[s] = None

        return step

    return fill_in


def lower_prim_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
    """``prim::Loop(max_trips, cond, carried...)``: trip number and condition are Python values."""
    return _lower_loop(lowering, node, ins, outs, int, bool)


def lower_onnx_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
    """``onnx::Loop(M?, cond?, carried...)``, with scan outputs after the carried values.

    Trip number and condition are tensors of one element, of the rank that the body's parameters state.
    """
    shapes = [_ones(param) for param in node.blocks[0].params[:2]]
    return _lower_loop(
        lowering,
        node,
        ins,
        outs,
        partial(np.full, shapes[0], dtype=np.int64),
        partial(np.full, shapes[1], dtype=np.bool_),
    )


def _lower_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots, number: Any, flag: Any) -> FillIn:
    carried = max(0, len(ins) - 2)
    (block,) = node.blocks
    check_body(node, params=2 + carried, returns=1 + carried)
    body = lowering.region(block)
    limit_slot, condition_slot = (*ins, None, None)[:2]
    initial = ins[2:]
    trip_param, condition_param, *params = body.params
    scanned = block.returns[1 + carried :]

    def fill_in(dead: Slots) -> Step:
        # The first trip owns the initial values that nothing else needs.
        handed_over = tuple(set(initial).intersection(dead) - body.captured)

        def step(frame: Frame) -> None:
            limit = None if limit_slot is None else trip_count(frame[limit_slot])
            go_on = condition_slot is None or frame[condition_slot] is None or truth(frame[condition_slot])
            values = [frame[s] for s in initial]
            for s in handed_over:
                frame[s] = None
            stacks = [Stack(v, limit) for v in scanned]
            i = 0
            while go_on and (limit is None or i < limit):
                frame[trip_param] = number(i)
                frame[condition_param] = flag(go_on)
                for s, value in zip(params, values):
                    frame[s] = value
                values.clear()  # whatever is still needed is in the frame
                go_on, values = _run_trip(body, frame, carried, stacks)
                i += 1
            values.extend(stack.result() for stack in stacks)
            for s, value in zip(outs, values):
                frame[s] = value
            for s in dead:
                frame[s] = None

        return step

    return fill_in


def _run_trip(body: Code, frame: Frame, carried: int, stacks: Sequence[Stack]) -> tuple[bool, list[Any]]:
    execute(body, frame)
    condition, *values = body.take_returns(frame)
    for stack, value in zip(stacks, values[carried:]):
        stack.append(value)
    return truth(condition), values[:carried]


def check_body(node: Node, params: int, returns: int) -> None:
    """Error IRC304 unless the only block of ``node`` has so many parameters and at least so many returns."""
    for block in node.blocks:
        if len(block.params) != params or len(block.returns) < returns:
            raise Error(
                "IRC304",
                f"the body has {len(block.params)} parameters and {len(block.returns)} returns; "
                f"for {len(node.inputs)} inputs it needs {params} parameters and at least {returns} returns",
                label(node),
            )


def truth(value: Any) -> bool:
    """A condition as a bool; Error if it is a tensor that does not have exactly one element."""
    if is_array(value):
        if value.size != 1:
            raise Error("IRC430", f"a condition must have exactly one element; its shape is {list(value.shape)}")
        return bool(value.item())
    return bool(value)


def trip_count(value: Any) -> int | None:
    """A loop's maximal number of trips; None if it has no limit."""
    if is_array(value):
        if value.size != 1:
            raise Error("IRC430", f"a trip count must have exactly one element; its shape is {list(value.shape)}")
        return int(value.item())
    return value


def _ones(param: Value) -> tuple[int, ...]:
    rank = param.type.rank if isinstance(param.type, TensorType) else None
    return (1,) * (rank or 0)
