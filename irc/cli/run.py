"""``irc run`` and ``irc report``: run a model; show it, profiled or not, in a browser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from irc.cli import options
from irc.cli.output import emit, emit_json, progress, say
from irc.errors import Error
from irc.support.formatting import one_line

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.passes.manager import PassReport
    from irc.runtime.limits import Limits
    from irc.runtime.model import CompiledModel
    from irc.runtime.profile import Profile
    from irc.runtime.report import Report
    from irc.tools.model_page import Recorder

RUN_EXAMPLES = """\
  irc run model.irc --input x=x.npy -o y.npz     run on an array that numpy.save wrote
  irc run model.onnx --seed 0 --dim batch=4      run on random inputs
  irc run model.onnx --seed 0 --max-seconds 10   run a model that may do anything
  irc run model.onnx --seed 0 --profile          see where its time and memory go"""

WARM_UP = 2
"""Runs before one that is profiled: the first reads weights, the second plans memory."""


def add_run(commands: options.Commands) -> None:
    """Add ``run``."""
    parser = options.add_command(commands, "run", "run a model on .npy inputs", RUN_EXAMPLES, run_model)
    options.add(parser, options.add_model, options.add_inputs)
    options.option(parser, "--seed", "SEED", "make up the inputs that are not given, from this seed", options.seed)
    options.option(parser, "-o/--output", "OUT.npz", "where to write the outputs")
    options.flag(parser, "--profile", "run three times and say where time and memory of the third run go")
    options.option(parser, "--trace", "OUT.json", "write the profile as a trace file, for Chrome or Perfetto")
    options.option(parser, "--threads", "N", "how many threads matrix products may use", options.threads)
    options.add(parser, options.add_pipeline_unless_compiled, options.add_backend, options.add_limits, options.add_json)


def run_model(given: argparse.Namespace) -> int:
    """Run the model; print one line for each output."""
    from irc.cli.arrays import summary
    from irc.tools.archives import write_archive

    if (given.dim or given.shape) and given.seed is None:
        given.usage_error("--dim and --shape are for the inputs that --seed makes up")
    if given.output is not None:
        options.check_output(given.output, (".npz",), given.model)
    if given.trace is not None:
        options.check_output(given.trace, (".json",), given.model)
    limits = options.limits(given)
    passes = options.pipeline_unless_compiled(given)
    with progress() as tell:
        model = given.model.compiled(passes, tell, given.backend)
        _spare_what_is_read(model, given)
        feeds = _inputs(model, given, limits)
        tell("running")
        profile = _profile(model, feeds, limits, given.threads) if given.profile or given.trace is not None else None
        results = profile.outputs if profile is not None else model.run(feeds, limits=limits, threads=given.threads)
        if given.output is not None:
            write_archive(given.output, results, say)
        if profile is not None and given.trace is not None:
            profile.save_trace(given.trace)
    if given.json:
        from irc.cli.arrays import described
        from irc.cli.results import Ran

        written = [path for path in (given.output, given.trace) if path is not None]
        told = None if profile is None else profile.to_dict()
        emit_json(Ran({name: described(value) for name, value in results.items()}, written, told).to_dict())
        return 0
    if profile is not None and given.profile:
        from irc.cli.tables import print_profile

        print_profile(profile)
    emit("".join(f"{one_line(name)}: {summary(value)}\n" for name, value in results.items()))
    return 0


def _spare_what_is_read(model: CompiledModel, given: argparse.Namespace) -> None:
    """Raise an error if a file to be written is one that the model, or an input, is read from."""
    from irc.support.files import real_path, spare_sources

    written: list[str] = [path for path in (given.output, given.trace) if path]
    spare_sources(model.module.sources, written)
    # What is the name of an input may hold "=" too; so may that of its file.
    read = [real_path(text[i + 1 :]) for text in given.input for i, sign in enumerate(text) if sign == "="]
    spare_sources(read, written, "an input is read from this file")


def _inputs(model: CompiledModel, given: argparse.Namespace, limits: Limits | None) -> dict[str, Any]:
    """The given inputs and, with a seed, made-up values for the others."""
    from irc.cli.arrays import complete, read_inputs
    from irc.tools.random_inputs.draw import can_be_made_up

    feeds = read_inputs(model, given.input)
    if given.seed is not None:
        return complete(model, feeds, given, limits)
    if missing := [a for a in model.inputs if not a.optional and a.name not in feeds]:
        each = ", ".join(f"{a.name!r} ({a.type})" for a in missing)
        seed = ", or --seed 0 to make values up" if all(can_be_made_up(a.type) for a in missing) else ""
        raise Error("IRC410", f"no value for {each}: give --input NAME=FILE.npy{seed}")
    return feeds


def _profile(model: CompiledModel, feeds: Mapping[str, Any], limits: Limits | None, threads: int | None) -> Profile:
    for _ in range(WARM_UP):
        model.run(feeds, limits=limits, threads=threads)  # what these keep to, a third one does
    return model.profile(feeds, threads=threads)


# -- irc report ----------------------------------------------------------------

REPORT_EXAMPLES = """\
  irc report model.onnx -o model.html            before and after the passes, aliases, memory, remarks
  irc report model.onnx --fix batch=1 -o m.html  with the memory of runs of one size
  irc report model.onnx --profile -o m.html      with the time of each node
  irc report graph.ir -p cse,dce > graph.html    what two passes do"""


def add_report(commands: options.Commands) -> None:
    """Add ``report``."""
    purpose = "show a model, its aliases and its memory in a browser"
    parser = options.add_command(commands, "report", purpose, REPORT_EXAMPLES, run_report)
    options.add_model(parser)
    options.option(parser, "-o/--output", "OUT.html", "where to write the page (default: stdout)")
    options.add(parser, options.add_pipeline_unless_compiled, options.add_backend)
    profile = parser.add_argument_group("profiling")
    options.flag(profile, "--profile", "run the model three times, and show the time of each node in the third run")
    options.add(profile, options.add_inputs, options.add_seed)


def run_report(given: argparse.Namespace) -> int:
    """Compile the model, and write its page."""
    from irc.runtime.model import CompiledModel
    from irc.support.files import replacing, spare_sources
    from irc.tools.model_page import page_of

    if (given.input or given.dim or given.shape) and not given.profile:
        given.usage_error("--input, --dim and --shape are for --profile")
    passes = options.pipeline_unless_compiled(given)
    if given.output is not None:
        options.check_output(given.output, (".html", ".htm"), given.model)
    with progress() as tell:
        model, recorder, report = _model(given, passes, tell)
        profile = _profiled(model, given, tell) if given.profile and isinstance(model, CompiledModel) else None
        tell("drawing")
        page = page_of(model, recorder, profile, report)
        if given.output is not None:
            spare_sources(model.module.sources if model.module is not None else [], [given.output])
            with replacing(given.output) as file:
                file.write(page.encode())
    if given.output is None:
        emit(page)
    return 0


def _model(
    given: argparse.Namespace, passes: str, tell: Callable[[str], None]
) -> tuple[CompiledModel | Graph, Recorder | None, Report | PassReport]:
    """The compiled model, or its graph if it cannot be run; what watched the passes, and what they did.

    Of a model that is compiled already, nobody has watched the passes.
    """
    from irc.compiler import compile
    from irc.passes import PassManager
    from irc.passes.verified import run_verified
    from irc.tools.model_page import Recorder

    if given.model.kind is options.Kind.COMPILED:
        model = given.model.compiled(passes, tell, given.backend)
        return model, None, model.report
    recorder = Recorder()
    try:
        model = compile(
            given.model.source(),
            passes,
            refuse_unknown=given.refuse_unknown,
            backend=given.backend,
            instruments=[recorder],
            progress=tell,
        )
    except Error as error:
        if given.profile:
            raise
        module = given.model.module()  # it is verified: what is wrong with the file is an error again
        report, _ = run_verified(PassManager(passes, [recorder]), module, given.model.module)
        say(f"note: it is shown, but cannot be run: {error.message}")
        return module.main, recorder, report
    model.report.name = given.model.path
    return model, recorder, model.report


def _profiled(model: CompiledModel, given: argparse.Namespace, tell: Callable[[str], None]) -> Profile:
    from irc.cli.arrays import complete, read_inputs

    feeds = complete(model, read_inputs(model, given.input), given)
    tell("running")
    return _profile(model, feeds, None, None)
