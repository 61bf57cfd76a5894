"""`irc.compile` and `irc.export`: from a model to something that runs, and to an ONNX file."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irc import __version__
from irc.alias import AliasDb, analyze
from irc.errors import Error
from irc.fuser.policy import operators
from irc.fuser.subgraph import is_group
from irc.ir import CONSTANT, DType, Graph, Module, Tensor
from irc.ir.clone import module_of, verify_given
from irc.ir.graph import gc_paused
from irc.ir.region_flow import known_rows, with_subgraphs
from irc.ops.opaque import is_opaque, opaque_operators
from irc.passes import FixSizes, Instrument, Pass, PassManager, PassReport, Repeat, ShapeInference
from irc.passes.verified import run_verified
from irc.runtime.backends import AUTO, Backend
from irc.runtime.file import is_saved
from irc.runtime.kernels import means
from irc.runtime.model import DEFAULTS, CompiledModel, Options
from irc.runtime.plan import without_kernels
from irc.runtime.report import FusionGroup, Memory, Report, Totals, peak_bytes
from irc.support.formatting import count
from irc.support.lazy import provided

if TYPE_CHECKING:
    from irc.frontend.onnx_export.model import Written
    from irc.runtime.memory_plan import MemoryPlan


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
    with gc_paused():  # once: whatever follows one of its ends begins with a collection of all that was made
        tell("importing")
        if isinstance(model, Module | Graph):  # importers give what keeps the rules
            verify_given(model)
        module, name = load_module(model, refuse_unknown)
        clock.lap("import")
        report = Report(name=name, pipeline=str(manager))
        report.nodes_before = count_nodes(module.main)
        report.operators_before = count_operators(module.main)
        nbytes = sum(os.path.getsize(path) for path in module.sources if path) or None
        count_costs = partial(_count_costs, _outline(module), module.main, nbytes)
        tell("optimising")
        passed, analyses = run_verified(manager, module, lambda: load_module(model)[0])
        module.metadata |= {"irc.version": __version__, "irc.pipeline": report.pipeline}
        if _infer_rows(module):
            analyses.drop()  # they are not told of types
        report.notes += _declared_wrongly(module)
        clock.lap("passes")
        _describe(report, module.main, passed)
        report.defer(count_costs, "before", "after", "sizes")
        clock.lap("report")
        tell("lowering")
        analyses.of(module.main).tighten()
        compiled = CompiledModel(module, report, options, backend, is_verified=True, analyses=analyses)
        clock.lap("lower")
        report.inputs, report.outputs = (
            [f"{a.name}: {a.type}" for a in each] for each in (compiled.inputs, compiled.outputs)
        )
        report.backend = backend if isinstance(backend, str) else backend.name
        report.declined = compiled.runs.lowerer.bound.declined
        report.defer(partial(_describe_memory, module.main, compiled.runs.expected), "alias", "memory")
        clock.lap("report")
        report.seconds = clock.laps
    if check:
        tell("checking")
        report.notes.append(str(provided("check").check_compiled(compiled, model, manager)))
    return compiled


def _infer_rows(module: Module) -> bool:
    """Infer and verify types if the model declares no type for a loop's scan output, which may stay empty.

    Returns whether that was needed.
    """
    rows = (row for node in with_subgraphs(*module.graphs.values()) for row in known_rows(node))
    if all(row.dtype is not None and row.shape is not None for row in rows):
        return False
    PassManager([ShapeInference()]).run(module)
    module.verify()
    return True


def _declared_wrongly(module: Module) -> list[str]:
    """Notes of outputs whose declared sizes are wrong; Error IRC135 if declared element types are."""
    if not module.metadata:
        return []
    from irc.frontend.onnx.types import check_outputs

    return check_outputs(module)


def count_nodes(graph: Graph) -> int:
    """Operators in the top block; a fusion group counts one, constants none."""
    return sum(1 for node in graph.nodes if node.kind != CONSTANT)


def count_operators(graph: Graph) -> dict[str, int]:
    """How often each operator occurs, nested blocks and groups' insides included, constants left out."""
    counts = Counter(node.kind for node in with_subgraphs(graph) if node.kind != CONSTANT and not is_group(node))
    return dict(sorted(counts.items()))


_LARGE = 1 << 10
"""A constant of more bytes is not looked into to find shapes."""


def _outline(module: Module) -> Graph:
    """A copy of the main graph without large constants' contents: operations and shapes need none."""
    copy, made = module.copy(), dict[int, Tensor]()
    for table in (copy.weights, copy.defaults, copy.objects):
        table.clear()
    for node in with_subgraphs(*copy.graphs.values()):
        for key, value in node.attributes.items():
            if isinstance(value, Tensor) and value.nbytes > _LARGE and value.dtype is not DType.STRING:
                zero = np.zeros((), value.dtype.numpy)
                node.attributes[key] = made.setdefault(id(value), Tensor.splat(value.dtype, value.shape, zero))
    return copy.main


def _count_costs(before: Graph, after: Graph, nbytes: int | None, report: Report) -> None:
    """Fill in what a model of ``nbytes``, ``before`` passes, took, and what it takes ``after`` them."""
    sizes: dict[str, int] = {}
    report.before, report.after = totals_of(before, sizes, nbytes), totals_of(after, sizes)
    report.sizes = sizes


def totals_of(graph: Graph, sizes: dict[str, int], nbytes: int | None = None) -> Totals:
    """What ``graph``, of files of ``nbytes``, takes; adds the sizes that this is counted for to ``sizes``."""
    found = provided("costs").costs(graph)
    sizes |= found.sizes
    return Totals(nbytes, found.parameters, found.macs, found.flops, sum(found.uncounted.values()))


def _describe_memory(graph: Graph, expected: Callable[[], MemoryPlan | None], report: Report) -> None:
    """Fill in what analyses of ``graph`` say of memory, and the plan that is ``expected``."""
    db, plan = analyze(graph, graph.module), expected()
    weights, _ = provided("costs").weights_of(list(with_subgraphs(graph)))
    memory = Memory(sum(weights.values()), peak_bytes(graph, db))
    if plan is not None:
        memory.arena, memory.bound = plan.nbytes, plan.bound
    report.alias, report.memory = _alias_facts(graph, db), memory


def _describe(report: Report, graph: Graph, passed: PassReport) -> None:
    report.nodes_after = count_nodes(graph)
    report.operators_after = count_operators(graph)
    report.passes = passed.passes
    report.stats = dict(passed.stats)
    report.remarks = passed.remarks
    report.groups = [
        FusionGroup(next((v.name for v in node.outputs), ""), [op.kind for op in operators(node)])
        for node in graph.walk()
        if is_group(node)
    ]
    report.fallbacks = fallbacks(graph)
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


def fallbacks(graph: Graph) -> dict[str, int]:
    """How often each operator of ``graph`` occurs that ``onnx.reference`` computes, for want of a kernel."""
    return dict(Counter(node.kind for node in with_subgraphs(graph) if means(node) == "reference"))


def _say_nothing(_: str) -> None:
    pass


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {"import": 0.0, "passes": 0.0, "lower": 0.0, "report": 0.0}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] += now - self._last
        self._last = now


# Making a module of whatever `irc.compile` is given.


def load_module(model: Any, refuse_unknown: bool = False) -> tuple[Module, str]:
    """A module of its own for anything that `compile` takes, and a name for it."""
    if isinstance(model, Module | Graph):
        from irc.frontend.torchscript import copy_into_outs

        module = model.copy() if isinstance(model, Module) else module_of(model)
        if refuse_unknown:
            refuse_opaque(module)
        copy_into_outs(module)
        return module, module.main.name
    if any(base.__module__.partition(".")[0] == "torch" for base in type(model).__mro__):
        from irc.frontend.torchscript import import_torchscript

        return import_torchscript(model), type(model).__name__
    if isinstance(model, CompiledModel):
        raise Error("IRC101", "this is compiled already: run it, or compile its module", model.graph.name)
    from irc.frontend.onnx import import_model  # imports onnx, which irc graphs and .irc files do not need

    if isinstance(model, str | os.PathLike):
        path = os.fspath(cast("str | os.PathLike[str]", model))
        _check_not_irc(path)
        return import_model(path, refuse_unknown=refuse_unknown), path
    if hasattr(model, "graph"):
        return import_model(model, refuse_unknown=refuse_unknown), str(model.graph.name)
    kind = type(model).__name__
    raise Error("IRC101", f"cannot compile a {kind}: give a path, ModelProto, torch.jit module, Module or Graph")


def refuse_opaque(module: Module, where: str = "") -> None:
    """Raise IRC123 if ``module`` has nodes whose operators irc does not know, and only passes through."""
    found = opaque_operators(*module.graphs.values())
    if found:
        lines = [f"  {operator}, {count(len(nodes), 'node')}" for operator, nodes in found.items()]
        raise Error("IRC123", "\n".join([f"{count(len(found), 'operator')} that irc does not know:", *lines]), where)


def _check_not_irc(path: str) -> None:
    """IRC101 for irc's own files: reading them as ONNX would report them as damaged."""
    if not os.path.isfile(path):
        return  # reading it says why
    if os.path.splitext(path)[1].lower() in (".ir", ".txt"):
        raise Error("IRC101", "this is IR text: give compile what irc.ir.parse_module makes of it", path)
    if is_saved(path):
        raise Error("IRC101", "this is compiled already: irc.load reads it", path)


# `irc.export`: from a compiled model, a module or a graph to an ONNX file.


def export(
    model: CompiledModel | Module | Graph, path: str | os.PathLike[str], *, external_threshold: int | None = None
) -> int:
    """Write a model as ONNX for any runtime, whole or not at all, as ``irc compile -o OUT.onnx`` does.

    Args:
        model: what `irc.compile` or `irc.load` returns, an ``irc.ir.Module`` or an ``irc.ir.Graph``. It is not changed.
        path: where to.
        external_threshold: weights of that many bytes or more go into ``<path>.data``; None: all from 1 KB on, but only
            if the model would be too large for one file.

    Returns:
        How many bytes the files have together.

    Raises:
        Error: IRC101 ``model`` cannot be exported; IRC2xx the graph breaks a rule of the IR; IRC350, IRC351
            ONNX cannot express it; IRC352 it is too large for a message; IRC501 a file cannot be written; IRC503 the
            name ends in ``.irc``, or is that of a file which the model is read from.
    """
    return write_onnx(model, path, external_threshold).bytes


def write_onnx(
    model: CompiledModel | Module | Graph, path: str | os.PathLike[str], external_threshold: int | None = None
) -> Written:
    """As `export`; returns what was written."""
    from irc.frontend.onnx_export import save_model  # imports onnx, which .irc files do not need

    where = os.fsdecode(path)
    if where.lower().endswith(".irc"):
        raise Error("IRC503", "this is the name of a compiled model: model.save(path) writes one", where)
    if isinstance(model, CompiledModel):
        verify_given(model.graph)
        module = model.module if model.graph is model.module.main else module_of(model.graph)
    elif isinstance(model, Module | Graph):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        verify_given(model)
        module = model if isinstance(model, Module) else module_of(model)
    else:
        raise Error("IRC101", f"cannot export a {type(model).__name__}: give a compiled model, a Module or a Graph")
    return save_model(module, where, external_threshold)
