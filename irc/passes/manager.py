"""Running a pipeline of passes over a graph or a module."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from operator import methodcaller

from irc.alias.builder import Analyze
from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.graph import gc_paused
from irc.ir.types import Type, accepts, without_shapes
from irc.passes.base import Evaluate, Pass, PassContext, is_ours, run_pass
from irc.passes.instruments import Instrument, create_instruments
from irc.passes.registry import Pipeline, Repeat, fault, parse_pipeline, print_pipeline
from irc.passes.shapes import DeclaredTypes
from irc.support.remarks import PassRun, Remark


@dataclass
class PassReport:
    """What a pipeline did.

    Attributes:
        passes: the runs, in order; a pass that was skipped because nothing had changed since its last run is missing.
        stats: how often each pass did what, by ``"pass.key"``.
        remarks: what passes left as it was, and why.
    """

    passes: list[PassRun] = field(default_factory=list[PassRun])
    stats: Counter[str] = field(default_factory=Counter[str])
    remarks: list[Remark] = field(default_factory=list[Remark])

    @property
    def changed(self) -> bool:
        """Whether any pass changed anything."""
        return any(run.changed for run in self.passes)


class PassManager:
    """Runs a pipeline.

    Args:
        pipeline: pipeline text, or a sequence of passes, ``Repeat`` groups and pieces of such text.
        instruments: what watches the run, or names of it; see ``irc.passes.instruments``.
        evaluate: computes nodes on constants; irc's kernels by default.
        analyze: builds alias analyses; ``irc.alias.analyze`` by default.

    Raises:
        Error: IRC301 to IRC303 if the pipeline text is wrong.
        TypeError: if the pipeline or an instrument is something else.
    """

    def __init__(
        self,
        pipeline: str | Sequence[Pass | Repeat | str],
        instruments: Sequence[Instrument | str] = (),
        evaluate: Evaluate | None = None,
        analyze: Analyze | None = None,
    ) -> None:
        if isinstance(pipeline, str):
            self.pipeline: Pipeline = parse_pipeline(pipeline)
        elif isinstance(pipeline, Sequence):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            self.pipeline = _pipeline(pipeline)
        else:
            raise TypeError(f"a pipeline is text or a sequence of passes and their names, not {pipeline!r}")
        if isinstance(instruments, str):
            raise TypeError(f"instruments are a sequence of objects or names: [{instruments!r}]")
        self.instruments = tuple(map(_instrument, instruments))
        self.evaluate = evaluate
        self.analyze = analyze

    def watched_by(self, instruments: Sequence[Instrument]) -> PassManager:
        """The same pipeline under other instruments."""
        other = copy(self)
        other.instruments = tuple(instruments)
        return other

    def run(self, target: Graph | Module) -> PassReport:
        """Run every pass on ``target`` in place: on a graph, or on each graph of a module, the main one first.

        Each pass finishes all graphs before the next begins.

        Raises:
            Error: what passes and instruments raise, with the name of the one that does; IRC305 and IRC309 for other
                exceptions (`irc.passes.base`); IRC305 if a pass does not say whether it changed anything, or does
                not keep the inputs and outputs of a module and their names.
            TypeError: if ``target`` is something else.
        """
        if not isinstance(target, Graph | Module):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise TypeError(f"passes run on a Graph or a Module, not on {type(target).__name__}")
        with gc_paused():
            return _Run(self, target).run()

    def __str__(self) -> str:
        return print_pipeline(self.pipeline)


class _Run:
    """The state of one ``PassManager.run``."""

    def __init__(self, manager: PassManager, target: Graph | Module) -> None:
        self.manager = manager
        self.target = target
        module = target.module if isinstance(target, Graph) else target
        self.ctx = PassContext(module, manager.evaluate, manager.analyze)
        self.report = PassReport([], self.ctx.stats)
        # Passes are idempotent: one that has seen the present version need not run again.
        self.version = self.ctx.version = 0
        self.settled: dict[tuple[Graph, Pass], int] = {}
        self.declared = self.ctx.memory[DeclaredTypes] = DeclaredTypes()

    def run(self) -> PassReport:
        self.tell(lambda each: each.start(self.manager.pipeline, self.graphs(), self.ctx))
        self.take_declared_apart()
        try:
            self.items(self.manager.pipeline)
        finally:
            self.declared.give_back()
        self.report.remarks = self.ctx.remarks
        self.tell(lambda each: each.finish(self.report, self.ctx))
        return self.report

    def take_declared_apart(self) -> None:
        """Let values have only the types that hold, whatever happens in place."""
        for graph in self.graphs():
            self.ctx.analyses.begin(graph)
            self.declared.take_apart(graph, partial(self.ctx.alias_db, graph), self.ctx.memory)

    def tell(self, call: Callable[[Instrument], None]) -> None:
        """Call each instrument."""
        # What one raises is its own: it is not taken for an error of the pass.
        for instrument in self.manager.instruments:
            call(instrument)

    def graphs(self) -> list[Graph]:
        if isinstance(self.target, Graph):
            return [self.target]
        main = self.target.main
        return [main, *(graph for graph in self.target.graphs.values() if graph is not main)]

    def items(self, items: Pipeline) -> None:
        for item in items:
            if isinstance(item, Repeat):
                self.repeat(item)
            else:
                self.one_pass(item)

    def repeat(self, group: Repeat) -> None:
        for _ in range(group.rounds):
            before = self.version
            self.items(group.items)
            if self.version == before:
                return
        self.ctx.begin(str(group), None)
        self.ctx.note("pipeline", f"round {group.rounds} still changed the graph; raise the limit to go on")

    def one_pass(self, p: Pass) -> None:
        seconds, ran, changed = 0.0, False, False
        known = _interface(self.target) if isinstance(self.target, Module) else {}
        for graph in self.graphs():
            if isinstance(self.target, Module) and self.target.graphs.get(graph.name) is not graph:
                continue  # the pass removed this function when it ran on an earlier graph
            if self.settled.get((graph, p)) == self.version:
                continue
            begin = time.perf_counter()
            altered = self.on_graph(p, graph)
            seconds += time.perf_counter() - begin
            ran, changed = True, changed or altered
            self.tell(methodcaller("after", p, graph, self.ctx, altered))
        if ran and isinstance(self.target, Module):  # a pass on a function may have changed the main graph, too
            _check_interface(p, known, _interface(self.target))
        if ran:
            self.report.passes.append(PassRun(p.name, seconds, changed))

    def on_graph(self, p: Pass, graph: Graph) -> bool:
        ctx = self.ctx
        self.tell(lambda each: each.before(p, graph, ctx))
        ctx.begin(p.name, graph)
        changed = run_pass(
            p,
            graph,
            ctx,
            lambda error: self.tell(lambda each: each.failed(p, graph, ctx, error)),
        )
        if not isinstance(changed, bool):  # type: ignore[reportUnnecessaryIsInstance]  # a plug-in may have forgotten it
            raise Error(
                "IRC305", f"pass {p.name} returns {changed!r}: run must return whether it changed the graph", graph.name
            )
        if changed:
            self.version += 1
            self.ctx.version = self.version
            if graph.is_function:
                ctx.analyses.function_changed(graph)
            if not is_ours(p):  # which may have put anything there
                self.take_declared_apart()
                ctx.analyses.begin(graph)
        self.settled[graph, p] = self.version
        return changed


Interface = dict[str, list[tuple[str, Type]]]
"""Names and types of a module's inputs and outputs, by these words."""


def _interface(module: Module) -> Interface:
    """What callers know of the module; objects that come with the model are not inputs."""
    main = module.main
    return {
        "inputs": [(v.name, v.type) for v in main.inputs if v.name not in module.objects],
        "outputs": [(v.name, without_shapes(v.type)) for v in main.outputs],  # shapes may have been declared wrong
    }


def _check_interface(p: Pass, known: Interface, found: Interface) -> None:
    """Raise IRC305 if the inputs and outputs are not those that the model had before ``p``."""
    for what, before in known.items():
        if found[what] == before:
            continue
        for was, now in zip_longest(before, found[what], fillvalue=("", None)):
            if was[0] != now[0]:
                names = [f"%{name}" if name else "nothing" for name, _ in (now, was)]
                message = f"pass {p.name} must keep {what} and their names: {names[0]} stands where {names[1]} was"
                raise Error("IRC305", message)
            # irc's own passes find out what outputs are, which models declare as something else at times.
            may_be_found = what == "outputs" and is_ours(p)
            if was[1] and now[1] and not may_be_found and not accepts(was[1], now[1]):
                message = f"pass {p.name} must keep the types of {what}: %{was[0]} was {was[1]}, not {now[1]}"
                raise Error("IRC305", message)


def _pipeline(items: Sequence[Pass | Repeat | str]) -> Pipeline:
    return tuple(entry for item in items for entry in _entries(item))


def _entries(item: Pass | Repeat | str) -> Pipeline:
    """What ``item`` stands for in a pipeline; TypeError if it cannot be part of one."""
    if isinstance(item, str):
        return parse_pipeline(item)
    if isinstance(item, Repeat):
        return (Repeat(_pipeline(item.items), item.rounds),)
    if isinstance(item, type):
        raise TypeError(f"a pipeline holds passes, not classes: give {item.__name__}()")
    if not isinstance(item, Pass):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        raise TypeError(f"a pipeline holds passes and their names, not {item!r}")
    _check_pass(item)
    return (item,)


def _check_pass(p: Pass) -> None:
    """Raise TypeError if ``type(p)`` is not a pass class, or its options cannot be hashed."""
    wrong = fault(type(p))
    if wrong:
        raise TypeError(f"this is not a pass: {type(p).__name__}: {wrong}")
    try:
        hash(p)
    except TypeError as e:
        raise TypeError(f"a pass is a frozen dataclass whose options can be hashed, not {p!r}: {e}") from None


def _instrument(item: Instrument | str) -> Instrument:
    """An instrument, given itself or by its name; TypeError if it is neither."""
    if isinstance(item, str):
        return create_instruments([item])[0]
    if not isinstance(item, Instrument):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        raise TypeError(f"instruments are objects or names of them, not {item!r}")
    return item
