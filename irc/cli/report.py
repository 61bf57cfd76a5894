"""``irc report``: a model, its aliases and its memory as a page for a browser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from irc.cli import options
from irc.cli.output import emit, progress, say
from irc.cli.run import WARM_UP
from irc.errors import Error

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.passes.manager import PassReport
    from irc.runtime.model import CompiledModel
    from irc.runtime.profile import Profile
    from irc.runtime.report import Report
    from irc.tools.model_page import Recorder

EXAMPLES = """\
  irc report model.onnx -o model.html            before and after the passes, aliases, memory, remarks
  irc report model.onnx --fix batch=1 -o m.html  with the memory of runs of one size
  irc report model.onnx --profile -o m.html      with the time of each node
  irc report graph.ir -p cse,dce > graph.html    what two passes do"""


def add_report(commands: options.Commands) -> None:
    """Add ``report``."""
    purpose = "show a model, its aliases and its memory in a browser"
    parser = options.add_command(commands, "report", purpose, EXAMPLES, run_report)
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
        profile = _profile(model, given, tell) if given.profile and isinstance(model, CompiledModel) else None
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


def _profile(model: CompiledModel, given: argparse.Namespace, tell: Callable[[str], None]) -> Profile:
    from irc.cli.arrays import complete, read_inputs

    feeds = complete(model, read_inputs(model, given.input), given)
    tell("running")
    for _ in range(WARM_UP):
        model.run(feeds)
    return model.profile(feeds)
