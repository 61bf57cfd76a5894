"""``irc compile``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from irc.cli import common
from irc.errors import Error


def add_commands(commands: common.Commands) -> None:
    """Add ``compile``."""
    parser = commands.add_parser("compile", help="optimise a model, report on it, write it as .irc")
    parser.add_argument("model", metavar="MODEL", help="ONNX file, or IR text (.ir)")
    parser.add_argument("-o", "--output", metavar="OUT.irc", help="where to write the compiled model")
    common.add_pipeline(parser)
    common.add_sizes(parser)
    parser.add_argument("--check", action="store_true", help="compare with an oracle on seeded inputs")
    parser.add_argument("--explain", action="store_true", help="say why fusions and other rewrites were refused")
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout instead of a table")
    parser.add_argument("--timing", action="store_true", help="time of each pass, on stderr")
    parser.add_argument("--print-after-all", action="store_true", help="the IR after each pass, on stderr")
    parser.add_argument("--print-after-change", action="store_true", help="the IR after each pass that changed it")
    parser.add_argument("--verify-each", action="store_true", help="verify the IR after each pass")
    parser.add_argument("--verify-alias", action="store_true", help="compare the alias analysis with a new one")
    parser.set_defaults(run=run)


INSTRUMENTS = ("timing", "print_after_all", "print_after_change", "verify_each", "verify_alias")


def run(options: argparse.Namespace) -> int:
    """Compile, check, write, report; nothing is written if anything is wrong."""
    from irc.compiler import compile
    from irc.passes import create_instruments

    if options.output:
        if Path(options.output).suffix != ".irc":
            raise Error("IRC503", "the name of a compiled model must end in .irc", options.output)
        common.existing_folder(options.output)
    names = [name.replace("_", "-") for name in INSTRUMENTS if getattr(options, name)]
    is_text = options.model == "-" or Path(options.model).suffix in common.TEXT_SUFFIXES
    source = common.read_module(options.model) if is_text else options.model
    progress = common.progress()
    model = compile(source, options.passes, instruments=create_instruments(names), progress=progress)
    model.report.name = options.model
    if options.check:
        from irc.check import check_model

        progress("checking")
        model.report.notes.append(str(check_model(model, source, sizes=common.sizes_of(options))))
    if options.output:
        progress("writing")
        model.save(options.output)
        size = Path(options.output).stat().st_size
        model.report.notes.append(f"written to {options.output}, {size / 1e6:,.1f} MB")
    if options.json:
        json.dump(model.report.to_dict(), sys.stdout, indent=2)
        print()
    else:
        from irc.cli.tables import print_report

        print_report(model.report)
    if options.explain:
        for refusal in model.report.refusals:
            print(f"{refusal.pass_name}: {refusal.where} {refusal.reason}", file=sys.stderr)
    return 0
