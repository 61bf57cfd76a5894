"""Graphs whose branches run side by side, on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.alias import analyze
from irc.ir.kinds import GROUP
from irc.runtime.fused.split import split_point
from irc.runtime.plan import SPECIAL
from irc.runtime.threads.dispatch import UnitPlan
from irc.runtime.threads.needs import find_needs
from irc.runtime.threads.units import is_heavy, schedule

if TYPE_CHECKING:
    from irc.runtime.execution import Run
    from irc.runtime.plan import Lowerer, Plan


class Branches:
    """The units of a graph, found when they are first wanted.

    Args:
        lowerer: of the graph.
    """

    def __init__(self, lowerer: Lowerer) -> None:
        self._lowerer = lowerer
        self._lock = RLock()
        self._found: tuple[Plan, UnitPlan] | None = None
        self._looked = False

    def run(self, inputs: Sequence[Any], run: Run, threads: int) -> list[Any] | None:
        """The graph's outputs, in order; None if no two branches of the graph are worth threads of their own.

        Args:
            inputs: one value for each input.
            run: the run; it is not watched.
            threads: how many threads may take part, this one included.
        """
        with self._lock:
            if not self._looked:
                self._found = find_units(self._lowerer)
                self._looked = True
        if self._found is None:
            return None
        plan, units = self._found
        with np.errstate(all="ignore"):
            return units.call(inputs, run, plan.template, threads)


def find_units(lowerer: Lowerer) -> tuple[Plan, UnitPlan] | None:
    """The graph of ``lowerer`` in units; None if no two of them are worth threads of their own."""
    if sum(map(is_heavy, lowerer.graph.nodes)) < 2:
        return None
    plan, units = in_units(lowerer)
    return (plan, units) if units.is_parallel else None


def in_units(lowerer: Lowerer) -> tuple[Plan, UnitPlan]:
    """The graph of ``lowerer`` lowered for units, and these, whatever they are worth."""
    graph = lowerer.graph
    split_at = {node: at for node in graph.nodes if node.kind == GROUP and (at := split_point(node))}
    plan, lowering = lowerer.lower_again(split_at)
    code = plan.code
    nodes = [node for node, _, _ in code.nodes]
    # Of a group that is two steps, the first is the one that takes long.
    heavy = [is_heavy(node) and node is not before for before, node in zip([None, *nodes], nodes)]
    db = analyze(graph, noalias=graph.inputs if lowerer.guarded else ())
    needs = find_needs(
        db,
        nodes,
        lowering.reads,
        [outs for _, _, outs in code.nodes],
        [lowering.storages(slots) for slots in lowering.reads],
        lowering.overwritten,
    )
    found = schedule(nodes, needs, heavy, lowerer.bulk)
    made = {slot for _, _, outs in code.nodes for slot in outs}
    constants = frozenset(range(1, len(plan.template))) - made - set(code.params)
    kernels = [node.kind not in SPECIAL for node in nodes]
    return plan, UnitPlan(graph.name, code, found, lowering.reads, constants, kernels)
