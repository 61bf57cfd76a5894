"""Bytes of weights in files: external data, and large weights of the model file itself.

Files are memory-mapped when the model is imported and read when a weight is
first used. The map stays valid when the file is renamed or deleted; if the file has
been changed in place since, reading fails with IRC130 instead of returning
other weights than those imported. Once read, a weight is a view of the map
and is not checked any more: callers must leave the file as it is.

A process may have only a limited number of files open, and some models have hundreds. A
map holds a descriptor of its own in Python, so the file itself is closed. Changes are
therefore checked by the file's name. If another file has that name by then, the
mapped one can no longer be found to be changed, unless it was renamed: then only
a different size is noticed.
"""

from __future__ import annotations

import mmap
import os
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, NoReturn

from irc.errors import Error, cannot
from irc.frontend.onnx.checks import Place, text
from irc.support.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import StringStringEntryProto

MAX_DIGITS = 19
"""Offsets and lengths have at most this many digits: they fit a signed 64-bit number."""


class DataFile:
    """A mapped, read-only file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._name = os.path.realpath(path)
        with open_regular(path) as file:
            self._status = os.fstat(file.fileno())
            self.size = self._status.st_size
            # An empty file cannot be mapped.
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None

    def view(self) -> memoryview:
        """All of the file. Raises IRC130 if it has changed since it was opened."""
        if self._map is None:
            return memoryview(b"")
        if self._map.size() != self.size or self._changed():
            raise Error("IRC130", "the file has changed since the model was imported: import it again", self.path)
        return memoryview(self._map)

    def _changed(self) -> bool:
        """Whether the file was written to, as far as its name tells: no other file has its number while mapped."""
        try:
            status = os.stat(self._name)
        except OSError:
            return False
        return os.path.samestat(status, self._status) and status.st_mtime_ns != self._status.st_mtime_ns


class FileSlice:
    """``length`` bytes at ``offset`` of a file.

    Attributes:
        copied: whether a weight must not stay a view of the map (because the file is likely to be rewritten).
    """

    __slots__ = ("copied", "file", "length", "offset")

    def __init__(self, file: DataFile, offset: int, length: int, copied: bool) -> None:
        self.file = file
        self.offset = offset
        self.length = length
        self.copied = copied

    def view(self) -> memoryview:
        """The bytes, as a view of the mapped file."""
        return self.file.view()[self.offset : self.offset + self.length]


class DataFolder:
    """The folder of a model, the only one its external data may be in."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._files: dict[str, DataFile] = {}

    def region(self, entries: Iterable[StringStringEntryProto], needed: int, where: Place) -> FileSlice:
        """Where a tensor of ``needed`` bytes lies, by its ``external_data``. Raises IRC130."""
        keys = {text(e.key, where): text(e.value, where) for e in entries}
        file = self._open(keys.get("location", ""), where)
        offset = _number(keys.get("offset", "0"), "offset", where)
        available = max(0, file.size - offset)
        length = _number(keys["length"], "length", where) if "length" in keys else needed
        if length != needed:
            _fail(f"its external data is {length} bytes long, but its type and shape take {needed}", where)
        if length > available:
            _fail(f"{file.path} has {available} bytes from offset {offset} on, but {length} are needed", where)
        return FileSlice(file, offset, length, copied=False)

    def files(self) -> list[str]:
        """Real paths of the files that were opened so far."""
        return [file.path for file in self._files.values()]

    def _open(self, location: str, where: Place) -> DataFile:
        file = self._files.get(location)
        if file is None:
            try:
                self._files[location] = file = DataFile(self._resolve(location, where))
            except (OSError, ValueError) as error:
                raise cannot("IRC130", f"read its external data {location!r:.99}", error, str(where)) from None
        return file

    def _resolve(self, location: str, where: Place) -> str:
        """The real path of ``location``, if that is inside the folder."""
        posix, windows = PurePosixPath(location), PureWindowsPath(location)
        if not location or "\0" in location:
            _fail(f"its external data has no valid location: {location!r}", where)
        if posix.is_absolute() or windows.anchor:
            _fail(f"external data must lie in the model's folder, not at the absolute path {location!r}", where)
        if ".." in posix.parts or ".." in windows.parts:
            _fail(f"external data must lie in the model's folder, but {location!r} leaves it", where)
        folder = os.path.realpath(self.folder)
        path = os.path.realpath(os.path.join(folder, location))
        if os.path.commonpath([folder, path]) != folder:
            _fail(f"external data must lie in the model's folder, but {location!r} is a link to {path}", where)
        return path


def _number(text: str, what: str, where: Place) -> int:
    if not (text.isascii() and text.isdecimal()):
        _fail(f"the {what} of its external data is no number of bytes: {_quoted(text)}", where)
    if len(text) > MAX_DIGITS:
        _fail(f"the {what} of its external data is more than any file has: {_quoted(text)}", where)
    return int(text)


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


def _fail(message: str, where: Place) -> NoReturn:
    raise Error("IRC130", message, str(where))
