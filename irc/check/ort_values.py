"""Arrays in ONNX Runtime, also of types that NumPy has no names for: bfloat16, floats and integers of few bits.

They are passed by address: an array given must be packed in C order, and a result is read where it lies.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from irc.frontend.onnx.encoding import decode, pack
from irc.ir.tensor import Array
from irc.ir.types import DType
from irc.runtime.values import is_array

_FOREIGN = {f"tensor({dtype.name.lower()})" for dtype in DType if dtype.onnx >= DType.BFLOAT16.onnx}


def is_foreign(declared: str) -> bool:
    """Whether NumPy has no name for the elements of an input or output that ONNX Runtime says is of this type."""
    return declared in _FOREIGN


def to_ort(value: Any) -> Any:
    """An array of such a type as an ``OrtValue``; anything else as it is."""
    if not is_array(value) or value.dtype.isbuiltin != 2:  # NumPy's number for types of other packages
        return value
    from onnxruntime import OrtValue

    dtype = DType.from_numpy(value.dtype)
    held: Array = np.asarray(value, order="C")
    if dtype.bits < 8:  # as many bytes as elements are asked for, of which the first ones are read
        packed = pack(held.reshape(-1).view(np.uint8), dtype.bits)
        held = np.zeros(held.shape, np.uint8)
        held.reshape(-1)[: packed.size] = packed
    return OrtValue.ortvalue_from_numpy_with_onnx_type(held, dtype.onnx)


def from_ort(value: Any) -> Array:
    """The array in an ``OrtValue``."""
    dtype = DType.from_onnx(value.element_type())
    if dtype.onnx < DType.BFLOAT16.onnx:
        return value.numpy()
    raw = (ctypes.c_ubyte * value.tensor_size_in_bytes()).from_address(value.data_ptr())
    return decode(bytes(raw), dtype, tuple(value.shape()), "")
