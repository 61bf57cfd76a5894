"""Writing results to stdout and messages to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from irc.support.formatting import printable


def emit(text: str) -> None:
    """Write a `printable` result to stdout, with a line end, as UTF-8 in any locale, as programs may read it."""
    line = printable(text if text.endswith("\n") else text + "\n")
    binary = getattr(sys.stdout, "buffer", None)
    sys.stdout.flush()
    if binary is None:  # what an embedding program has put in its place
        sys.stdout.write(line)
    else:
        binary.write(line.encode("utf-8"))
        binary.flush()


def say(message: str) -> None:
    """Write a line to stderr, over the words that `progress` may be showing."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}irc: {printable(message)}", file=sys.stderr)


@contextmanager
def progress(silent: bool = False) -> Generator[Callable[[str], None]]:
    """A function that shows a few words on stderr, if that is a terminal, until it is called again or the block ends.

    Args:
        silent: show nothing, because something else writes to stderr meanwhile.
    """
    if silent or not sys.stderr.isatty():
        yield lambda message: None
        return
    try:
        yield lambda message: print(f"\r\x1b[K{message}...\r", end="", file=sys.stderr, flush=True)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
