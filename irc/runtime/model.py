"""Compiled models: what a user holds and runs.

A model keeps nothing of a run, except attributes of TorchScript objects: so it runs again after an error, and on
several threads at once. Its graph is verified when the model is made, and must not change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from importlib.util import find_spec
from os import PathLike, fsdecode
from typing import Any, NoReturn

from numpy import ndarray

from irc.alias import Analyses
from irc.errors import Error
from irc.ir import CONSTANT, GROUP, Graph, Module, Tensor
from irc.ir.clone import verify_given
from irc.ir.declarations import completed, declared_type, fixed_sizes, sizes_text
from irc.ir.graph import gc_paused
from irc.ops.record import MOVING
from irc.ops.registry import record
from irc.runtime.arena import PlannedRuns, RunKey
from irc.runtime.arguments import Argument, Path, Sizes, accept, named, results_of
from irc.runtime.backends import AUTO, Backend, find_backend
from irc.runtime.binding import reachable_nodes, unsupported
from irc.runtime.boundary import NOTHING, Held, Signature, detach, left_out, read_only_view
from irc.runtime.bounds import CURRENT, ERRORS, IGNORED, Share, in_own_scope, in_turn
from irc.runtime.execution import Counters, Run
from irc.runtime.limits import LimitGuard, Limits
from irc.runtime.objects import State, check_known, snapshot
from irc.runtime.plan import Lowerer, is_unknown, part_for, unknown_nodes
from irc.runtime.profile import Profile, Profiler
from irc.runtime.threads import MOST, one_thread, share, usable_processors
from irc.runtime.values import Array, describe, integer, is_mapping, typed
from irc.support.formatting import printable
from irc.support.lazy import provided
from irc.support.remarks import Remark


@dataclass(frozen=True)
class Options:
    """How a compiled model runs. Results are the same whatever they are.

    Args:
        threads: how many threads may work at one run, that of the caller included. Large matrix products
            are made in parts, which are shared among them. None: as many as pay.

    Raises:
        Error: IRC419 if it is not positive, or above 64.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "threads", check_number("threads", self.threads, MOST))


def sharing(threads: int | None) -> Share:
    """The work sharing of ``threads`` threads; None: as many as pay. Error IRC419 for too many."""
    number = check_number("threads", threads, MOST) or usable_processors()
    if number == 1:
        return in_turn
    return partial(share, threads=number)


def check_number(name: str, value: Any, most: int | None = None) -> int | None:
    """``value``; Error IRC419, for ``name``, unless a positive integer up to ``most``, or None."""
    if value is None:
        return None
    number = integer(value)
    if number is None or number < 1 or (most is not None and number > most):
        limit = "" if most is None else f" of at most {most}"
        raise Error("IRC419", f"{name} must be a positive integer{limit}, or None, not {value!r}")
    return number


DEFAULTS = Options()


MAX_SIGNATURES = 16
"""Signatures of calls that are kept; a decoder has one for all its steps."""

Feeds = Mapping[str, Any]

Answer = tuple[dict[str, Any], list[Array], Counters]
"""What one run gave: the results that were wanted, by name, and those to keep; what it did."""


def _may_multiply(kind: str) -> bool:
    """Whether kernels of ``kind`` may call the BLAS; a graph without any need not set the BLAS's threads."""
    found = record(kind)
    return not (found.pointwise or found.movement in MOVING or kind in (CONSTANT, GROUP))


class CompiledModel:
    """A graph that is ready to run. Several threads may run one model at once.

    Args:
        graph: the graph, or a module, whose main graph is then meant. It must not be changed afterwards.
        report: what compiling it did; any object with ``to_dict()``, or None.
        options: how it runs.
        backend: what computes fusion groups: ``"auto"``, ``"numpy"``, the name of another installed one, or the
            backend itself.
        is_verified: whether the graph, or module, has just been verified; irc's own.
        analyses: alias analyses of the graph and its functions that exist already, and are given up; irc's own.

    Attributes:
        graph: the (optimised) graph.
        module: the module it is part of.
        report: as given.
        inputs: what `run` takes, in order.
        outputs: what `run` returns, in order; sizes that irc does not know are as the model declares them.
        backend: what compiles; None for NumPy, operator by operator.
        sizes: of named dimensions of the inputs, which it was compiled for: it takes no others.
        options: how it runs, unless the arguments of a run say otherwise.
        counters: what the last run to finish did.
        remarks: why something was not fused, not in place, copied, kept; with the remedy. What passes have not recorded
            is found out when it is first asked for.
        runs: the plan, and the memory planned for it; irc's own, as is ``state``.
        state: the objects that it keeps from run to run.
        packed: what a file holds besides; irc's own.

    Raises:
        Error: IRC2xx, the graph or its module breaks a rule of the IR; IRC3xx, the graph cannot be lowered: an operator
            has no kernel, or an attribute is wrong.
    """

    def __init__(
        self,
        graph: Graph | Module,
        report: Any = None,
        options: Options = DEFAULTS,
        backend: str | Backend = AUTO,
        *,
        is_verified: bool = False,
        analyses: Analyses | None = None,
    ) -> None:
        if not is_verified:
            verify_given(graph, operators=find_spec("onnx") is not None)  # schemas need it
        self.module = graph if isinstance(graph, Module) else graph.module or Module(graph)
        self.graph = graph.main if isinstance(graph, Module) else graph
        self.report = report
        if not isinstance(options, Options):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error("IRC419", f"options are an irc.Options, not {describe(options)}")
        check_known(self.module, self.graph)
        is_main = self.graph is self.module.main
        defaults = self.module.defaults if is_main else {}
        said = self.module.metadata if is_main else {}
        analyses = analyses or Analyses(self.module)
        self.state = State(self.module, self.graph, analyses)
        objects = self.state.objects
        given = [v for v in self.graph.inputs if v.name not in objects]
        self.inputs = tuple(Argument(v.name, v.type, v.name in defaults) for v in given)
        self.outputs = tuple(Argument(v.name, completed(v.type, declared_type(v, said))) for v in self.graph.outputs)
        self.sizes = fixed_sizes(said)
        self.backend = find_backend(backend)
        self.options = options
        self.counters = Counters()
        self.packed: object = None
        self.runs = self._lowered(self.graph, analyses)
        self._parts: dict[frozenset[int], PlannedRuns] | None = {} if any(map(is_unknown, self.graph.nodes)) else None
        self._results = results_of(self.outputs)
        self._defaults = defaults
        self._share = sharing(options.threads)
        self._may_multiply = any(_may_multiply(node.kind) for node in reachable_nodes(self.graph))
        self._signatures: dict[Any, Signature] = {}
        # Wanted outputs -> signature, input arrays and key of the latest run that another may be like: most repeat it.
        self._usual: dict[tuple[str, ...] | None, tuple[Signature, list[Any], RunKey]] = {}

    def _lowered(self, graph: Graph, analyses: Analyses | None = None) -> PlannedRuns:
        with gc_paused():
            return PlannedRuns(Lowerer(graph, True, self.backend, analyses))

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
        # Most runs are like the one before. They are made here, without the calls and checks of `execute`.
        names = None if outputs is None else _names(outputs, "outputs", "IRC411")
        usual = self._usual.get(names)
        is_plain = feeds.__class__ is dict and donate.__class__ is tuple and limits is None and threads is None
        if usual is None or not is_plain or donate:
            return self.execute(feeds, names, donate, limits, threads)[0]
        signature, arrays, key = usual
        if len(feeds) != len(arrays):
            return self.execute(feeds, names)[0]
        values = signature.values.copy()
        for i, name, dtype, shape in arrays:
            value = feeds.get(name)
            if type(value) is not ndarray or value.dtype is not dtype or value.shape != shape:
                return self.execute(feeds, names)[0]
            values[i] = view = value.view()
            view.setflags(False)  # type: ignore[reportCallIssue]  # a keyword takes three times as long
        run, scope, errors = Run(), CURRENT.scope, ERRORS.get()
        if scope.is_busy:  # in the middle of another run
            return self.execute(feeds, names)[0]
        share = scope.share
        # As `in_own_scope`. From here to `try` nothing is called, so no signal handler can raise in between.
        scope.share, scope.is_busy = self._share, True
        try:
            ERRORS.set(IGNORED)
            results = signature.compute(values, run, key)
            found, _ = detach(results, signature.wanted, run, NOTHING)
            self.counters = run
            return found
        finally:
            scope.share, scope.is_busy = share, False
            ERRORS.set(errors)

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
        return profiler.finish(self.execute(feeds, outputs, donate, None, threads, profiler)[0])

    def execute(
        self,
        feeds: Mapping[str, Any],
        outputs: Iterable[str] | None = None,
        donate: Iterable[str] = (),
        limits: Limits | None = None,
        threads: int | None = None,
        profiler: Profiler | None = None,
        held: Held = NOTHING,
    ) -> Answer:
        """Run the model for `run`, `profile` and sessions, as `docs/explanation/runtime.md` describes.

        Args:
            feeds: as of `run`, and so are the next four; for a session, with what it holds.
            outputs: names of the results wanted.
            donate: names of inputs that may be overwritten.
            limits: of the run.
            threads: how many may work at it.
            profiler: what follows the run, if anything does.
            held: what a session gives to the run, and keeps of it.
        """
        if not isinstance(feeds, dict) and not is_mapping(feeds):
            raise Error("IRC410", f"inputs must be given as a dict from name to value, not {describe(feeds)}")
        if not isinstance(limits, Limits | None):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error("IRC440", f"limits are an irc.Limits, not {describe(limits)}")
        names = None if outputs is None else _names(outputs, "outputs", "IRC411")
        key = tuple(feeds), names, _names(donate, "donate", "IRC416"), held.keep
        signature = self._signatures.get(key) or self._signature(*key)
        share = self._share if threads is None else sharing(threads)
        run = Run()
        run.observer, run.again = profiler, held is not NOTHING
        try:
            values, key = signature.bind(feeds, held, run)
        except Error as error:
            if error.code != "IRC413" or not self.sizes:
                raise
            message = f"{error.message}; the model was compiled for {sizes_text(self.sizes)}"
            raise Error(error.code, message, error.where) from None
        guard = None
        if limits is not None:
            guard = run.observer = LimitGuard(limits, values)
            share = in_turn
        if profiler is not None:
            profiler.start(signature.runs.lowerer.graph, values, run)
        if signature.recurs and signature.likes:
            like = signature.likes[0]
            self._usual[names] = signature, [(i, name, *like.key[i]) for i, name, *_ in like.inputs], like.key
        task = self._compute, signature, values, key, run, held
        results, kept = self.state.turn(in_own_scope, guard, share, *task)
        run.observer = None  # which refers to the values that the run was given
        self.counters = run
        return results, kept, run

    def _compute(
        self, signature: Signature, values: list[Any], key: RunKey | None, run: Run, held: Held
    ) -> tuple[dict[str, Any], list[Array]]:
        """The results that are wanted, and those to keep."""
        state = self.state
        if held.donated:
            held.begin()
        results = signature.compute(values, run, key)
        for i in signature.runs.lowerer.known:
            results[i] = read_only_view(results[i])
        if not state.changes:
            return detach(results, signature.wanted, run, held, signature.donated_at)
        contents = state.settled()
        found = detach(results, signature.wanted, run, held, signature.donated_at, state.arrays(contents))
        state.keep(contents)
        return found

    def _signature(
        self, given: tuple[str, ...], outputs: tuple[str, ...] | None, donate: tuple[str, ...], keep: tuple[Path, ...]
    ) -> Signature:
        """What these names mean, from now on kept for other calls.

        Raises:
            Error: IRC323 these outputs need unknown operators; IRC410 an input is missing or unknown; IRC411 an unknown
                output; IRC416 one is donated that is not given; others if a default is not a value of its input.
        """
        names = [o.name for o in self.outputs] if outputs is None else outputs
        wanted = {name: named("IRC411", name, self._results, "output").path for name in names}
        runs = self.runs
        if self._parts is not None:
            if outputs is None:
                raise unsupported(unknown_nodes(self.graph))
            positions = frozenset(path[0] for path in (*wanted.values(), *keep))
            if positions not in self._parts:
                self._parts[positions] = self._lowered(part_for(self.graph, positions))
            runs = self._parts[positions]
        known = {a.name: a for a in self.inputs}
        sizes: Sizes = {}
        defaults: dict[str, Any] = {}
        for a in left_out(known, given, donate):
            default = self._defaults[a.name]
            defaults[a.name] = accept(default.numpy() if isinstance(default, Tensor) else default, a, sizes)
        absent = {name: typed(read_only_view(value), known[name].type) for name, value in defaults.items()}
        values = {**self.state.objects, **absent}
        places = [(i, value.name) for i, value in enumerate(self.graph.inputs)]
        written = runs.lowerer.writes.inputs.intersection(known).difference(donate)
        special = donate or written or keep or self.state.changes or runs.lowerer.known
        found = Signature(
            runs,
            partial(one_thread().call, runs.run) if self._may_multiply else runs.run,
            wanted,
            values=[values.get(name) for _, name in places],
            passed=tuple([(i, known[name]) for i, name in places if name in given]),
            donated_at=tuple([i for i, name in places if name in donate]),
            copied=tuple([i for i, name in places if name in written]),
            defaults=defaults,
            sizes=sizes,
            recurs=not special and all(len(path) == 1 for path in wanted.values()),
        )
        if len(self._signatures) >= MAX_SIGNATURES:
            self._signatures.clear()
            self._usual.clear()
        self._signatures[given, outputs, donate, keep] = found
        return found

    @cached_property
    def remarks(self) -> list[Remark]:
        """Why something was not fused, not in place, copied, kept; what is in the way, and the remedy."""
        return provided("explain").remarks(self)

    def save(self, path: str | PathLike[str], *, packed: bool = False) -> None:
        """Write the model to a ``.irc`` file, whole or not at all; `irc.load` reads it.

        Args:
            path: of the file.
            packed: whether to write, too, the weights of convolutions as runs so far have packed them: what loads the
                file on such a processor, with this version of irc, maps them instead of packing them in its first run.

        A model that keeps something from run to run is written as the last whole run left it: the loaded one goes on
        from there. (What compiles ``model.module`` starts afresh, with what was imported.)

        Raises:
            Error: IRC501 if the file cannot be written, IRC503 if its name ends in ``.onnx``; of a model that keeps
                something, IRC142 or IRC143 if a file cannot hold it, IRC436 in the middle of a run of this thread.
        """
        from irc.runtime.file import save

        state = self.state
        save(self, path, state.turn(snapshot, state.objects) if state.changes else {}, packed)

    def __reduce__(self) -> NoReturn:
        remedy = "threads may run one model at once, and another process may irc.load the file that model.save writes"
        raise TypeError(f"compiled models are neither copied nor pickled: {remedy}")

    def __repr__(self) -> str:
        def several(arguments: Iterable[Argument]) -> str:
            return ", ".join(f"{a.name}: {a.type}" for a in arguments)

        return f"<CompiledModel ({several(self.inputs)}) -> ({several(self.outputs)})>"

    def _repr_html_(self) -> str:
        from irc.ir.drawing import notebook_html

        report = self.report._repr_html_() if hasattr(self.report, "_repr_html_") else ""
        return f"<p><code>{escape(printable(repr(self)))}</code></p>{report}{notebook_html(self.graph)}"


def load(path: str | PathLike[str], options: Options = DEFAULTS, *, backend: str | Backend = AUTO) -> CompiledModel:
    """Read a model saved by `CompiledModel.save`. Weights are mapped: pages load when used.

    The file must not be changed while the model lives. (`save` never changes a file: it puts a new one in its place.)

    Args:
        path: of the file.
        options: how the model runs; they are not kept in the file.
        backend: what computes fusion groups, as of `CompiledModel`; files name none.

    Raises:
        Error: IRC502 the file cannot be read; IRC510 it is no ``.irc`` file; IRC511 a newer irc wrote it; IRC512 it
            is truncated; IRC513 it is damaged or inconsistent; others if its graph cannot be lowered.
    """
    from irc.runtime.file import read  # late, as in `save`: most models are never in a file

    module, report, packed = read(path)
    try:
        model = CompiledModel(module, report, options, backend, is_verified=True)
        if model.backend is not None:
            model.packed = model.backend.use_packed(module.weights, packed)
        return model
    except Error as error:
        raise Error(error.code, error.message, ", ".join(filter(None, (fsdecode(path), error.where)))) from error


def _names(names: Iterable[str], what: str, code: str) -> tuple[str, ...]:
    """``names``, the argument ``what``, as a tuple; Error ``code`` if it is no collection of names."""
    if isinstance(names, str):
        raise Error(code, f"{what} must be a list of names, not the string {names!r}")
    try:
        found = tuple(names)
    except TypeError:
        raise Error(code, f"{what} must be a list of names, not {describe(names)}") from None
    for name in found:
        if not isinstance(name, str):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error(code, f"{what} must be a list of names; there is {describe(name)} in it")
    return found
