"""Reading what a command is given: ONNX files, .irc files, IR text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irc.cli.output import say
from irc.errors import Error, cannot

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.runtime.model import CompiledModel

TEXT_SUFFIXES = (".ir", ".txt")


def is_text(path: str) -> bool:
    """Whether ``path`` means IR text, by its name; ``-`` is standard input."""
    return path == "-" or Path(path).suffix in TEXT_SUFFIXES


def is_compiled(path: str) -> bool:
    """Whether ``path`` means a compiled model, by its name."""
    return Path(path).suffix == ".irc"


def read_module(path: str) -> Module:
    """The module in a model file of any kind."""
    if is_text(path):
        module = _parse(path)
        module.verify()
        return module
    if is_compiled(path):
        from irc import load

        return load(path).module
    from irc.frontend.onnx import import_model

    return import_model(path)


def source(path: str) -> str | Module:
    """What ``irc.compile`` takes, and verifies, for the model file ``path``; IRC101 if it is compiled already."""
    if is_compiled(path):
        raise Error("IRC101", "this is compiled already: use it with irc run, print, alias or bench", path)
    return _parse(path) if is_text(path) else path


def compiled(path: str, passes: str, tell: Callable[[str], None] | None = None) -> CompiledModel:
    """The model in ``path``, compiled unless it is a ``.irc`` file, which is compiled already."""
    if is_compiled(path):
        from irc import load

        return load(path)
    from irc.compiler import compile

    return compile(source(path), passes, progress=tell)


def read_text(path: str) -> str:
    """The text of a file, or of standard input for ``-``. IRC502 if it cannot be read, IRC504 if it is none."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Error("IRC504", f"this is not UTF-8 text (byte {error.start}), so not IR text", path) from None
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        raise cannot("IRC502", "read the file", error, path) from None


def check_output(path: str, suffixes: Sequence[str], source: str) -> None:
    """Refuse, before any work is done, a file that could not be written or should not be.

    Raises:
        Error: IRC501 the folder does not exist or cannot be written, or the name is too long; IRC503 the name does not
            end in one of ``suffixes``, or it is the file ``source`` that is read, and not text.
    """
    target = Path(path)
    folder = target.parent
    try:
        if suffixes is TEXT_SUFFIXES and target.exists() and not target.is_file() and not target.is_dir():
            return  # a device or a pipe, /dev/stdout say; binary files need one that can tell where it is
        if target.suffix not in suffixes:
            raise Error("IRC503", f"the name of this output must end in {' or '.join(suffixes)}", path)
        if target.is_dir():
            raise Error("IRC501", "this is a folder, not a file to write", path)
        if not folder.is_dir():
            raise Error("IRC501", f"there is no folder {str(folder)!r}: make it first", path)
        if not os.access(folder, os.W_OK):
            raise Error("IRC501", f"the folder {str(folder)!r} may not be written", path)
        if not is_text(source) and target.exists() and os.path.exists(source) and target.samefile(source):
            raise Error("IRC503", "this is the model that is read: give the output another name", path)
    except OSError as error:  # a name that is too long cannot even be asked about
        raise cannot("IRC501", "write the file", error, path) from None


def check_operators(module: Module, strict: bool, path: str) -> None:
    """Tell which operators irc knows nothing of; with ``strict``, refuse them (IRC342)."""
    from irc.alias.unknown import unknown_operators

    lines: list[str] = []
    for graph in module.graphs.values():
        for kind, nodes in unknown_operators(graph).items():
            name = next((f"%{v.name}" for v in nodes[0].outputs), nodes[0].name or "without results")
            count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes, the first"
            lines.append(f"  {kind}: {count} {name}")
    if lines and strict:
        raise Error("IRC342", "irc does not know these operators:\n" + "\n".join(lines), path)
    if lines:
        say("note: irc does not know these operators, and takes them to write whatever they can reach:")
        for line in lines:
            say(line)


def _parse(path: str) -> Module:
    from irc.ir import parse_module

    return parse_module(read_text(path), filename="<stdin>" if path == "-" else path)
