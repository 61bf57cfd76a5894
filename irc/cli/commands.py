"""The commands, and how one of them is chosen and run."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence

from irc import __version__
from irc.cli import batch, bench, bisect, compile, completion, inspect, models, run
from irc.cli.options import blamed, load
from irc.cli.output import Parser, out_of_memory, parsed
from irc.errors import Error


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run what a command line says, by default the program's."""
    options = parsed(whole_parser(), argv)
    try:
        for path in options.load:
            load(path)
        if getattr(options, "refuse_unknown", False) and hasattr(options, "model"):
            options.model.refuse_unknown = True
        with blamed():
            return options.run(options)
    except Error as error:
        if options.traceback:
            traceback.print_exception(error)
        raise
    except MemoryError as error:
        raise out_of_memory(error, options.model.path if hasattr(options, "model") else "") from error


def whole_parser() -> argparse.ArgumentParser:
    """The parser of the command line, with all commands."""
    parser = Parser(
        prog="irc",
        description="A compiler for ML graphs.",
        epilog="irc COMMAND --help explains a command, with examples.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"irc {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for add in (
        *(compile.add_compile, run.add_run, compile.add_opt),
        *(inspect.add_print_and_alias, inspect.add_operators, bench.add_bench),
        *(models.add_inspect, models.add_diff, models.add_extract, bisect.add_bisect, bisect.add_reduce),
        *(batch.add_batch, run.add_report, completion.add_completion),
    ):
        add(commands)
    return parser
