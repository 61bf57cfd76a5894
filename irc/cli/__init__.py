"""The command line: ``irc compile model.onnx`` and its companions.

Results go to stdout, everything else to stderr. Exit status: 0 done, 1 the
input is wrong or a check failed, 2 usage.
"""

from __future__ import annotations

from irc.cli.process import finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. SystemExit after ``--help`` (0) and for wrong usage (2)."""

    def command() -> int:
        from irc.cli.commands import run_command

        return run_command(argv)

    return finished(command)
