"""Compiled models: what a user holds and runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, NoReturn

from irc.errors import Error, suggestion
from irc.ir import Graph, Module
from irc.ir.bulk import no_collection
from irc.ir.declared import completed, declared_type
from irc.ir.fixed_sizes import fixed_sizes, sizes_text
from irc.runtime import boundary
from irc.runtime.arguments import Argument
from irc.runtime.described import described
from irc.runtime.execution import Counters, Run
from irc.runtime.guards.bounds import Guarded
from irc.runtime.guards.limits import Limits, Warden, check_limits
from irc.runtime.intake import NOTHING, Held, Intake
from irc.runtime.kernels.scratch import OwnScratch
from irc.runtime.memory.arena import PlannedRuns
from irc.runtime.memory.room import room_of
from irc.runtime.objects import State, check_known
from irc.runtime.options import DEFAULTS, Options, check_threads
from irc.runtime.plan import Lowerer
from irc.runtime.profiles.profile import Profile, Profiler
from irc.runtime.results import Path, element, results_of
from irc.runtime.threads import blas
from irc.runtime.values import Array, describe

Feeds = Mapping[str, Any]


class CompiledModel:
    """A graph that is ready to run. Several threads may run one model at once.

    Args:
        graph: the graph, or a module, whose main graph is then meant. It must not be changed afterwards.
        report: what compiling it did; any object with ``to_dict()``, or None.
        options: how it runs.

    Attributes:
        graph: the (optimised) graph.
        module: the module it is part of.
        report: as given.
        options: as given.
        inputs: what `run` takes, in order.
        outputs: what `run` returns, in order; sizes that irc does not know are as the model declares them.
        sizes: of named dimensions of the inputs, which it was compiled for: it takes no others.
        counters: what the last run to finish did.

    Raises:
        Error: IRC3xx, the graph cannot be lowered: an operator has no kernel, or an attribute is wrong.
    """

    def __init__(self, graph: Graph | Module, report: Any = None, options: Options = DEFAULTS) -> None:
        self.module = graph if isinstance(graph, Module) else graph.module or Module(graph)
        self.graph = graph.main if isinstance(graph, Module) else graph
        self.report = report
        if not isinstance(options, Options):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error("IRC419", f"options are an irc.Options, not {describe(options)}")
        self.options = options
        check_known(self.module, self.graph)
        self._defaults = self.module.defaults if self.graph is self.module.main else {}
        self._state = State(self.module, self.graph)
        self._order = tuple(v.name for v in self.graph.inputs)
        given = [v for v in self.graph.inputs if v.name not in self._state.objects]
        self.inputs = tuple(Argument(v.name, v.type, v.name in self._defaults) for v in given)
        said = self.module.metadata if self.graph is self.module.main else {}
        self.outputs = tuple(Argument(v.name, completed(v.type, declared_type(v, said))) for v in self.graph.outputs)
        self.sizes = fixed_sizes(said)
        self._results = results_of(self.outputs)
        self._wholes = {output.name: self._results[output.name].path for output in self.outputs}
        self.counters = Counters()
        with no_collection():
            lowerer = Lowerer(self.graph, guarded=True, bulk=options.bulk)
        self._runs = PlannedRuns(lowerer)
        self._writes, self._known = lowerer.writes, lowerer.known
        self._intake = Intake(self._order, self.inputs, self._defaults, self._state.objects, self._writes.inputs)

    def run(
        self,
        feeds: Feeds,
        outputs: Iterable[str] | None = None,
        *,
        donate: Iterable[str] = (),
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Run the model.

        Args:
            feeds: input name -> value. Tensors are arrays of exactly the stated element type (Python numbers and
                lists of them are converted where nothing is lost), sequences are lists, optionals the value or None,
                maps are dicts. Nothing in it is changed, except arrays that are donated.
            outputs: names of the outputs wanted; all by default. ``output.1`` is an element of one that is a tuple.
            donate: names of inputs whose arrays the caller gives up: their contents are undefined afterwards, and
                results may use their memory.
            limits: how many steps, how much memory and how long the run may take: for models that nobody vouches
                for. Without limits they cost nothing.
            threads: how many threads may work at it, instead of those of the model's options.

        Returns:
            Output name -> value. No array in it shares memory with anything else: not with inputs that were not
            donated, not with the model, not with another output, not with results of other runs.

        Raises:
            Error: IRC410 an input is missing or unknown; IRC411 an unknown output; IRC412 to IRC415 a value does not
                have the input's type and shape; IRC416 a donation that is not possible; IRC419 a number of threads
                that is none; IRC441 to IRC443, a limit is
                reached; other IRC4xx, an operator failed: its node, inputs and reason. The model can be run again.
        """
        return self._run(feeds, self._wanted(outputs), _donated(donate), limits, threads=threads)[0]

    def profile(
        self,
        feeds: Feeds,
        outputs: Iterable[str] | None = None,
        *,
        donate: Iterable[str] = (),
        threads: int | None = None,
    ) -> Profile:
        """Run the model as `run` does, with the same arguments, and say where time and memory went.

        The first run of a model reads weights and finds out how to go about shapes like these, and a second one plans
        memory: to see what all later runs do, run it twice before.

        Returns:
            The profile; its ``outputs`` are what `run` returns.
        """
        profiler = Profiler()
        results, _ = self._run(feeds, self._wanted(outputs), _donated(donate), None, profiler=profiler, threads=threads)
        return profiler.finish(results)

    def _step(
        self,
        feeds: Feeds,
        held: Held,
        outputs: Iterable[str] | None,
        keep: Sequence[Path],
        counters: Counters,
        *,
        limits: Limits | None,
        threads: int | None,
        again: bool,
    ) -> tuple[dict[str, Any], list[Array]]:
        """A step of a `Session`: as `run`, and besides the results at ``keep``, read-only.

        Args:
            feeds: as for `run`.
            held: what inputs are that are not in ``feeds``: outputs of an earlier step that were kept. They are taken
                as they are, and extended in place where nobody else has done so; those that are lent are as donated.
            outputs: as for `run`.
            keep: where the results are to give as arrays that nobody may change.
            counters: where to count what is done.
            limits: as for `run`.
            threads: as for `run`.
            again: whether inputs of the same shapes may come again. (Caches that grow do not.)
        """
        return self._run(feeds, self._wanted(outputs), (), limits, held, keep, counters, again=again, threads=threads)

    def _run(
        self,
        feeds: Feeds,
        wanted: Mapping[str, Path],
        donate: Collection[str],
        limits: Limits | None,
        held: Held = NOTHING,
        keep: Sequence[Path] = (),
        counters: Counters | None = None,
        profiler: Profiler | None = None,
        again: bool = True,
        threads: int | None = None,
    ) -> tuple[dict[str, Any], list[Array]]:
        counters = counters or Counters()
        if limits is not None:
            check_limits(limits)
        if threads is not None:
            threads = check_threads(threads)
        try:
            values = self._intake.take(feeds, donate, held, counters)
        except Error as error:
            if error.code != "IRC413" or not self.sizes:
                raise
            message = f"{error.message}; the model was compiled for {sizes_text(self.sizes)}"
            raise Error(error.code, message, error.where) from None
        warden = None if limits is None else Warden(limits, values)
        if profiler is not None:
            profiler.start(values, counters)
        given_up = donate if held.loan is None else held.loan.arrays  # sessions do not donate
        donated = [i for i, name in enumerate(self._order) if name in given_up] if given_up else ()
        run = Run(counters, warden or profiler, threads or self.options.threads)
        guarded = Guarded(warden)
        released, kept = self._state.turn(
            partial(self._compute, values, donated, wanted, held, keep, run, guarded, again=again)
        )
        self.counters = counters
        return released, kept

    def _compute(
        self,
        values: Sequence[Any],
        donated: Collection[int],
        wanted: Mapping[str, Path],
        held: Held,
        keep: Sequence[Path],
        run: Run,
        guarded: Guarded,
        *,
        again: bool,
    ) -> tuple[dict[str, Any], list[Array]]:
        if held.loan is not None:
            held.loan.take()
        with guarded, OwnScratch(), blas.at_most(run.threads):
            results = self._runs.run(values, run, donated, again=again)
            for i in self._known:
                results[i] = boundary.borrow(results[i])
            contents = self._state.settled()
            leaving = (element(results, path) for path in chain(keep, wanted.values()))
            out = boundary.Exit(run.counters, self._state.arrays(contents), held.kept, leaving)
            kept = out.keep(results, keep)
            # Of results that share memory, the first stays where it is: the whole of what has been donated has reserve.
            order = sorted(wanted, key=lambda name: _room_first(element(results, wanted[name]))) if donated else wanted
            released = {name: _released(out, name, results, wanted[name]) for name in order}
            self._state.keep(contents)
        return {name: released[name] for name in wanted} if donated else released, kept

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a ``.irc`` file, whole or not at all; `irc.load` reads it.

        A model that keeps something from run to run is written as the last whole run left it: the loaded one goes on
        from there. (What compiles ``model.module`` begins anew, with what was imported.)

        Raises:
            Error: IRC501 if the file cannot be written, IRC503 if its name ends in ``.onnx``; of a model that keeps
                something, IRC142 or IRC143 if a file cannot hold it, IRC436 in the middle of a run of this thread.
        """
        from irc.runtime.files.file import save

        state = self._state
        save(self, path, state.turn(lambda: described(state.objects)) if state.changes else {})

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "compiled models are neither copied nor pickled: threads may run one model at once, "
            "and another process may irc.load the file that model.save writes"
        )

    def __repr__(self) -> str:
        def several(arguments: Iterable[Argument]) -> str:
            return ", ".join(f"{a.name}: {a.type}" for a in arguments)

        return f"<CompiledModel ({several(self.inputs)}) -> ({several(self.outputs)})>"

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
    """What sorts results so that those in rooms come first, the largest first."""
    return 0 if room_of(result) is None else -result.nbytes


def _names(names: Iterable[str], what: str, code: str) -> list[str]:
    """``names``, the argument ``what``, as a list; Error ``code`` if they are none."""
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


def _donated(donate: Iterable[str]) -> frozenset[str]:
    return frozenset(_names(donate, "donate", "IRC416"))
