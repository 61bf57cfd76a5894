"""Results on stdout, messages on stderr, and how the program ends, whatever happens to the streams."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from irc.errors import Error, cannot
from irc.support.formatting import printable


def emit(text: str) -> None:
    """Write a `printable` result and a line end to stdout, as UTF-8 in any locale, for programs."""
    line = printable(text if text.endswith("\n") else text + "\n")
    binary = getattr(sys.stdout, "buffer", None)
    sys.stdout.flush()
    if binary is None:  # what an embedding program has put in its place
        sys.stdout.write(line)
    else:
        binary.write(line.encode("utf-8"))
        binary.flush()


def emit_json(result: Any) -> None:
    """Write a result to stdout as JSON. What has no number in JSON, infinities and NaN, is a string."""
    emit(json.dumps(result, indent=2, allow_nan=False))


def show(result: Any, as_json: bool) -> int:
    """Write a result to stdout: its text, or as JSON what its ``to_dict`` gives. The exit status, 0."""
    if as_json:
        emit_json(result.to_dict())
    else:
        emit(str(result))
    return 0


def say(message: str) -> None:
    """Write a line to stderr, over the words that `progress` may be showing."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}irc: {printable(message)}", file=sys.stderr)


@contextmanager
def progress(silent: bool = False) -> Generator[Callable[[str], None]]:
    """A function that shows a few words on stderr, if a terminal, until the next call or the block's end.

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


# -- the end -------------------------------------------------------------------


def status_of(program: Callable[[], int]) -> int:
    """The exit status of ``program``, for `irc.cli.finished`, which handles KeyboardInterrupt."""
    try:
        with _ended_by_signals():
            status = program()
            sys.stdout.flush()
    except Error as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader of the results has closed the pipe
        _discard_stdout()
        return 1
    except MemoryError as error:
        return _fail(str(out_of_memory(error)))
    except OSError as error:  # files are looked after where they are used; what is left is stdout, on a full disk
        _discard_stdout()
        return _fail(str(cannot("IRC501", "write the results", error)))
    except _Ended as ended:
        return _fail(f"ended by {ended.by.name}", 128 + ended.by)
    return status


def out_of_memory(error: MemoryError, where: str = "") -> Error:
    """The message for a user when memory runs out."""
    return Error("IRC403", f"memory is exhausted{f': {error}' if str(error) else ''}", where)


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line, by default the program's. SystemExit as of `finished`.

    Errors are reported by the subcommand that they concern, through the ``usage_error`` of the options.
    """
    try:
        options, unknown = parser.parse_known_args(argv)
        if unknown:
            getattr(options, "usage_error", parser.error)(f"unrecognized arguments: {' '.join(unknown)}")
        return options
    except SystemExit:
        sys.stdout.flush()  # what --help writes: a failure at exit would go unreported
        raise


class Parser(argparse.ArgumentParser):
    """The parser and its subparsers. Failing to write to stdout is an error, which argparse ignores."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # by name: not all are everywhere


class _Ended(BaseException):
    """A signal has asked the program to end."""

    def __init__(self, by: signal.Signals) -> None:
        self.by = by


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """Let SIGTERM and SIGHUP end the program by `_Ended`, so that temporary files are removed.

    Signals that are ignored, as under nohup, or handled by a program around the command, are not changed.
    """
    asked: list[BaseException] = []

    def end(number: int, _: object) -> None:
        asked.append(KeyboardInterrupt() if number == signal.SIGINT else _Ended(signal.Signals(number)))
        raise asked[-1]

    taken: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # no other may
            for each in signal.Signals:
                handler = signal.getsignal(each)
                if each.name in _ENDING and handler in (signal.SIG_DFL, signal.default_int_handler):
                    taken[each] = handler
                    signal.signal(each, end)
        yield
    except BaseException:
        if asked:  # C code that is being imported may have made an ImportError of it
            raise asked[-1] from None
        raise
    finally:
        for each, handler in taken.items():
            signal.signal(each, handler)


def _fail(message: str, status: int = 1) -> int:
    say(message)
    return status


def _discard_stdout() -> None:
    """Discard buffered output; otherwise the interpreter reports an error when it flushes at exit."""
    with suppress(OSError, ValueError):  # what an embedding program has put in its place may not be a file
        stdout = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout)
