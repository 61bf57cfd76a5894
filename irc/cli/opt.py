"""``irc opt``: IR text in, passes, IR text out."""

from __future__ import annotations

import argparse

from irc.cli import models, options
from irc.cli.output import emit

EXAMPLES = """\
  irc opt graph.ir -p cse,dce                    the graph after two passes
  irc print model.onnx | irc opt - -p default --print-after-change"""


def add_commands(commands: options.Commands) -> None:
    """Add ``opt``."""
    parser = options.add_command(commands, "opt", "run passes over IR text", EXAMPLES)
    options.add_model(parser, "IR text (.ir, .txt, - for stdin); also ONNX and .irc files")
    options.add_pipeline(parser, "")
    options.add_strict(parser)
    parser.add_argument("-o", "--output", metavar="OUT.ir", help="where to write the text (default: stdout)")
    options.add_explain(parser)
    options.add_instruments(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the module after the passes."""
    from irc.passes import PassManager
    from irc.passes.verified import run_verified
    from irc.support.files import replacing, spare_sources

    if given.output is not None:
        models.check_output(given.output, models.TEXT_SUFFIXES, given.model)
    manager = PassManager(options.pipeline(given), given.instruments)
    module = given.model.module()
    if given.output is not None:
        spare_sources(module.sources, [given.output])
    models.check_operators(module, given.strict, given.model.path)
    report = run_verified(manager, module, given.model.module)
    text = str(module).rstrip("\n") + "\n"
    if given.output is not None:
        with replacing(given.output) as file:
            file.write(text.encode())
    else:
        emit(text)
    if given.explain:
        from irc.cli.tables import print_explained

        print_explained(report)
    return 0
