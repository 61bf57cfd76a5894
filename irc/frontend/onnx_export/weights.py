"""Where the elements of weights go: into the message, or into a file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from irc.errors import Error
from irc.frontend.onnx_export.tensors import MAX_BYTES, describe, fill, pieces, size
from irc.ir.types import DType

if TYPE_CHECKING:
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


class _Placed(NamedTuple):
    tensor: Tensor
    offset: int
    length: int


class InFile(Weights):
    """Weights of ``threshold`` bytes or more get a place in one file; `write` writes it afterwards.

    Args:
        location: the file's name in the model's folder.
        threshold: smaller ones stay in the message, and so do strings, which ONNX keeps there.
    """

    def __init__(self, location: str, threshold: int) -> None:
        self._location = location
        self._threshold = threshold
        self._placed: list[_Placed] = []
        self._end = 0
        self._inside = InMessage()

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self._end

    @property
    def is_empty(self) -> bool:
        """Whether all weights are in the message."""
        return not self._placed

    def add(self, tensor: Tensor, proto: TensorProto, name: str) -> None:
        """As in `Weights`. Raises IRC352."""
        length = 0 if tensor.dtype is DType.STRING else size(tensor)
        if length < max(1, self._threshold):
            self._inside.add(tensor, proto, name)
            return
        step = PAGE if length >= LARGE else ALIGNMENT
        offset = -(-self._end // step) * step
        self._placed.append(_Placed(tensor, offset, length))
        self._end = offset + length
        describe(tensor, proto, name)
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
