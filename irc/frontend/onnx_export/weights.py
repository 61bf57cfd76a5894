"""Where the elements of weights go: into the message, or into a file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from irc.errors import Error
from irc.frontend.onnx_export.tensors import MAX_BYTES, describe, fill, pieces, put, size
from irc.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import TensorProto

    from irc.ir.tensor import Tensor

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
            raise Error(
                "IRC352", f"the weights take more than the {MAX_BYTES} bytes of a message: save the model by path"
            )
        fill(tensor, proto, name)


AUTOMATIC = 1024
"""The threshold of models that do not fit into the message."""

_TAGS = 32
"""More than the tags and lengths of one weight take."""


class _Given(NamedTuple):
    tensor: Tensor
    proto: TensorProto
    length: int


class _Placed(NamedTuple):
    tensor: Tensor
    offset: int
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
        self._placed: list[_Placed] = []
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
            raise Error(
                "IRC352",
                f"the model takes {used + _total(inside):,} bytes without the weights of {threshold:,} bytes or more, "
                f"which lie beside it, but a message holds {MAX_BYTES:,}: give a lower threshold for external data",
            )
        for given in inside:
            put(given.tensor, given.proto)
        for given in self._given:
            if _may_leave(given, threshold):
                self._place(*given)

    def _place(self, tensor: Tensor, proto: TensorProto, length: int) -> None:
        step = PAGE if length >= LARGE else ALIGNMENT
        offset = -(-self._end // step) * step
        self._placed.append(_Placed(tensor, offset, length))
        self._end = offset + length
        proto.data_location = proto.EXTERNAL
        for key, value in (("location", self._location), ("offset", str(offset)), ("length", str(length))):
            entry = proto.external_data.add()
            entry.key, entry.value = key, value

    def write(self, file: BinaryIO) -> None:
        """Write the file, one weight in memory at a time."""
        at = 0
        for tensor, offset, length in self._placed:
            file.write(bytes(offset - at))
            for piece in pieces(tensor):
                file.write(piece.data)
            at = offset + length


def _may_leave(given: _Given, threshold: int) -> bool:
    """Vectors of integers stay: they may be shapes or axes, which ONNX Runtime reads when it infers shapes."""
    tensor = given.tensor
    may_be_shape = tensor.dtype.is_integer and len(tensor.shape) <= 1 and given.length <= AUTOMATIC
    return given.length >= max(1, threshold) and tensor.dtype is not DType.STRING and not may_be_shape


def _total(given: Iterable[_Given]) -> int:
    """Bytes that the elements of weights take in a message."""
    return sum(each.length + _TAGS for each in given)
