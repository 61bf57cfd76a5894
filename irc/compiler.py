"""`irc.compile`: from a model to something that runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irc import __version__
from irc.errors import Error
from irc.fuser.policy import operators
from irc.fuser.subgraph import is_group
from irc.ir import Graph, Module
from irc.ir.bulk import no_collection
from irc.ir.clone import verify_given
from irc.ir.functions import with_subgraphs
from irc.ir.kinds import CONSTANT
from irc.ir.loops import known_rows
from irc.loading import load_module
from irc.ops.opaque import is_opaque, opaque_operators
from irc.passes import FixSizes, Instrument, Pass, PassManager, PassReport, Repeat, ShapeInference, set_default_evaluate
from irc.passes.verified import run_verified
from irc.runtime.backends import AUTO, Backend
from irc.runtime.kernels import means
from irc.runtime.model import DEFAULTS, CompiledModel, Options
from irc.runtime.plan import evaluate, without_kernels
from irc.runtime.report import FusionGroup, Memory, Report, peak_bytes, weight_bytes

if TYPE_CHECKING:
    from irc.alias import AliasDb

set_default_evaluate(evaluate)


def compile(
    model: Any,
    passes: str | Sequence[Pass | Repeat | str] = "default",
    *,
    sizes: Mapping[str, int] | None = None,
    check: bool = False,
    refuse_unknown: bool = False,
    options: Options = DEFAULTS,
    backend: str | Backend = AUTO,
    instruments: Sequence[Instrument | str] = (),
    progress: Callable[[str], None] | None = None,
) -> CompiledModel:
    """Optimise a model and make it ready to run.

    Args:
        model: path of an ONNX file, ``onnx.ModelProto``, ``torch.jit`` module or function, ``irc.ir.Module`` or
            ``irc.ir.Graph``. It is not changed. Large weights of a ``ModelProto``, and external data, are read by
            the first run, which fails (IRC130) if they were changed meanwhile; external data stays mapped, and must
            not be changed in place while the model lives.
        passes: ``"default"``, ``"none"``, other pipeline text, or a sequence of passes, ``irc.passes.Repeat`` groups
            and pieces of such text: ``["default", Square()]``.
        sizes: of named dimensions of inputs, such as ``{"batch": 1}``, which the model is compiled for, and takes no
            others of: the pass ``fix-sizes``, before all others.
        check: also run it on seeded random inputs and compare with an oracle (IRC330 where they differ).
        refuse_unknown: whether operators of an ONNX model that irc does not know are an error (IRC123). Else they pass
            through to what is saved or exported, and a run that needs one fails.
        options: how it runs: on how many threads, say.
        backend: what computes fusion groups, and steps whose memory is planned: ``"auto"`` for the fastest that is
            installed, ``"numpy"`` for none, the name of one that another package offers, or the backend itself. It
            changes neither the graph nor what is saved.
        instruments: what watches the passes, or names of it; see ``irc.passes.instruments``.
        progress: called with a few words before each stage.

    Returns:
        The compiled model. Its ``graph`` is the optimised one, its ``report`` says what was done.

    Raises:
        Error: IRC1xx if the model cannot be imported, IRC2xx if it, or the graph that passes made of it, breaks a
            rule of the IR (the message names the pass), IRC3xx if a pass or lowering cannot go on.
        TypeError: if the pipeline or an instrument is something else.
    """
    tell = progress or _say_nothing
    manager = PassManager(passes, instruments)  # first: what is wrong with the text need not wait for a large model
    if sizes:
        manager.pipeline = (FixSizes.of(sizes), *manager.pipeline)
    clock = _Clock()
    with no_collection():  # once: whatever follows one of its ends begins with a collection of all that was made
        tell("importing")
        if isinstance(model, Module | Graph):  # importers give what keeps the rules
            verify_given(model)
        module, name = load_module(model, refuse_unknown)
        clock.lap("import")
        report = Report(name=name, pipeline=str(manager))
        report.nodes_before = count_nodes(module.main)
        report.operators_before = count_operators(module.main)
        tell("optimising")
        passed = run_verified(manager, module, lambda: load_module(model)[0])
        module.metadata |= {"irc.version": __version__, "irc.pipeline": report.pipeline}
        _infer_rows(module)
        report.notes += _declared_wrongly(module)
        clock.lap("passes")
        tell("lowering")
        try:
            compiled = CompiledModel(module, report, options, backend, is_verified=True)
        except Error as error:
            from irc.check.locate import since_pass

            located = since_pass(error, model, manager)
            if located is None:
                raise
            raise located from error
        clock.lap("lower")
        report.seconds = clock.laps
        report.backend = backend if isinstance(backend, str) else backend.name
        report.declined = compiled.runs.lowerer.bound.declined
        _describe(report, module.main, passed)
        plan = compiled.runs.expected()
        if plan is not None:
            report.memory.arena, report.memory.bound = plan.nbytes, plan.bound
        clock.lap("report")
    if check:
        from irc.check.locate import check_compiled

        tell("checking")
        report.notes.append(str(check_compiled(compiled, model, manager)))
    return compiled


def _infer_rows(module: Module) -> None:
    """Infer types, and verify them, if the model does not declare the type of a loop's stack, which may stay empty."""
    rows = (row for node in with_subgraphs(*module.graphs.values()) for row in known_rows(node))
    if any(row.dtype is None or row.shape is None for row in rows):
        PassManager([ShapeInference()]).run(module)
        module.verify()


def _declared_wrongly(module: Module) -> list[str]:
    """Notes of outputs whose declared sizes are wrong; Error IRC135 if declared element types are."""
    if not module.metadata:
        return []
    from irc.frontend.onnx.contradictions import check_outputs

    return check_outputs(module)


def count_nodes(graph: Graph) -> int:
    """Operators in the top block; a fusion group counts one, constants none."""
    return sum(1 for node in graph.nodes if node.kind != CONSTANT)


def count_operators(graph: Graph) -> dict[str, int]:
    """How often each operator occurs, nested blocks and groups' insides included, constants left out."""
    counts = Counter(node.kind for node in with_subgraphs(graph) if node.kind != CONSTANT and not is_group(node))
    return dict(sorted(counts.items()))


def _describe(report: Report, graph: Graph, passed: PassReport) -> None:
    from irc.alias import analyze

    report.nodes_after = count_nodes(graph)
    report.operators_after = count_operators(graph)
    report.passes = passed.passes
    report.stats = dict(passed.stats)
    report.refusals = passed.refusals
    report.groups = [
        FusionGroup(next((v.name for v in node.outputs), ""), [op.kind for op in operators(node)])
        for node in graph.walk()
        if is_group(node)
    ]
    db = analyze(graph)
    report.alias = _alias_facts(graph, db)
    report.memory = Memory(weight_bytes(graph), peak_bytes(graph, db))
    report.fallbacks = dict(Counter(node.kind for node in with_subgraphs(graph) if means(node) == "reference"))
    passing = opaque_operators(*(graph.module.graphs.values() if graph.module else [graph]))
    if passing:
        names = ", ".join(passing)
        report.notes.append(f"operators that irc does not know pass through, and a run that needs one fails: {names}")
    absent = sorted({op.kind for op in without_kernels(graph) if not is_opaque(op.kind)})
    if absent:
        report.notes.append(f"a run that comes to one of these fails, there is no kernel: {', '.join(absent)}")


def _alias_facts(graph: Graph, db: AliasDb) -> dict[str, int]:
    values = [value for node in graph.walk() for value in node.outputs]
    return {
        "values": len(values),
        "locations": len(db.locations(values)),
        "writes": sum(1 for node in graph.walk() if db.is_mutable(node)),
    }


def _say_nothing(_: str) -> None:
    pass


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
