"""Tensors of the IR to ``TensorProto``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.frontend.onnx.encoding import pack, raw_size
from irc.ir.types import DType

if TYPE_CHECKING:
    from onnx import TensorProto

    from irc.ir.tensor import Tensor

Array = np.ndarray[Any, Any]


def describe(tensor: Tensor, proto: TensorProto, name: str = "") -> TensorProto:
    """Give ``proto`` the type, shape and name of ``tensor``, but not its elements."""
    proto.data_type = tensor.dtype.onnx
    proto.dims.extend(tensor.shape)
    proto.name = name
    return proto


def fill(tensor: Tensor, proto: TensorProto, name: str = "") -> TensorProto:
    """Make ``proto``, which is empty, the tensor."""
    describe(tensor, proto, name)
    if tensor.dtype is DType.STRING:
        proto.string_data.extend([str(s).encode() for s in tensor.peek().reshape(-1).tolist()])
    else:
        proto.raw_data = raw(tensor).tobytes()
    return proto


def size(tensor: Tensor) -> int:
    """Bytes that the elements take in a model, about those for strings."""
    if tensor.dtype is DType.STRING:
        return sum(len(str(s).encode()) + 4 for s in tensor.peek().reshape(-1).tolist())
    return raw_size(tensor.dtype, tensor.numel)


def raw(tensor: Tensor) -> Array:
    """The elements as they stand in ``raw_data``, contiguous."""
    dtype = tensor.dtype
    array: Array = np.ascontiguousarray(tensor.peek()).reshape(-1)
    if dtype.bits < 8:
        return pack(array.view(np.uint8), dtype.bits)
    if sys.byteorder == "big" and dtype.bits > 8:
        array = array.byteswap()
    return array.view(np.uint8)
