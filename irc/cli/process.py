"""A program among others: how it ends, whatever happens to it, and to its streams."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from irc.cli.output import say
from irc.errors import Error

INTERRUPTED = 128 + 2
"""What a shell makes of a program that SIGINT ended."""


def finished(program: Callable[[], int]) -> int:
    """Run ``program``; its exit status, or 1 or more for what goes wrong, which is said on stderr in a line.

    SystemExit after ``--help`` (0) and for wrong usage (2).
    """
    _replace_closed_streams()
    try:
        with _ended_by_signals():
            status = program()
            sys.stdout.flush()
    except Error as error:
        return _fail(str(error))
    except BrokenPipeError:  # whoever reads our results has seen enough
        _discard_stdout()
        return 1
    except MemoryError as error:
        return _fail(str(out_of_memory(error)))
    except OSError as error:  # files are looked after where they are used; what is left is stdout, on a full disk
        _discard_stdout()
        return _fail(f"cannot write the results: {error.strerror or error}")
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except _Ended as ended:
        return _fail(f"ended by {ended.by.name}", 128 + ended.by)
    return status


def out_of_memory(error: MemoryError, where: str = "") -> Error:
    """What a user is told of it."""
    return Error("IRC403", f"memory is exhausted{f': {error}' if str(error) else ''}", where)


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line, by default the program's. SystemExit as of `finished`."""
    try:
        return parser.parse_args(argv)
    except SystemExit:
        sys.stdout.flush()  # what --help writes: when it fails at exit, nobody says so
        raise


class Parser(argparse.ArgumentParser):
    """Of commands, too. What cannot be written to stdout is an error, which argparse keeps silent about."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


class _Ended(BaseException):
    """A signal has asked the program to end."""

    def __init__(self, by: signal.Signals) -> None:
        self.by = by


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """What would end the program at once, SIGTERM or SIGHUP, ends it by way of `_Ended`: no temporary file is left.

    Where a signal is ignored, as under nohup, or handled by the program that runs a command, it stays so.
    """

    def end(number: int, _: object) -> None:
        raise _Ended(signal.Signals(number))

    taken: list[signal.Signals] = []
    try:
        if threading.current_thread() is threading.main_thread():  # no other may
            for each in signal.Signals:
                if each.name in ("SIGTERM", "SIGHUP") and signal.getsignal(each) is signal.SIG_DFL:
                    signal.signal(each, end)
                    taken.append(each)
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _fail(message: str, status: int = 1) -> int:
    say(message)
    return status


def _replace_closed_streams() -> None:
    """Python sets streams that are closed to None; and the next file opened would become the program's stdout.

    Nothing can be written to what stands in for stdout, so that results which are lost are an error.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode))  # noqa: SIM115  # for the life of the program


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, or the interpreter complains when it flushes at exit."""
    with suppress(OSError, ValueError):  # what an embedding program has put in its place may be no file
        stdout = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout)
