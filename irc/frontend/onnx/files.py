"""Files of models: large weights found without parsing them, and left where they are."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple, NoReturn

from google.protobuf.message import DecodeError
from onnx import ModelProto, StringStringEntryProto

from irc.errors import Error, cannot
from irc.frontend.onnx.types import Place, text
from irc.support.files import open_regular

# Finding large weights in a serialised model without parsing them.
#
# A ``.onnx`` file is a ``ModelProto`` in protobuf's wire format, nearly all of
# it the ``raw_data`` of initializers. Parsing it copies every weight into the
# message, and reading a weight from the message copies it again. So the file is
# mapped, the weights' places are noted, and protobuf parses what is left:
#
#     ModelProto.graph (7) > GraphProto.initializer (5) > TensorProto.raw_data (9)
#
# Wire format: https://protobuf.dev/programming-guides/encoding/


Buffer = memoryview

SMALLEST = 4096
"""``raw_data`` of fewer bytes is left in the message."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Split(NamedTuple):
    """A model without its large weights, and where those are.

    Attributes:
        message: the serialised ``ModelProto`` without them.
        places: number of the initializer -> (offset, length) of its ``raw_data`` in the original.
    """

    message: bytes
    places: dict[int, tuple[int, int]]


class _Field(NamedTuple):
    number: int
    start: int  # of the tag
    body: int  # of the contents, after tag and length
    end: int
    is_bytes: bool


def split(data: Buffer) -> Split | None:
    """Take large weights out of a serialised model.

    None if there are none, or if the data is malformed or unusual: then
    protobuf should read all of it, and report errors.
    """
    try:
        graphs = [f for f in _fields(data, 0, len(data)) if f.number == _GRAPH]
        if len(graphs) != 1 or not graphs[0].is_bytes:
            return None  # several occurrences of one message are merged: left to protobuf
        (graph,) = graphs
        inner, places = _split_graph(data, graph)
    except _MalformedError:
        return None
    if not places:
        return None
    return Split(bytes(data[: graph.start]) + _message(_GRAPH, inner) + bytes(data[graph.end :]), places)


def _split_graph(data: Buffer, graph: _Field) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """The graph's contents without large weights, and the places of those."""
    chunks: list[bytes] = []
    places: dict[int, tuple[int, int]] = {}
    kept, number = graph.body, 0
    for part in _fields(data, graph.body, graph.end):
        if part.number != _INITIALIZER:
            continue
        if part.end - part.body > SMALLEST:
            raw = _raw_data(data, part)
            if raw is not None:
                places[number] = (raw.body, raw.end - raw.body)
                tensor = bytes(data[part.body : raw.start]) + bytes(data[raw.end : part.end])
                chunks += (bytes(data[kept : part.start]), _message(_INITIALIZER, tensor))
                kept = part.end
        number += 1
    chunks.append(bytes(data[kept : graph.end]))
    return b"".join(chunks), places


def _raw_data(data: Buffer, tensor: _Field) -> _Field | None:
    found: _Field | None = None
    for part in _fields(data, tensor.body, tensor.end):
        if part.number == _RAW_DATA:
            if found is not None or not part.is_bytes:
                raise _MalformedError  # the last of several counts: left to protobuf
            found = part
    return found if found is not None and found.end - found.body >= SMALLEST else None


class _MalformedError(Exception):
    pass


def _fields(data: Buffer, at: int, end: int) -> Iterator[_Field]:
    """The fields of the message that fills ``data[at:end]``."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        wire = tag & 7
        is_bytes = wire == _BYTES
        if is_bytes:
            length, at = _varint(data, at, end)
            after = at + length
        elif wire == _VARINT:
            _, after = _varint(data, at, end)
        elif wire == _FIXED64:
            after = at + 8
        elif wire == _FIXED32:
            after = at + 4
        else:
            raise _MalformedError  # groups, which ONNX does not use
        if after > end:
            raise _MalformedError
        yield _Field(tag >> 3, start, at, after, is_bytes)
        at = after


def _varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """The number at ``at`` (seven bits a byte, least significant first), and where it ends."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _MalformedError


def _message(number: int, contents: bytes) -> bytes:
    return _encode(number << 3 | _BYTES) + _encode(len(contents)) + contents


def _encode(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# Bytes of weights in files: external data, and large weights of the model file itself.
#
# Files are memory-mapped when the model is imported and read when a weight is
# first used. The map stays valid when the file is renamed or deleted; if the file has
# been changed in place since, reading fails with IRC130 instead of returning
# other weights than those imported. Once read, a weight is a view of the map
# and is not checked any more: callers must leave the file as it is.
#
# A process may have only a limited number of files open, and some models have hundreds. A
# map holds a descriptor of its own in Python, so the file itself is closed. Changes are
# therefore checked by the file's name. If another file has that name by then, the
# mapped one can no longer be found to be changed, unless it was renamed: then only
# a different size is noticed.


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
        """Whether the file was written to, as far as its name tells: while mapped, its inode is not reused."""
        try:
            status = os.stat(self._name)
        except OSError:
            return False
        return os.path.samestat(status, self._status) and status.st_mtime_ns != self._status.st_mtime_ns


@dataclass(frozen=True, slots=True)
class FileSlice:
    """``length`` bytes at ``offset`` of a file.

    Attributes:
        copied: whether a weight must not stay a view of the map (because the file is likely to be rewritten).
    """

    file: DataFile
    offset: int
    length: int
    copied: bool

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
            _wrong_data(f"its external data is {length} bytes long, but its type and shape take {needed}", where)
        if length > available:
            _wrong_data(f"{file.path} has {available} bytes from offset {offset} on, but {length} are needed", where)
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
            _wrong_data(f"its external data has no valid location: {location!r}", where)
        if posix.is_absolute() or windows.anchor:
            _wrong_data(f"external data must lie in the model's folder, not at the absolute path {location!r}", where)
        if ".." in posix.parts or ".." in windows.parts:
            _wrong_data(f"external data must lie in the model's folder, but {location!r} leaves it", where)
        folder = os.path.realpath(self.folder)
        path = os.path.realpath(os.path.join(folder, location))
        if os.path.commonpath([folder, path]) != folder:
            _wrong_data(f"external data must lie in the model's folder, but {location!r} is a link to {path}", where)
        return path


def _number(text: str, what: str, where: Place) -> int:
    if not (text.isascii() and text.isdecimal()):
        _wrong_data(f"the {what} of its external data is not a number of bytes: {_quoted(text)}", where)
    if len(text) > MAX_DIGITS:
        _wrong_data(f"the {what} of its external data is more than any file has: {_quoted(text)}", where)
    return int(text)


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}..."


def _wrong_data(message: str, where: Place) -> NoReturn:
    raise Error("IRC130", message, str(where))


# Reading a model file: errors of files, and weights left where they are.


MAX_BYTES = 2**31 - 1
"""The largest message that protobuf reads."""

_LFS_POINTER = b"version https://git-lfs"


@dataclass(slots=True)
class Source:
    """A model and where its data is.

    Attributes:
        model: the model.
        folder: where its external data may be; None if not known.
        regions: where ``raw_data`` of some initializers is that ``model`` lacks, by their number.
        path: the real path of the model's file; "" if it came without one.
    """

    model: ModelProto
    folder: DataFolder | None
    regions: dict[int, FileSlice] = field(default_factory=dict[int, FileSlice])
    path: str = ""

    def files(self) -> tuple[str, ...]:
        """Real paths of the files that were opened so far, the model's own first."""
        return (self.path, *(self.folder.files() if self.folder else ()))


def read_file(path: str) -> Source:
    """Read the model file at ``path``. Raises IRC120 (file), IRC121 (contents)."""
    if os.path.isdir(path):
        raise Error("IRC120", "this is a folder, not a model file")
    try:
        file = DataFile(path)
    except FileNotFoundError:
        raise Error("IRC120", "there is no such file") from None
    except (OSError, ValueError) as error:
        raise cannot("IRC120", "read the file", error) from None
    if file.size > MAX_BYTES:
        hint = "save the model with external data (onnx.save_model(..., save_as_external_data=True))"
        message = f"the file has {file.size} bytes, but protobuf reads at most {MAX_BYTES}: {hint}"
        raise Error("IRC120", message)
    data = file.view()
    if bytes(data[: len(_LFS_POINTER)]) == _LFS_POINTER:
        raise Error("IRC121", "this is a Git LFS pointer, not the model itself: fetch it with 'git lfs pull'")
    found = split(data)
    folder = DataFolder(os.path.dirname(path) or ".")
    real = os.path.realpath(path)
    if found is None:
        return Source(_parse(data), folder, path=real)
    regions = {n: FileSlice(file, offset, length, copied=True) for n, (offset, length) in found.places.items()}
    return Source(_parse(found.message), folder, regions, real)


def _parse(data: bytes | memoryview) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(bytes(data))
    except DecodeError as error:
        raise Error(
            "IRC121", f"this is not an ONNX model, {_what_it_is(data) or f'or it is truncated: {error}'}"
        ) from None
    return model


def _what_it_is(data: bytes | memoryview) -> str:
    """A hint at what the file is if it is of another known kind, and what to do with it; else ""."""
    beginning = bytes(data[:512]).lstrip()
    if beginning.startswith(b"PK\x03\x04"):
        return "but an archive: what torch.jit.save has written, irc.compile takes from torch.jit.load(path)"
    return "but IR text: such files are called .ir" if beginning.startswith((b"graph(", b"graph ")) else ""
