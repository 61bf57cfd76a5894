"""Running a pipeline whose result is verified, and finding the pass that broke a rule of the IR.

The graph is verified at the end, and after each pass that is not irc's own: what such a pass breaks, a later one might
hide, as the fuser does that puts nodes in order. If the end fails, the pipeline runs once more, on the model as it was,
and is verified after each pass: only a failure costs more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from irc.alias import Analyses
from irc.errors import Error
from irc.ir import Graph, Module
from irc.passes.base import Pass, PassContext
from irc.passes.faults import is_ours, with_note
from irc.passes.instruments import Instrument, OptimisationLimit, VerifyEach, alias_fault
from irc.passes.manager import PassManager, PassReport
from irc.passes.registry import Pipeline, Repeat
from irc.passes.shapes.agreement import contradiction


def run_verified(manager: PassManager, module: Module, again: Callable[[], Module]) -> tuple[PassReport, Analyses]:
    """Run ``manager`` on ``module`` in place, and verify the module.

    Args:
        manager: the pipeline.
        module: what keeps the rules of the IR.
        again: makes another module, equal to ``module`` as it is given.

    Returns:
        The report of the run, and the alias analyses that the passes have kept right.

    Raises:
        Error: IRC2xx if a pass breaks a rule of the IR; the message names the pass, even if it is a later one that
            fails because of it. Others as of `PassManager.run`.
    """
    others = _VerifyOthers()
    try:
        report = manager.watched_by([others, *manager.instruments]).run(module)
    except Error as error:
        if others.found is not None or not (others.suspected or _broken_rule(module)):
            raise
        found, _ = _first_broken(manager, again)
        if found is None:  # the pass that failed has left the graph half changed
            raise
        raise found from error
    broken = _broken_rule(module)
    if broken is not None or others.suspected:
        found, why = _first_broken(manager, again)
        if found is None and broken is not None:
            message = with_note(broken.message, f"which pass broke the graph is not known: {why}")
            found = Error(broken.code, message, broken.where)
        if found is not None:
            raise found from broken
    # An instrument of somebody else may have changed a graph since the last pass relied on its analysis.
    if not all(map(is_ours, manager.instruments)):
        others.analyses.drop()
    others.analyses.settle()
    return report, others.analyses


def _broken_rule(module: Module) -> Error | None:
    try:
        module.verify()
    except Error as error:
        return error
    return None


def _first_broken(manager: PassManager, again: Callable[[], Module]) -> tuple[Error | None, str]:
    """The error at the first pass or instrument of ``manager`` that breaks a rule; or None, and why.

    irc's own instruments, which change nothing, take no part in the second run, and print nothing.
    """
    verifier = _VerifyAll()
    instruments = [each for given in manager.instruments for each in _repeated(given)]
    try:
        module = again()
    except Error as unread:
        return None, f"it cannot be read a second time: {unread}"
    try:
        manager.watched_by([verifier, *instruments]).run(module)
    except Error as failed:
        return verifier.found, f"compiling it again to find out failed otherwise: {failed}"
    suspects = dict.fromkeys(p.name for p in passes_of(manager.pipeline) if not is_ours(p))
    named = f"; what did does not do the same each time, perhaps {' or '.join(suspects)}" if suspects else ""
    return None, f"no pass did when it was compiled again{named}"


def _repeated(instrument: Instrument) -> list[Instrument]:
    """What does the same to graphs as ``instrument`` when a pipeline runs again."""
    if isinstance(instrument, OptimisationLimit):
        return [OptimisationLimit(instrument.limit, StringIO())]
    return [] if is_ours(instrument) else [instrument]


def passes_of(pipeline: Pipeline) -> list[Pass]:
    """The passes of a pipeline, those of groups once."""
    return [p for item in pipeline for p in (passes_of(item.items) if isinstance(item, Repeat) else [item])]


class _VerifyOthers(VerifyEach):
    """Verifies after each pass that is not irc's own.

    ``suspected`` says whether types contradicted each other after one, which the model may have come with.
    """

    suspected = False

    def watches(self, p: Pass) -> bool:
        """Whether ``p`` is not irc's."""
        return not is_ours(p)

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        """Keep the analyses."""
        super().start(pipeline, graphs, ctx)
        self._ctx, self.analyses = ctx, ctx.analyses

    def verify_given(self, targets: Sequence[Graph | Module]) -> None:
        """Verify nothing: what the pipeline is given has been verified."""

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Verify the alias analyses too, which the next pass relies on, and look at types."""
        super().pass_ended(module, last)
        if not self.watches(last[0]):
            return
        for graph in module.graphs.values():
            self.found = alias_fault(last[0], graph, self._ctx, exact=False)
            if self.found is not None:
                raise self.found
        self.suspected = self.suspected or contradiction(module) is not None


class _VerifyAll(VerifyEach):
    """Verifies after each pass and, after passes of other packages, whether types contradict.

    Instruments that are not irc's own may change graphs: it also verifies after each call of these.
    """

    def __init__(self) -> None:
        super().__init__()
        self._agreed = False
        self._has_failed = False

    def called(self, instrument: Instrument, moment: str) -> None:
        """Look at what another package's instrument has left."""
        if self._module is not None and not self._has_failed and not is_ours(instrument):
            self.verify(self._module, f"after instrument {type(instrument).__name__} was called {moment}")

    def failed(self, p: Pass, graph: Graph, ctx: PassContext, error: Exception) -> None:
        """Verify no more: the graph is half changed."""
        self._has_failed = True

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        """Look at types before a pass that may spoil them."""
        super().before(p, graph, ctx)
        if graph.is_main and not is_ours(p):  # the first graph that it runs on
            self._agreed = ctx.module is not None and contradiction(ctx.module) is None

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Look at types, too."""
        super().pass_ended(module, last)
        if self._agreed and not is_ours(last[0]):
            fault = contradiction(module)
            if fault is not None:
                self.found = Error(fault.code, f"after pass {self.words(last)}: {fault.message}", fault.where)
                raise self.found
