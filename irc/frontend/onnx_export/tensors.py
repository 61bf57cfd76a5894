"""Tensors of the IR to ``TensorProto``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.frontend.onnx.encoding import pack, raw_size
from irc.ir.tensor import Array, Tensor
from irc.ir.types import DType

if TYPE_CHECKING:
    from onnx import TensorProto


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
