"""The command line: ``irc compile model.onnx`` and its companions.

Results go to stdout, everything else to stderr. Exit status: 0 done, 1 the
input is wrong or a check failed, 2 usage. Here the program starts and ends: other
imports come after it can be interrupted cleanly.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED = 128 + 2
"""What a shell makes of a program that SIGINT ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. SystemExit after ``--help`` (0) and for wrong usage (2)."""

    def command() -> int:
        from irc.cli.commands import run_command

        return run_command(argv)

    return finished(command)


def finished(program: Callable[[], int]) -> int:
    """Run ``program``; return its exit status, or at least 1 after an error, printed in one line.

    SystemExit after ``--help`` (0) and for wrong usage (2).
    """
    try:
        _replace_closed_streams()
        from irc.cli.output import status_of

        return status_of(program)
    except KeyboardInterrupt:
        from irc.cli.output import say

        say("interrupted")
        return INTERRUPTED


def _replace_closed_streams() -> None:
    """Replace closed streams, which Python sets to None: else the next file opened becomes stdout.

    Writing to the replacement of stdout fails, so that lost results are an error.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode))  # noqa: SIM115  # for the life of the program
