"""Running a graph from the values that a caller gives to those that it gets.

`Executable.run` is the way: look up what the names of the call mean, bind inputs (`irc.runtime.inputs`), run the plan
(`irc.runtime.arena`), detach outputs (`irc.runtime.outputs`). `docs/runtime.md` follows it line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.errors import Error, suggestion
from irc.ir.bulk import no_collection
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.ops.movers import MOVERS
from irc.ir.ops.pointwise import POINTWISE
from irc.runtime.arena import PlannedRuns
from irc.runtime.binding import reachable_nodes, unsupported
from irc.runtime.bounds import Share, in_own_scope, in_turn
from irc.runtime.execution import Counters, Run
from irc.runtime.guards.limits import LimitGuard, Limits, check_limits
from irc.runtime.inputs import NOTHING, Binding, Held, Inputs
from irc.runtime.objects import State
from irc.runtime.options import Options, check_threads
from irc.runtime.outputs import detach, read_only_view
from irc.runtime.parts import has_unknown, part_for, unknown_nodes
from irc.runtime.plan import Lowerer
from irc.runtime.results import Path, results_of
from irc.runtime.threads import blas, workers
from irc.runtime.threads.processors import usable_processors
from irc.runtime.values import Array, describe, is_mapping

if TYPE_CHECKING:
    from irc.ir import Graph, Module
    from irc.runtime.arguments import Argument
    from irc.runtime.backends import Backend
    from irc.runtime.profiles.profile import Profiler

MAX_SIGNATURES = 16
"""Signatures of calls that are kept; a decoder has one for all its steps."""


_NEVER_MULTIPLYING = POINTWISE | MOVERS | {CONSTANT, GROUP}
"""Operators, members of groups among them, whose kernels never call the BLAS: small graphs need not set its threads."""


class _Signature(NamedTuple):
    """What the names of a call mean.

    Attributes:
        binding: where its inputs go.
        wanted: the paths of the results that it wants, by name.
        donated: the positions of the inputs that may be overwritten.
    """

    binding: Binding
    wanted: Mapping[str, Path]
    donated: tuple[int, ...]


Answer = tuple[dict[str, Any], list[Array], Counters]
"""What one run gave: the results that were wanted, by name, and those to keep; what it did."""


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

        backend: what may compile fusion groups and steps.

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
        backend: Backend | None = None,
    ) -> None:
        self.options = options
        self._graph = graph
        self._part = partial(
            Executable,
            module=module,
            inputs=inputs,
            outputs=outputs,
            defaults=defaults,
            sizes=sizes,
            options=options,
            backend=backend,
        )
        self._parts: dict[frozenset[int], Executable] | None = {} if has_unknown(graph) else None
        self.state = State(module, graph)
        self.counters = Counters()
        with no_collection():
            lowerer = Lowerer(graph, guarded=True, bulk=options.bulk, backend=backend)
        self.runs = PlannedRuns(lowerer)
        self.writes, self._known = lowerer.writes, lowerer.known
        self._results = results_of(outputs)
        self._wholes = {output.name: self._results[output.name].path for output in outputs}
        order = [v.name for v in graph.inputs]
        self._inputs = Inputs(order, inputs, defaults, self.state.objects, self.writes.inputs, sizes)
        self._share = _sharing(options.threads)
        self._may_multiply = any(node.kind not in _NEVER_MULTIPLYING for node in reachable_nodes(graph))
        self._signatures: dict[Any, _Signature] = {}

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Iterable[str] | None = None,
        donate: Iterable[str] = (),
        limits: Limits | None = None,
        threads: int | None = None,
        profiler: Profiler | None = None,
        held: Held = NOTHING,
    ) -> Answer:
        """Run the graph. Several threads may run it at once.

        Args:
            feeds: input name -> value, as for `irc.CompiledModel.run`, and so are the next four.
            outputs: names of the results wanted; None for all outputs.
            donate: names of inputs that may be overwritten.
            limits: of the run; None for none.
            threads: how many threads may work at it, instead of the number in the model's options.
            profiler: what follows the run, if anything does.
            held: what a session has kept of its last step, and is to keep of this one.

        Raises:
            Error: as `irc.CompiledModel.run`.
        """
        if not isinstance(feeds, dict) and not is_mapping(feeds):
            raise Error("IRC410", f"inputs must be given as a dict from name to value, not {describe(feeds)}")
        chosen = None if outputs is None else _names(outputs, "outputs", "IRC411")
        given_up = () if isinstance(donate, tuple) and not donate else _names(donate, "donate", "IRC416")
        if limits is not None:
            check_limits(limits)
        share = self._share if threads is None else _sharing(check_threads(threads))
        if self._parts is not None:
            part = self._part_for(self._parts, chosen, held.keep)
            answer = part.run(feeds, chosen, given_up, limits, threads, profiler, held)
            self.counters = part.counters
            return answer
        key = tuple(feeds), chosen, given_up, held.names
        signature = self._signatures.get(key)
        if signature is None:
            signature = self._signature(*key)
        binding, wanted, donated = signature
        counters, guard = Counters(), None
        values = self._inputs.bind(binding, feeds, held, counters)
        if limits is not None:
            guard, share = LimitGuard(limits, values), in_turn
        if profiler is not None:
            profiler.start(self._graph, values, counters)
        if held.loan is not None:
            donated = self._inputs.places(held.lent)
        run = Run(counters, guard or profiler, threads or self.options.threads, again=held is not NOTHING)
        if self.state.changes:
            compute = partial(self._compute, guard, share, values, run, donated, wanted, held)
            results, kept = self.state.turn(compute)
        else:
            results, kept = self._compute(guard, share, values, run, donated, wanted, held)
        self.counters = counters
        return results, kept, counters

    def _compute(
        self,
        guard: LimitGuard | None,
        share: Share,
        values: Sequence[Any],
        run: Run,
        donated: Sequence[int],
        wanted: Mapping[str, Path],
        held: Held,
    ) -> tuple[dict[str, Any], list[Array]]:
        """The results that are wanted, and those to keep."""
        if held.loan is not None:
            held.loan.take()
        if self._may_multiply:
            call = blas.one_thread().call
            results = in_own_scope(guard, share, call, self.runs.run, values, run, donated, held.again)
        else:
            results = in_own_scope(guard, share, self.runs.run, values, run, donated, held.again)
        for i in self._known:
            results[i] = read_only_view(results[i])
        if guard is None and not self.state.changes:
            return detach(results, wanted, run.counters, held, donated)
        contents = self.state.settled() if self.state.changes else []
        of_model = self.state.arrays(contents) if self.state.changes else []
        found = in_own_scope(guard, share, detach, results, wanted, run.counters, held, donated, of_model)
        if self.state.changes:
            self.state.keep(contents)
        return found

    def _part_for(
        self, parts: dict[frozenset[int], Executable], outputs: tuple[str, ...] | None, keep: Iterable[Path]
    ) -> Executable:
        """What computes these results alone; Error IRC323 if they need unknown operators, or all are wanted."""
        if outputs is None:
            raise unsupported(unknown_nodes(self._graph))
        positions = frozenset(path[0] for path in (*map(self._path, outputs), *keep))
        part = parts.get(positions)
        if part is None:
            part = parts[positions] = self._part(part_for(self._graph, positions))
        return part

    def _signature(
        self, given: tuple[str, ...], outputs: tuple[str, ...] | None, donate: tuple[str, ...], held: tuple[str, ...]
    ) -> _Signature:
        """What these names mean, from now on kept for other calls.

        Raises:
            Error: IRC410 an input is missing or unknown; IRC411 an unknown output; IRC416 one is donated that is not
                given.
        """
        wanted = self._wholes if outputs is None else {name: self._path(name) for name in outputs}
        found = _Signature(self._inputs.binding(given, donate, held), wanted, self._inputs.places(donate))
        if len(self._signatures) >= MAX_SIGNATURES:
            self._signatures.clear()
        self._signatures[given, outputs, donate, held] = found
        return found

    def _path(self, output: str) -> Path:
        if output not in self._results:
            raise Error("IRC411", f"the model has no output {output!r}; {suggestion(output, self._results)}")
        return self._results[output].path


def _sharing(threads: int | None) -> Share:
    """What does work on so many threads; None: on as many as pay."""
    number = usable_processors() if threads is None else threads
    if number == 1:
        return in_turn
    return partial(workers.share, threads=number)


def _names(names: Iterable[str], what: str, code: str) -> tuple[str, ...]:
    """``names``, the argument called ``what``, as a tuple; Error ``code`` if it is no collection of names."""
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
