"""Reading what a command is given: ONNX files, .irc files, IR text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from irc.cli.output import say
from irc.errors import Error, cannot
from irc.support.formatting import first_of

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.runtime.model import CompiledModel

TEXT_SUFFIXES = (".ir", ".txt")

MAX_TEXT = 2**30
"""Bytes of IR text that are read: weights are not in it, and a million nodes take some 100 MB."""

_CHUNK = 2**20


class Kind(Enum):
    """What a model file holds."""

    TEXT = "IR text"
    COMPILED = "a compiled model"
    ONNX = "an ONNX model"


class ModelFile:
    """A model as a command is given it: a path, or ``-`` for text on standard input.

    Attributes:
        path: as given.
        kind: a compiled model if the file begins like one, else as its name says. Determined when first needed.
        refuse_unknown: whether operators that irc does not know, and that only pass through, are an error (IRC123).
    """

    refuse_unknown = False

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def kind(self) -> Kind:
        from irc.runtime.file import is_saved

        ending = suffix(self.path)
        if self.path == "-":
            return Kind.TEXT
        if ending == ".irc" or is_saved(self.path):
            return Kind.COMPILED
        return Kind.TEXT if ending in TEXT_SUFFIXES else Kind.ONNX

    def module(self) -> Module:
        """The module in it, verified. Of a compiled model nothing else is read, as kernels may be missing."""
        if self.kind is Kind.TEXT:
            module = self._parse()
            module.verify()
        elif self.kind is Kind.COMPILED:
            module = self._read()
        else:
            from irc.frontend.onnx import import_model

            module = import_model(self.path, refuse_unknown=self.refuse_unknown)
            module.verify()
        self._refuse_unknown(module)
        return module

    def _read(self) -> Module:
        from irc.runtime.file import read

        return read(self.path)[0]

    def _refuse_unknown(self, module: Module) -> None:
        if self.refuse_unknown:
            from irc.compiler import refuse_opaque

            refuse_opaque(module, self.path)

    def source(self) -> str | Module:
        """What ``irc.compile`` takes, and verifies.

        Raises:
            Error: IRC101 this is compiled already; IRC502 or IRC510 it only has the name of such a file.
        """
        from irc.runtime.file import is_saved, read

        if self.kind is Kind.COMPILED:
            if not is_saved(self.path):
                read(self.path)  # raises what is wrong with it
            message = "this is compiled already: use it with irc run, print, opt, alias or bench"
            raise Error("IRC101", message, self.path)
        return self._parse() if self.kind is Kind.TEXT else self.path

    def compiled(self, passes: str, tell: Callable[[str], None] | None = None, backend: str = "auto") -> CompiledModel:
        """The model, compiled by ``passes`` unless it is compiled already, to be run by ``backend``."""
        if self.kind is Kind.COMPILED:
            from irc import load

            model = load(self.path, backend=backend)
            self._refuse_unknown(model.module)
            return model
        from irc.compiler import compile

        return compile(self.source(), passes, progress=tell, refuse_unknown=self.refuse_unknown, backend=backend)

    def _parse(self) -> Module:
        from irc.frontend.torchscript.outs import copy_into_outs
        from irc.ir import parse_module

        module = parse_module(self._text, filename="<stdin>" if self.path == "-" else self.path)
        copy_into_outs(module)
        return module

    @cached_property
    def _text(self) -> str:
        """Its text, kept as standard input can be read once.

        Raises:
            Error: IRC502 it cannot be read, IRC504 it is not text, IRC113 it is too large.
        """
        try:
            if self.path == "-":
                data = _bounded(sys.stdin.buffer)
            elif os.path.getsize(self.path) > MAX_TEXT:
                data = None
            else:
                with open(self.path, "rb") as file:
                    data = _bounded(file)
        except (OSError, ValueError) as error:  # the latter for names that no file can have
            raise cannot("IRC502", "read the file", error, self.path) from None
        if data is None:
            raise Error("IRC113", f"IR text has at most {MAX_TEXT} bytes, and this has more", self.path)
        try:
            return data.decode("utf-8-sig")  # some editors begin with a byte order mark
        except UnicodeDecodeError as error:
            raise Error("IRC504", f"this is not UTF-8 text (byte {error.start}), so not IR text", self.path) from None


def suffix(path: str) -> str:
    """The end of a file's name, in lower case: ``.onnx``."""
    return Path(path).suffix.lower()


def _bounded(file: BinaryIO) -> bytearray | None:
    """The contents of a file, which may be a pipe or a device; None if it has more than `MAX_TEXT` bytes."""
    data = bytearray()
    while chunk := file.read(_CHUNK):
        data += chunk
        if len(data) > MAX_TEXT:
            return None
    return data


def check_output(path: str, suffixes: Sequence[str], source: ModelFile) -> None:
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
        if suffix(path) not in suffixes:
            raise Error("IRC503", f"the name of this output must end in {' or '.join(suffixes)}", path)
        if target.is_dir():
            raise Error("IRC501", "this is a folder, not a file to write", path)
        if not folder.is_dir():
            raise Error("IRC501", f"there is no folder {str(folder)!r}: make it first", path)
        if not os.access(folder, os.W_OK):
            raise Error("IRC501", f"the folder {str(folder)!r} may not be written", path)
        is_read = source.kind is not Kind.TEXT and target.exists() and os.path.exists(source.path)
        if is_read and target.samefile(source.path):
            raise Error("IRC503", "this is the model that is read: give the output another name", path)
    except OSError as error:  # a name that is too long cannot even be asked about
        raise cannot("IRC501", "write the file", error, path) from None


def say_passing(module: Module) -> None:
    """Print which operators of an ONNX model are unknown to irc, and only pass through."""
    from irc.ops.opaque import opaque_operators

    passing = opaque_operators(*module.graphs.values())
    if passing:
        say(f"note: irc does not know these operators, and passes them through: {', '.join(passing)}")


def check_operators(module: Module, strict: bool, path: str) -> None:
    """Print which operators are unknown to irc; with ``strict``, refuse them (IRC342)."""
    from irc.alias.rules.describe import unknown_operators
    from irc.ir.kinds import CALL
    from irc.ops.opaque import opaque_operators

    lines: list[str] = []
    if strict:
        lines += [f"  {operator}" for operator in opaque_operators(*module.graphs.values())]
    else:
        say_passing(module)
    for graph in module.graphs.values():
        for kind, nodes in unknown_operators(graph).items():
            name = next((f"%{v.name}" for v in nodes[0].outputs), nodes[0].name or "without results")
            missing = " of functions that the model does not have" if kind == CALL else ""
            lines.append(f"  {kind}{missing}: {first_of(len(nodes), 'node', name)}")
    if lines and strict:
        raise Error("IRC342", "irc does not know these operators:\n" + "\n".join(lines), path)
    if lines:
        say("note: irc does not know these operators, and takes them to write whatever they can reach:")
        for line in lines:
            say(line)
