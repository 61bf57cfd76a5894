"""``prim::CallFunction``: running another graph of the module in a frame of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.runtime.execution import Frame, Slots, Step, put

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.lowering import Lowering
    from irc.runtime.plan import Plan


def lower_call(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::CallFunction(function, arguments...)``.

    At run time a value of type Function is the plan of that function, so
    functions may also be chosen by control flow.
    """
    function, *arguments = ins

    dead = lowering.emptied(ins)

    def step(frame: Frame) -> None:
        plan: Plan = frame[function]
        results = plan.call([frame[s] for s in arguments], frame[0])
        if len(results) != len(outs):
            raise Error("IRC434", f"{plan.name} returns {len(results)} values, not {len(outs)}")
        put(frame, outs, results, dead)

    return step
