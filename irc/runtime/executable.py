"""Answering requests: running a graph from the values that a caller gives to those that it gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.errors import Error, suggestion
from irc.ir.bulk import no_collection
from irc.ir.fixed_sizes import sizes_text
from irc.runtime import boundary
from irc.runtime.arena import PlannedRuns
from irc.runtime.binding import unsupported
from irc.runtime.bounds import Guarded
from irc.runtime.execution import Counters, Run
from irc.runtime.guards.limits import Limits, Warden, check_limits
from irc.runtime.intake import NOTHING, Held, Intake
from irc.runtime.kernels.scratch import OwnScratch
from irc.runtime.memory.room import room_of
from irc.runtime.objects import State
from irc.runtime.options import Options, check_threads
from irc.runtime.parts import has_unknown, part_for, unknown_nodes
from irc.runtime.plan import Lowerer
from irc.runtime.results import Path, element, results_of
from irc.runtime.threads import blas
from irc.runtime.values import Array, describe

if TYPE_CHECKING:
    from irc.ir import Graph, Module
    from irc.runtime.arguments import Argument
    from irc.runtime.profiles.profile import Profiler


@dataclass(slots=True)
class Request:
    """What one run is asked for.

    Attributes:
        feeds: input name -> value, as for `irc.CompiledModel.run`.
        outputs: names of the results wanted; None for all outputs.
        donate: names of inputs that may be overwritten.
        limits: of the run; None for none.
        threads: how many threads may work at it, instead of the number in the model's options.
        profiler: what follows the run, if anything does.
        held: inputs that are not in ``feeds``: outputs of an earlier step that were kept. They are taken as they are,
            and extended in place unless they have been extended already; those that are lent count as donated.
        keep: paths of the results to return as arrays that nothing may change.
        again: whether inputs of the same shapes may come again. (Caches that grow do not.)
    """

    feeds: Mapping[str, Any]
    outputs: Iterable[str] | None = None
    donate: Iterable[str] = ()
    limits: Limits | None = None
    threads: int | None = None
    profiler: Profiler | None = None
    held: Held = NOTHING
    keep: Sequence[Path] = ()
    again: bool = True


class Answer(NamedTuple):
    """What one run gave: the results that were wanted, by name, and those to keep; what it did."""

    results: dict[str, Any]
    kept: list[Array]
    counters: Counters


class Executable:
    """A lowered graph, the objects it keeps, and the memory that its runs use.

    Args:
        graph: it must not change afterwards.
        module: the module it is part of.
        inputs: what a caller may give.
        outputs: what a caller gets.
        defaults: values of the inputs that may be left out.
        sizes: the sizes of named dimensions that the graph is for.
        options: how it runs.

    Attributes:
        options: as given.
        state: the objects it keeps from run to run.
        writes: what runs write to.
        runs: the plans, and the memory planned for them.
        counters: what the last run to finish did.

    Raises:
        Error: IRC3xx, the graph cannot be lowered.
    """

    def __init__(
        self,
        graph: Graph,
        module: Module,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        defaults: Mapping[str, Any],
        sizes: Mapping[str, int],
        options: Options,
    ) -> None:
        self.options = options
        self._graph = graph
        self._part = partial(Executable, module=module, inputs=inputs, outputs=outputs, defaults=defaults, sizes=sizes)
        self._parts: dict[frozenset[int], Executable] | None = {} if has_unknown(graph) else None
        self.state = State(module, graph)
        self.counters = Counters()
        with no_collection():
            lowerer = Lowerer(graph, guarded=True, bulk=options.bulk)
        self.runs = PlannedRuns(lowerer)
        self.writes, self._known = lowerer.writes, lowerer.known
        self._sizes = sizes
        self._results = results_of(outputs)
        self._wholes = {output.name: self._results[output.name].path for output in outputs}
        self._order = tuple(v.name for v in graph.inputs)
        self._intake = Intake(self._order, inputs, defaults, self.state.objects, self.writes.inputs)

    def answer(self, request: Request) -> Answer:
        """Run the graph. Several threads may ask at once.

        Raises:
            Error: as `irc.CompiledModel.run`.
        """
        if self._parts is not None:
            part = self._without_unknown(self._parts, request)
            answer = part.answer(request)
            self.counters = part.counters
            return answer
        counters, limits, threads, profiler = Counters(), request.limits, request.threads, request.profiler
        wanted = self._wanted(request.outputs)
        donate = frozenset(_names(request.donate, "donate", "IRC416"))
        if limits is not None:
            check_limits(limits)
        threads = self.options.threads if threads is None else check_threads(threads)
        values = self._taken(request, donate, counters)
        warden = None if limits is None else Warden(limits, values)
        if profiler is not None:
            profiler.start(values, counters)
        given_up = donate or request.held.lent  # sessions do not donate
        donated = [i for i, name in enumerate(self._order) if name in given_up] if given_up else ()
        run = Run(counters, warden or profiler, threads)
        results, kept = self.state.turn(partial(self._compute, request, wanted, values, donated, run, Guarded(warden)))
        self.counters = counters
        return Answer(results, kept, counters)

    def _without_unknown(self, parts: dict[frozenset[int], Executable], request: Request) -> Executable:
        """What computes the results asked for; Error IRC323 if these need unknown operators, or all are wanted."""
        if request.outputs is None:
            raise unsupported(unknown_nodes(self._graph))
        request.outputs = list(request.outputs) if not isinstance(request.outputs, str) else request.outputs
        paths = chain(self._wanted(request.outputs).values(), request.keep)
        positions = frozenset(path[0] for path in paths)
        part = parts.get(positions)
        if part is None:
            part = parts[positions] = self._part(part_for(self._graph, positions), options=self.options)
        return part

    def _taken(self, request: Request, donate: Collection[str], counters: Counters) -> list[Any]:
        try:
            return self._intake.take(request.feeds, donate, request.held, counters)
        except Error as error:
            if error.code != "IRC413" or not self._sizes:
                raise
            message = f"{error.message}; the model was compiled for {sizes_text(self._sizes)}"
            raise Error(error.code, message, error.where) from None

    def _compute(
        self,
        request: Request,
        wanted: Mapping[str, Path],
        values: Sequence[Any],
        donated: Collection[int],
        run: Run,
        guarded: Guarded,
    ) -> tuple[dict[str, Any], list[Array]]:
        keep, held = request.keep, request.held
        if held.loan is not None:
            held.loan.take()
        with guarded, OwnScratch(), blas.at_most(run.threads):
            results = self.runs.run(values, run, donated, again=request.again)
            for i in self._known:
                results[i] = boundary.borrow(results[i])
            contents = self.state.settled()
            leaving = (element(results, path) for path in chain(keep, wanted.values()))
            out = boundary.Exit(run.counters, self.state.arrays(contents), held.not_lent, leaving)
            kept = out.keep(results, keep)
            # Of results that share memory, the first stays where it is: the whole of what has been donated has reserve.
            order = sorted(wanted, key=lambda name: _room_first(element(results, wanted[name]))) if donated else wanted
            released = {name: _released(out, name, results, wanted[name]) for name in order}
            self.state.keep(contents)
        return {name: released[name] for name in wanted} if donated else released, kept

    def _wanted(self, outputs: Iterable[str] | None) -> Mapping[str, Path]:
        if outputs is None:
            return self._wholes
        chosen = _names(outputs, "outputs", "IRC411")
        for name in chosen:
            if name not in self._results:
                raise Error("IRC411", f"the model has no output {name!r}; {suggestion(name, self._results)}")
        return {name: self._results[name].path for name in chosen}


def _released(out: boundary.Exit, name: str, results: Sequence[Any], path: Path) -> Any:
    try:
        return out.release(element(results, path), path)
    except Error as error:
        raise Error(error.code, error.message, error.where or f"output {name!r}") from error


def _room_first(result: Any) -> int:
    """Sort key of results: those in rooms come first, the largest first."""
    return 0 if room_of(result) is None else -result.nbytes


def _names(names: Iterable[str], what: str, code: str) -> list[str]:
    """``names``, the argument called ``what``, as a list; Error ``code`` if it is no collection of names."""
    if isinstance(names, str):
        raise Error(code, f"{what} must be a list of names, not the string {names!r}")
    try:
        found = list(names)
    except TypeError:
        raise Error(code, f"{what} must be a list of names, not {describe(names)}") from None
    for name in found:
        if not isinstance(name, str):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error(code, f"{what} must be a list of names; there is {describe(name)} in it")
    return found
