"""Tensors and attributes of the IR as protos, and where the elements of weights are stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from onnx import AttributeProto, TensorProto

from irc.errors import Error
from irc.frontend.onnx.tensors import pack, raw_size
from irc.frontend.onnx.types import to_proto
from irc.ir import Array, DType, Graph, Tensor, Type

# Tensors of the IR to ``TensorProto``.


MAX_BYTES = 2**31 - 1
"""The largest message that protobuf writes."""

PIECE = 1 << 20
"""Elements of a splat that are in memory at one time; whole bytes, whatever their type."""


def describe(tensor: Tensor, proto: TensorProto, name: str = "") -> None:
    """Give ``proto`` the type, shape and name of ``tensor``, but not its elements."""
    proto.data_type = tensor.dtype.onnx
    proto.dims.extend(tensor.shape)
    proto.name = name


def fill(tensor: Tensor, proto: TensorProto, name: str = "") -> None:
    """Make ``proto``, which is empty, the tensor."""
    describe(tensor, proto, name)
    put(tensor, proto)


def put(tensor: Tensor, proto: TensorProto) -> None:
    """Give ``proto``, which has the type, shape and name of ``tensor``, the elements too. Raises IRC352."""
    if tensor.dtype is DType.STRING:
        proto.string_data.extend([str(s).encode() for s in tensor.peek().reshape(-1).tolist()])
    elif size(tensor) > MAX_BYTES:
        message = f"a constant takes {size(tensor):,} bytes, a message holds {MAX_BYTES:,}"
        raise Error("IRC352", message, f"%{proto.name}")
    else:
        proto.raw_data = raw(tensor).tobytes()


def size(tensor: Tensor) -> int:
    """Bytes that the elements take in a model; approximate for strings."""
    if tensor.dtype is DType.STRING:
        return sum(len(str(s).encode()) + 4 for s in tensor.peek().reshape(-1).tolist())
    return raw_size(tensor.dtype, tensor.numel)


def pieces(tensor: Tensor) -> Iterator[Array]:
    """`raw`, in pieces: splats may stand for more elements than fit into memory."""
    if not tensor.is_splat:
        yield raw(tensor)
        return
    whole, rest = divmod(tensor.numel, PIECE)
    if whole:
        yield from repeat(raw(Tensor.splat(tensor.dtype, (PIECE,), tensor.scalar)), whole)
    if rest:
        yield raw(Tensor.splat(tensor.dtype, (rest,), tensor.scalar))


def raw(tensor: Tensor) -> Array:
    """The elements as they stand in ``raw_data``, contiguous."""
    dtype = tensor.dtype
    array: Array = np.ascontiguousarray(tensor.peek()).reshape(-1)
    if dtype.bits < 8:
        return pack(array.view(np.uint8), dtype.bits)
    if sys.byteorder == "big" and dtype.bits > 8:
        array = array.byteswap()
    return array.view(np.uint8)


# Attributes of the IR to ``AttributeProto``.


FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS, TYPE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13


_SETTERS: dict[int, Callable[[AttributeProto, Any], object]] = {
    FLOAT: lambda proto, value: setattr(proto, "f", value),
    INT: lambda proto, value: setattr(proto, "i", int(value)),
    STRING: lambda proto, value: setattr(proto, "s", value.encode()),
    TENSOR: lambda proto, value: fill(value, proto.t, value.name),
    FLOATS: lambda proto, value: proto.floats.extend(value),
    INTS: lambda proto, value: proto.ints.extend(map(int, value)),
    STRINGS: lambda proto, value: proto.strings.extend([s.encode() for s in value]),
    TENSORS: lambda proto, value: [fill(tensor, proto.tensors.add(), tensor.name) for tensor in value],
    TYPE: lambda proto, value: proto.tp.CopyFrom(to_proto(value)),
}
"""``AttributeProto.AttributeType`` -> how the value is put in. Graphs are their writer's business."""

_BY_CLASS: tuple[tuple[type | tuple[type, ...], int, int], ...] = (
    ((bool, int), INT, INTS),
    (float, FLOAT, FLOATS),
    (str, STRING, STRINGS),
    (Tensor, TENSOR, TENSORS),
)
"""Class of a value, the type of an attribute that is one, and of one that is a list of them."""


def add_attribute(node: Any, name: str, type: int) -> Any:
    """A new attribute of ``node``, a ``NodeProto``, without a value."""
    return node.attribute.add(name=name, type=type)


def write_attribute(proto: AttributeProto, name: str, value: Any, type: int | None, where: str) -> None:
    """Make ``proto``, which is empty, the attribute ``name``.

    Args:
        proto: the attribute.
        name: its name.
        value: a value as nodes hold it, but no graph.
        type: its ``AttributeProto`` type as the operator's schema has it; None: as the value is.
        where: the node in messages.

    Raises:
        Error: IRC350 if ONNX has no such attributes.
    """
    proto.name = name
    found = type_of(value) if type is None else type
    if found not in _SETTERS:
        raise Error("IRC350", f"ONNX has no attributes like {name!r}: {value!r}", where)
    proto.type = found  # type: ignore[assignment]  # an enumeration's number
    try:
        _SETTERS[found](proto, value)
    except (TypeError, ValueError, AttributeError) as error:
        raise Error("IRC350", f"attribute {name!r} is not what the operator takes: {error}", where) from None


def type_of(value: Any) -> int:
    """The type of an attribute that is in no schema; 0 if ONNX has no type for it."""
    if isinstance(value, Graph):
        return GRAPH
    if isinstance(value, Type):
        return TYPE
    is_list = isinstance(value, list)
    first: Any = next(iter(cast("list[Any]", value)), 0) if is_list else value
    return next((many if is_list else one for kind, one, many in _BY_CLASS if isinstance(first, kind)), 0)


# Where the elements of weights go: into the message, or into a file beside it.


ALIGNMENT, PAGE, LARGE = 64, 1 << 16, 1 << 20
"""Weights in files begin at multiples of 64 bytes; from a megabyte on at multiples of 64 KB, so that any system can
map them (the granularity of Windows)."""


class Weights:
    """Takes the tensors of a model that is being written."""

    def add(self, tensor: Tensor, proto: TensorProto, name: str) -> None:
        """Make ``proto``, which is empty, the weight ``name``."""
        raise NotImplementedError


class InMessage(Weights):
    """All weights become part of the message, which they must not make too large."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, tensor: Tensor, proto: TensorProto, name: str) -> None:
        """As in `Weights`. Raises IRC352."""
        self._bytes += size(tensor)
        if self._bytes > MAX_BYTES:
            message = f"the weights take more than the {MAX_BYTES} bytes of a message: save the model by path"
            raise Error("IRC352", message)
        fill(tensor, proto, name)


AUTOMATIC = 1024
"""The threshold of models that do not fit into the message."""

_TAGS = 32
"""More than the tags and lengths of one weight take."""


class _Given(NamedTuple):
    tensor: Tensor
    proto: TensorProto
    length: int


class InFile(Weights):
    """Weights of ``threshold`` bytes or more get a place in one file.

    Once all have been taken, `place` says where each goes, and `write` writes the file.

    Args:
        location: the file's name in the model's folder.
        threshold: smaller ones stay in the message, and so do strings, which ONNX keeps there, and vectors of up to
            1 KB of integers. None: all from 1 KB on go into the file if the message would be too large, and none
            otherwise.
    """

    def __init__(self, location: str, threshold: int | None) -> None:
        self._location = location
        self._threshold = threshold
        self._given: list[_Given] = []
        self._placed: list[tuple[Tensor, int, int]] = []
        self._end = 0

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self._end

    @property
    def is_empty(self) -> bool:
        """Whether all weights are in the message."""
        return not self._placed

    def add(self, tensor: Tensor, proto: TensorProto, name: str) -> None:
        """As in `Weights`; the elements wait for `place`."""
        describe(tensor, proto, name)
        self._given.append(_Given(tensor, proto, size(tensor)))

    def place(self, used: int) -> None:
        """Put each weight into the message or give it a place in the file.

        Args:
            used: the bytes of the message without the elements of weights.

        Raises:
            Error: IRC352 if the message becomes too large.
        """
        threshold = self._threshold
        if threshold is None:
            threshold = MAX_BYTES if used + _total(self._given) <= MAX_BYTES else AUTOMATIC
        inside = [given for given in self._given if not _may_leave(given, threshold)]
        if used + _total(inside) > MAX_BYTES:
            left = f"the model takes {used + _total(inside):,} bytes without the weights of {threshold:,} bytes or more"
            hint = "give a lower threshold for external data"
            raise Error("IRC352", f"{left}, which lie beside it, but a message holds {MAX_BYTES:,}: {hint}")
        for given in inside:
            put(given.tensor, given.proto)
        for given in self._given:
            if _may_leave(given, threshold):
                self._place(*given)

    def _place(self, tensor: Tensor, proto: TensorProto, length: int) -> None:
        step = PAGE if length >= LARGE else ALIGNMENT
        offset = -(-self._end // step) * step
        self._placed.append((tensor, offset, length))
        self._end = offset + length
        proto.data_location = proto.EXTERNAL
        for key, value in (("location", self._location), ("offset", str(offset)), ("length", str(length))):
            proto.external_data.add(key=key, value=value)

    def write(self, file: BinaryIO) -> None:
        """Write the file, one weight in memory at a time."""
        at = 0
        for tensor, offset, length in self._placed:
            file.write(bytes(offset - at))
            for piece in pieces(tensor):
                file.write(piece.data)
            at = offset + length


def _may_leave(given: _Given, threshold: int) -> bool:
    """Whether a tensor may become external data: integer vectors stay, which shape inference reads."""
    tensor = given.tensor
    may_be_shape = tensor.dtype.is_integer and len(tensor.shape) <= 1 and given.length <= AUTOMATIC
    return given.length >= max(1, threshold) and tensor.dtype is not DType.STRING and not may_be_shape


def _total(given: Iterable[_Given]) -> int:
    """Bytes that the elements of weights take in a message."""
    return sum(each.length + _TAGS for each in given)
