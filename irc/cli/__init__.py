"""The command line: ``irc compile model.onnx`` and its companions.

Results go to stdout, everything else to stderr. Exit status: 0 done, 1 the
input is wrong or a check failed, 2 usage.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from irc.cli.process import Parser, finished, out_of_memory, parsed


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. SystemExit after ``--help`` (0) and for wrong usage (2)."""

    def command() -> int:
        options = parsed(_parser(), argv)
        try:
            return options.run(options)
        except MemoryError as error:
            raise out_of_memory(error, options.model.path) from error

    return finished(command)


def _parser() -> argparse.ArgumentParser:
    from irc import __version__
    from irc.cli import bench, compile, inspect, opt, run

    parser = Parser(
        prog="irc",
        description="A compiler for ML graphs.",
        epilog="irc COMMAND --help explains a command, with examples.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"irc {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for module in (compile, run, opt, inspect, bench):
        module.add_commands(commands)
    return parser
