"""Compiled models: what a user holds and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fsdecode
from typing import Any, NoReturn

from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.declared_outputs import completed, declared_type
from irc.ir.fixed_sizes import fixed_sizes
from irc.runtime.arguments import Argument
from irc.runtime.backends import AUTO, Backend, find_backend
from irc.runtime.executable import Executable
from irc.runtime.execution import Counters
from irc.runtime.guards.limits import Limits
from irc.runtime.objects import check_known
from irc.runtime.options import DEFAULTS, Options
from irc.runtime.profiles.profile import Profile, Profiler
from irc.runtime.snapshot import snapshot
from irc.runtime.values import describe

Feeds = Mapping[str, Any]


class CompiledModel:
    """A graph that is ready to run. Several threads may run one model at once.

    Args:
        graph: the graph, or a module, whose main graph is then meant. It must not be changed afterwards.
        report: what compiling it did; any object with ``to_dict()``, or None.
        options: how it runs.
        backend: what computes fusion groups: ``"auto"``, ``"numpy"``, the name of another installed one, or the
            backend itself.

    Attributes:
        graph: the (optimised) graph.
        module: the module it is part of.
        report: as given.
        inputs: what `run` takes, in order.
        outputs: what `run` returns, in order; sizes that irc does not know are as the model declares them.
        backend: what compiles; None for NumPy, operator by operator.
        sizes: of named dimensions of the inputs, which it was compiled for: it takes no others.
        executable: what runs it; irc's own.

    Raises:
        Error: IRC3xx, the graph cannot be lowered: an operator has no kernel, or an attribute is wrong.
    """

    def __init__(
        self,
        graph: Graph | Module,
        report: Any = None,
        options: Options = DEFAULTS,
        backend: str | Backend = AUTO,
    ) -> None:
        self.module = graph if isinstance(graph, Module) else graph.module or Module(graph)
        self.graph = graph.main if isinstance(graph, Module) else graph
        self.report = report
        if not isinstance(options, Options):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error("IRC419", f"options are an irc.Options, not {describe(options)}")
        check_known(self.module, self.graph)
        is_main = self.graph is self.module.main
        defaults = self.module.defaults if is_main else {}
        said = self.module.metadata if is_main else {}
        objects = self.module.objects_of(self.graph)
        given = [v for v in self.graph.inputs if v.name not in objects]
        self.inputs = tuple(Argument(v.name, v.type, v.name in defaults) for v in given)
        self.outputs = tuple(Argument(v.name, completed(v.type, declared_type(v, said))) for v in self.graph.outputs)
        self.sizes = fixed_sizes(said)
        self.backend = find_backend(backend)
        self.executable = Executable(
            self.graph, self.module, self.inputs, self.outputs, defaults, self.sizes, options, self.backend
        )

    @property
    def options(self) -> Options:
        """How it runs, unless the arguments of a run say otherwise."""
        return self.executable.options

    @property
    def counters(self) -> Counters:
        """What the last run to finish did."""
        return self.executable.counters

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
        return self.executable.run(feeds, outputs, donate, limits, threads)[0]

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
        return profiler.finish(self.executable.run(feeds, outputs, donate, None, threads, profiler)[0])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a ``.irc`` file, whole or not at all; `irc.load` reads it.

        A model that keeps something from run to run is written as the last whole run left it: the loaded one goes on
        from there. (What compiles ``model.module`` begins anew, with what was imported.)

        Raises:
            Error: IRC501 if the file cannot be written, IRC503 if its name ends in ``.onnx``; of a model that keeps
                something, IRC142 or IRC143 if a file cannot hold it, IRC436 in the middle of a run of this thread.
        """
        from irc.runtime.files.file import save

        state = self.executable.state
        save(self, path, state.turn(lambda: snapshot(state.objects)) if state.changes else {})

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "compiled models are neither copied nor pickled: threads may run one model at once, "
            "and another process may irc.load the file that model.save writes"
        )

    def __repr__(self) -> str:
        def several(arguments: Iterable[Argument]) -> str:
            return ", ".join(f"{a.name}: {a.type}" for a in arguments)

        return f"<CompiledModel ({several(self.inputs)}) -> ({several(self.outputs)})>"


def load(path: str | PathLike[str], options: Options = DEFAULTS, *, backend: str | Backend = AUTO) -> CompiledModel:
    """Read a model that `CompiledModel.save` wrote. Weights are mapped, not read: pages come in when they are used.

    The file must not be changed while the model lives. (`save` never changes a file: it puts a new one in its place.)

    Args:
        path: of the file.
        options: how the model runs; they are not kept in the file.
        backend: what computes fusion groups, as of `CompiledModel`; files name none.

    Raises:
        Error: IRC502 the file cannot be read; IRC510 it is no ``.irc`` file; IRC511 a newer irc wrote it; IRC512 it
            is truncated; IRC513 it is damaged or inconsistent; others if its graph cannot be lowered.
    """
    from irc.runtime.files.file import read  # late, as in `save`: most models are never in a file

    module, report = read(path)
    try:
        return CompiledModel(module, report, options, backend)
    except Error as error:
        raise Error(error.code, error.message, ", ".join(filter(None, (fsdecode(path), error.where)))) from error
