"""``irc compile`` and ``irc opt``: run passes over a model, or over IR text."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irc.cli import options
from irc.cli.output import emit, emit_json, progress
from irc.errors import Error
from irc.support.formatting import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from irc.ir import Module
    from irc.runtime.model import CompiledModel
    from irc.support.remarks import Remark

ONNX = ".onnx"

COMPILE_EXAMPLES = """\
  irc compile model.onnx                         report on what irc makes of the model
  irc compile model.onnx -o model.irc --check    write it if it computes what the oracle does
  irc compile model.onnx -o optimised.onnx       write it as ONNX, for other runtimes
  irc compile model.onnx --fix batch=1 -o m.irc  compile it for one size of a named dimension
  irc compile model.onnx --explain               also say what was not fused, not in place, copied; why, and the remedy
  irc compile model.onnx --explain fuse          only what the pass fuse left; --explain %y: only what concerns %y"""


def add_compile(commands: options.Commands) -> None:
    """Add ``compile``."""
    parser = options.add_command(
        commands, "compile", "optimise a model, report on it, write it as .irc or .onnx", COMPILE_EXAMPLES, run_compile
    )
    options.add_model(parser, "ONNX file, or IR text (.ir, .txt, - for stdin)")
    said = "where to write it: OUT.irc, the compiled model, or OUT.onnx, as ONNX"
    options.option(parser, "-o/--output", "OUT", said)
    said = "OUT.onnx: weights of that many bytes or more (1000, 500K: powers of 1024) go to OUT.onnx.data; by default, "
    options.option(parser, "--external-data", "BYTES", f"{said}if the model exceeds 2 GB", options.size)
    options.add(parser, options.add_pipeline, options.add_backend, options.add_explain)
    options.flag(parser, "--verbose", "also passes with their times, all operators, kinds of groups, the backend")
    options.add_json(parser)
    check = parser.add_argument_group("checking")
    said = "compare with ONNX Runtime if it is installed, else onnx.reference, else irc without passes"
    options.flag(check, "--check", said)
    said = "with --check: print how far each value that the model keeps is from the oracle's, and the first wrong one"
    options.flag(check, "--layers", said)
    said = "with --check -o OUT.irc: write the weights of convolutions as the check's runs have packed them, too; "
    options.flag(check, "--packed", f"{said}what loads the file on such a processor maps them")
    options.add_inputs(check)
    options.add_instruments(parser)


def run_compile(given: argparse.Namespace) -> int:
    """Compile, check, write, report; nothing is written if anything is wrong."""
    if given.layers and not given.check:
        given.usage_error("--layers is for --check")
    if (given.input or given.dim or given.shape) and not given.check:
        given.usage_error("--input, --dim and --shape are for --check")
    if given.output is not None:
        options.check_output(given.output, (".irc", ONNX), given.model)
    if given.external_data is not None and options.suffix(given.output or "") != ONNX:
        given.usage_error("--external-data is for -o OUT.onnx")
    if given.packed and not (given.check and options.suffix(given.output or "") == ".irc"):
        given.usage_error("--packed is for --check -o OUT.irc")
    options.check_instruments(given)
    model = compiled(given)
    if given.json:
        emit_json({**result_of(model), "layers": given.layers.to_dict() if given.layers else None})
    else:
        from irc.cli.tables import print_report

        print_report(model.report, given.verbose)
    return 0 if given.explain is None else _explained(given.explain, model.report.stats, model.remarks)


def result_of(model: CompiledModel) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {**model.report.to_dict(), "remarks": [asdict(remark) for remark in model.remarks]}


def compiled(given: argparse.Namespace) -> CompiledModel:
    """Compile, check and write what a command line says."""
    from irc.compiler import compile
    from irc.runtime.model import Options

    with progress(silent=bool(given.instruments)) as tell:
        source = given.model.source()
        words = {"instruments": given.instruments, "refuse_unknown": given.refuse_unknown, "backend": given.backend}
        if threads := getattr(given, "threads", None):
            words["options"] = Options(threads=threads)
        model = compile(source, options.pipeline(given), progress=tell, **words)
        model.report.name = given.model.path
        if given.check:
            _check(model, source, given, tell)
        if given.output is not None:
            tell("writing")
            _write(model, given.output, given.external_data, getattr(given, "packed", False))
            model.report.notes.append(f"written to {given.output}, {amount(model.report.after.bytes)}")
    return model


def _explained(wanted: str, stats: Mapping[str, int], remarks: Sequence[Remark]) -> int:
    """The exit status, after it has been said what passes counted and left as it was."""
    from irc.cli.tables import print_explained

    print_explained(stats, remarks, wanted)
    return 0


def _write(model: CompiledModel, path: str, external_data: int | None, packed: bool) -> None:
    """Write the model in the form that the path names.

    An ONNX file holds other operators than the compiled model does, no groups among them: the report counts those.
    """
    from irc.compiler import load_module, totals_of, write_onnx

    report = model.report
    if options.suffix(path) != ONNX:
        model.save(path, packed=packed)
        report.after.bytes = Path(path).stat().st_size
        return
    written = write_onnx(model, path, external_data)
    report.nodes_after, report.operators_after, report.groups = written.nodes, written.operators, []
    sizes = dict(report.sizes)
    report.after = totals_of(load_module(path)[0].main, sizes, written.bytes)
    report.sizes = sizes


def _check(model: CompiledModel, source: str | Module, given: argparse.Namespace, tell: Callable[[str], None]) -> None:
    from irc.cli.arrays import read_inputs, stated_sizes
    from irc.passes import PassManager
    from irc.tools.check.models import check_compiled

    tell("checking")
    inputs = read_inputs(model, given.input)
    sizes = stated_sizes(model, inputs, given)
    if getattr(given, "layers", False):
        from irc.tools.layers import compare_layers

        given.layers = compare_layers(model, source, sizes=sizes, given=inputs)
        if not given.json:
            emit(str(given.layers))
    try:
        result = check_compiled(model, source, PassManager(options.pipeline(given)), sizes=sizes, given=inputs)
    except Error as error:
        if error.code != "IRC330" or given.model.path == "-":
            raise
        words = ["irc", "bisect", given.model.path, *([] if given.passes == "default" else ["-p", given.passes])]
        words += [word for path in given.load for word in ("--load", path)]
        words += [word for name, size in given.fix.items() for word in ("--fix", f"{name}={size}")]
        words += [word for text in given.input for word in ("-i", text)]
        message = f"{error.message}; to find the rewrite, and the smallest part that shows it: {shlex.join(words)}"
        raise Error(error.code, message, error.where) from error
    model.report.notes.append(str(result))


# ``irc opt``: IR text in, passes, IR text out.


OPT_EXAMPLES = """\
  irc opt graph.ir -p cse,dce                    the graph after two passes
  irc print model.onnx | irc opt - -p default --print-after-change"""


def add_opt(commands: options.Commands) -> None:
    """Add ``opt``."""
    parser = options.add_command(commands, "opt", "run passes over IR text", OPT_EXAMPLES, run_opt)
    options.add_model(parser, "IR text (.ir, .txt, - for stdin); also ONNX and .irc files")
    options.add_pipeline(parser, "")
    options.add_strict(parser)
    options.option(parser, "-o/--output", "OUT.ir", "where to write the text (default: stdout)")
    options.add(parser, options.add_explain, options.add_json, options.add_instruments)


def run_opt(given: argparse.Namespace) -> int:
    """Print the module after the passes."""
    from irc.passes import PassManager
    from irc.passes.verified import run_verified
    from irc.support.files import replacing, spare_sources

    if given.output is not None:
        options.check_output(given.output, options.TEXT_SUFFIXES, given.model)
    options.check_instruments(given)
    manager = PassManager(options.pipeline(given), given.instruments)
    module = given.model.module()
    if given.output is not None:
        spare_sources(module.sources, [given.output])
    options.check_operators(module, given.strict, given.model.path)
    report, _ = run_verified(manager, module, given.model.module)
    text = str(module).rstrip("\n") + "\n"
    if given.output is not None:
        with replacing(given.output) as file:
            file.write(text.encode())
    elif not given.json:
        emit(text)
    if given.json:
        from irc.cli.results import Optimised

        stats, remarks = dict(report.stats), report.remarks
        emit_json(Optimised(text, given.output, report.passes, stats, remarks).to_dict())
    return 0 if given.explain is None else _explained(given.explain, report.stats, report.remarks)
