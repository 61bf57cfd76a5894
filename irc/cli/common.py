"""What several commands share: reading any model, sizes of dimensions, writing files, progress."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from irc.errors import Error

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.passes import Instrument
    from irc.runtime.model import CompiledModel


class Commands(Protocol):
    """Argparse's table of subcommands, as far as it is used here."""

    def add_parser(self, name: str, **kwargs: Any) -> argparse.ArgumentParser:
        """Add a command."""
        ...


TEXT_SUFFIXES = {".ir", ".txt"}


def read_module(path: str) -> Module:
    """The module in an ONNX file, a ``.irc`` file, or IR text (``.ir``, or ``-`` for standard input)."""
    if path == "-" or Path(path).suffix in TEXT_SUFFIXES:
        from irc.ir import parse_module

        return parse_module(read_text(path), filename="<stdin>" if path == "-" else path)
    if Path(path).suffix == ".irc":
        from irc import load

        return load(path).module
    from irc.frontend.onnx import import_model

    return import_model(path)


def read_text(path: str) -> str:
    """The text of a file, or of standard input for ``-``. IRC502 if it cannot be read."""
    try:
        if path == "-":
            return sys.stdin.read()
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise Error("IRC502", f"cannot be read: {error.strerror or error}", path) from None
    except UnicodeDecodeError as error:
        raise Error("IRC502", f"is not UTF-8 text (byte {error.start})", path) from None


def compiled(path: str, options: argparse.Namespace, instruments: Sequence[Instrument] = ()) -> CompiledModel:
    """The model in ``path``, compiled unless it is a ``.irc`` file, which is compiled already."""
    if Path(path).suffix == ".irc":
        from irc import load

        return load(path)
    from irc.compiler import compile

    source = read_module(path) if path == "-" or Path(path).suffix in TEXT_SUFFIXES else path
    return compile(source, options.passes, instruments=instruments, progress=progress())


def progress() -> Callable[[str], None]:
    """Says on stderr, if that is a terminal, what is going on; each message overwrites the last."""
    if not sys.stderr.isatty():
        return lambda message: None
    return lambda message: print(f"\r\x1b[K{message}...\r", end="", file=sys.stderr, flush=True)


def add_pipeline(parser: argparse.ArgumentParser) -> None:
    """The option that chooses the passes."""
    parser.add_argument(
        "-p", "--passes", default="default", metavar="PIPELINE", help='"default", "none", or "cse,dce,fuse{max-size=8}"'
    )


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """The option that sizes named dimensions."""
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a named dimension (default 1)"
    )


def sizes_of(options: argparse.Namespace) -> dict[str, int]:
    """The sizes given by ``--dim``. IRC102 if one is not understood."""
    sizes: dict[str, int] = {}
    for text in options.dim:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise Error("IRC102", "expected NAME=SIZE with a whole number", f"--dim {text}")
        sizes[name] = int(size)
    return sizes


def existing_folder(path: str) -> None:
    """IRC501 unless the folder that ``path`` is to be written into exists: known before the work is done."""
    folder = Path(path).parent
    if Path(path).is_dir():
        raise Error("IRC501", "is a folder, not a file to write", path)
    if not folder.is_dir():
        raise Error("IRC501", f"cannot be written: there is no folder {str(folder)!r}", path)
