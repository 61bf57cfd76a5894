"""Bulks: operators that are dispatched as one unit, and units that run side by side.

Dispatching costs more than a small operator, and threads pay only for work that
takes long; so operators that need each other one by one form one unit. The needs of
a unit are found on the graph, once: the values that its operators read, and what the
alias analysis says of the memory that they read and write. So operators on inputs,
weights and results of the graph are in units like any others.

On one thread a unit is a sequence of operators in program order; it ends at control
flow, or at the size that the user allows. On several threads it is a chain whose
intermediate values nothing else needs, so that units of independent branches
stay apart.

The idea of bulks is MXNet's (pull request 13890); there, operators that touch
inputs or outputs mostly were left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irc.ir.functions import inner_graph
from irc.ir.kinds import CONTROL_FLOW
from irc.ir.ops.heavy import HEAVY

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
    units, held, after_control = 0, 0, False
    breaks: Counter[str] = Counter()
    for node in nodes:
        control = node.kind in CONTROL_FLOW
        if not units:
            units = 1
        elif control or after_control:
            breaks["control flow"] += 1
            units, held = units + 1, 0
        elif held == most:
            breaks["size"] += 1
            units, held = units + 1, 0
        held, after_control = held + 1, control
    return units, breaks


@dataclass
class Unit:
    """Operators that one thread runs one after another.

    Attributes:
        members: their positions in the block.
        needs: the units that must run before it.
        heavy: whether it is worth a thread; other units are not dispatched for their own sake.
    """

    members: list[int]
    needs: set[int]
    heavy: bool = False


@dataclass(frozen=True)
class Schedule:
    """The units of a block.

    Attributes:
        units: in an order in which they may run one after another.
        breaks: the reasons why there are not fewer units.
    """

    units: list[Unit]
    breaks: Breaks

    @property
    def is_parallel(self) -> bool:
        """Whether there are two heavy units neither of which needs the other."""
        # Until two are found, the heavy units form a chain: so those before a unit are the first ones, up to a number.
        chain = 0
        before: list[int] = []
        for unit in self.units:
            earlier = max((before[need] for need in unit.needs), default=0)
            if unit.heavy:
                if earlier < chain:
                    return True
                earlier = chain = chain + 1
            before.append(earlier)
        return False


def schedule(
    nodes: Sequence[Node], needs: Sequence[Collection[int]], heavy: Sequence[bool], most: int | None
) -> Schedule:
    """Form units of operators for several threads.

    An operator joins the unit of one that it needs if that one is the last of its unit, if no other operator needs that
    one, and if whatever else the operator needs has run before the unit begins. So no unit waits for something that
    only its end needs, and no unit runs on while others wait for a part of it.

    Args:
        nodes: the operators of a block, in order.
        needs: for each operator the positions of the earlier ones that must run before it.
        heavy: for each operator whether it mostly takes long.
        most: how many operators a unit may hold; None for any number.
    """
    users = [0] * len(nodes)
    for needed in needs:
        for position in needed:
            users[position] += 1
    units: list[Unit] = []
    unit_of: list[int] = []
    breaks: Counter[str] = Counter()
    for position, node in enumerate(nodes):
        outside = {unit_of[p] for p in needs[position]}
        cause: str | None = None
        for number in sorted(outside, reverse=True):
            unit = units[number]
            last = unit.members[-1]
            if last not in needs[position]:
                refusal = "fork"
            elif node.kind in CONTROL_FLOW or nodes[last].kind in CONTROL_FLOW:
                refusal = "control flow"
            elif users[last] > 1:
                refusal = "fork"
            elif len(outside) > len(unit.needs) + 1 or not (outside - {number}) <= unit.needs:
                refusal = "join"
            elif len(unit.members) == most:
                refusal = "size"
            else:
                unit.members.append(position)
                unit.heavy |= heavy[position]
                unit_of.append(number)
                break
            cause = cause or refusal
        else:
            if position:
                breaks[cause or "branch"] += 1
            unit_of.append(len(units))
            units.append(Unit([position], outside, heavy[position]))
    return Schedule(units, breaks)


def is_heavy(node: Node) -> bool:
    """Whether ``node`` mostly takes long."""
    group = inner_graph(node)
    if group is not None:
        return any(is_heavy(inner) for inner in group.nodes)
    return node.kind in HEAVY or (node.kind in CONTROL_FLOW and any(map(is_heavy, _inside(node))))


def _inside(node: Node) -> Iterable[Node]:
    for block in node.blocks:
        yield from block.nodes
