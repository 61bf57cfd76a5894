"""Bulks: operators of a block that are dispatched as one unit.

A unit is a sequence of operators in program order. It ends at control flow, or at the size that the user allows.
Operators that read inputs, weights or outputs of the graph are in units like all others. (The idea is MXNet's, pull
request 13890; there, operators on inputs and outputs mostly stay out.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from irc.ir.kinds import CONTROL_FLOW

if TYPE_CHECKING:
    from irc.ir import Node

Breaks = Mapping[str, int]
"""Why units ended before the last operator, and how often."""


def bulks_in_order(nodes: Iterable[Node], most: int | None) -> tuple[int, Breaks]:
    """How many units the operators form that run one after another, and the reasons why not fewer.

    Args:
        nodes: the operators, in order.
        most: how many operators a unit may hold; None for any number.
    """
    breaks: Counter[str] = Counter()
    held, after_control = 0, False  # by the unit so far; whether it is control flow
    for node in nodes:
        control = node.kind in CONTROL_FLOW
        cause = "control flow" if control or after_control else "size" if held == most else None
        if held and cause is not None:
            breaks[cause] += 1
            held = 0
        held, after_control = held + 1, control
    return breaks.total() + min(held, 1), breaks
