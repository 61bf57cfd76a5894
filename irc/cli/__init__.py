"""The command line: ``irc compile model.onnx`` and its companions.

Results go to stdout, everything else to stderr. Exit status: 0 done, 1 the
input is wrong or a check failed, 2 usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from irc.errors import Error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except Error as error:
        print(f"irc: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("irc: interrupted", file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    from irc import __version__
    from irc.cli import bench, compile, inspect, opt, run

    parser = argparse.ArgumentParser(prog="irc", description="A compiler toolkit for ML graphs.")
    parser.add_argument("--version", action="version", version=f"irc {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (compile, run, opt, inspect, bench):
        module.add_commands(commands)
    return parser
