"""Finding large weights in a serialised model without parsing them.

A ``.onnx`` file is a ``ModelProto`` in protobuf's wire format, nearly all of
it the ``raw_data`` of initializers. Parsing it copies every weight into the
message, and reading a weight from the message copies it again. So the file is
mapped, the weights' places are noted, and protobuf parses what is left:

    ModelProto.graph (7) > GraphProto.initializer (5) > TensorProto.raw_data (9)

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
    for field in _fields(data, graph.body, graph.end):
        if field.number != _INITIALIZER:
            continue
        if field.end - field.body > SMALLEST:
            raw = _raw_data(data, field)
            if raw is not None:
                places[number] = (raw.body, raw.end - raw.body)
                tensor = bytes(data[field.body : raw.start]) + bytes(data[raw.end : field.end])
                chunks += (bytes(data[kept : field.start]), _message(_INITIALIZER, tensor))
                kept = field.end
        number += 1
    chunks.append(bytes(data[kept : graph.end]))
    return b"".join(chunks), places


def _raw_data(data: Buffer, tensor: _Field) -> _Field | None:
    found: _Field | None = None
    for field in _fields(data, tensor.body, tensor.end):
        if field.number == _RAW_DATA:
            if found is not None or not field.is_bytes:
                raise _MalformedError  # the last of several counts: left to protobuf
            found = field
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
