"""``python -m irc.demo``: compile a real model, show what happened to it, run it, check it."""

import sys

from irc.cli.process import finished


def main() -> int:
    """The exit status: 0 if the compiled model tells two inputs apart and computes for both what the oracle does."""
    from irc.demo.showing import show

    return show()


def _command() -> int:
    from irc.cli.exit_status import Parser, parsed

    parsed(Parser(prog="python -m irc.demo", description=(__doc__ or "").partition(": ")[2].capitalize()))
    return main()


if __name__ == "__main__":
    sys.exit(finished(_command))
