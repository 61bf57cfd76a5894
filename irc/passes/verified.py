"""Running a pipeline whose result is verified, and finding the pass that broke a rule of the IR.

The graph is verified at the end, and after each pass that is not irc's own: what such a pass breaks, a later one might
hide, as the fuser does that puts nodes in order. If anything fails, the pipeline runs once more, on the model as it
was, and is verified after each pass: only a failure costs more.
"""

from __future__ import annotations

from collections.abc import Callable

from irc.alias import Analyses
from irc.errors import Error
from irc.ir import Graph, Module
from irc.passes.base import Pass, PassContext, is_ours
from irc.passes.instruments import OptimisationLimit, PassEnds, VerifyEach, alias_fault
from irc.passes.manager import PassManager, PassReport
from irc.passes.registry import Pipeline
from irc.passes.shapes import contradiction


def run_verified(manager: PassManager, module: Module, again: Callable[[], Module]) -> tuple[PassReport, Analyses]:
    """Run ``manager`` on ``module`` in place, and verify the module.

    Args:
        manager: the pipeline.
        module: what keeps the rules of the IR.
        again: makes another module, equal to ``module`` as it is given.

    Returns:
        The report of the run, and the alias analyses that the passes have kept right.

    Raises:
        Error: IRC2xx if a pass breaks a rule of the IR; the message names the pass. Others as of `PassManager.run`.
    """
    others = _VerifyOthers()
    try:
        report = manager.watched_by([others, *manager.instruments]).run(module)
        module.verify()
    except Error:  # a pass may have failed because an earlier one broke a rule
        limits = [each for each in manager.instruments if isinstance(each, OptimisationLimit)]
        manager.watched_by([_VerifyOthers(), VerifyEach(), *limits]).run(again())
        raise
    # An instrument of somebody else may have changed a graph since the last pass relied on its analysis.
    if not all(map(is_ours, manager.instruments)):
        others.analyses.drop()
    others.analyses.settle()
    return report, others.analyses


class _VerifyOthers(VerifyEach):
    """Verifies the module, alias analyses and types after each pass that is not irc's own."""

    _agreed = False  # whether no types contradicted each other, which the model may have come with

    def watches(self, p: Pass) -> bool:
        """Whether ``p`` is not irc's."""
        return not is_ours(p)

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        """Keep the analyses; verify nothing, as what the pipeline is given has been verified."""
        PassEnds.start(self, pipeline, graphs, ctx)
        self._ctx, self.analyses = ctx, ctx.analyses

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        """Look at types before a pass that may spoil them."""
        super().before(p, graph, ctx)
        # Once they agree, they do until a pass of another package is wrong: irc's own keep types right.
        if self.watches(p) and not self._agreed and ctx.module is not None:
            self._agreed = contradiction(ctx.module) is None

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Verify the alias analyses and the types, too."""
        super().pass_ended(module, last)
        if not self.watches(last[0]):
            return
        # Not exact: an answer that is too cautious breaks nothing, and a rebuild of each analysis would cost much.
        for graph in module.graphs.values():
            fault = alias_fault(last[0], graph, self._ctx, exact=False)
            if fault is not None:
                raise fault
        fault = contradiction(module) if self._agreed else None
        if fault is not None:
            raise Error(fault.code, f"after pass {self.words(last)}: {fault.message}", fault.where)
