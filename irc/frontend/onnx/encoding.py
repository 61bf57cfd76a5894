"""How ONNX writes the elements of tensors: ``raw_data`` and the fields for single types.

``raw_data`` is little-endian; types of 2, 4 and 6 bits are packed from the low
bits up (``onnx.proto``, ``TensorProto``).
"""

from __future__ import annotations

import math
import sys
from typing import Any, NoReturn

import numpy as np

from irc.errors import Error
from irc.frontend.onnx.checks import Place
from irc.ir.tensor import Array
from irc.ir.types import DType

# The field that holds elements outside raw_data, and the type of an entry there.
_INT32 = ("int32_data", np.dtype("<i4"))
_FIELDS: dict[DType, tuple[str, np.dtype[Any]]] = {
    DType.FLOAT: ("float_data", np.dtype("<f4")),
    DType.COMPLEX64: ("float_data", np.dtype("<f4")),
    DType.DOUBLE: ("double_data", np.dtype("<f8")),
    DType.COMPLEX128: ("double_data", np.dtype("<f8")),
    DType.INT64: ("int64_data", np.dtype("<i8")),
    DType.UINT64: ("uint64_data", np.dtype("<u8")),
    DType.UINT32: ("uint64_data", np.dtype("<u8")),
}
_COMPLEX = (DType.COMPLEX64, DType.COMPLEX128)


def field_of(dtype: DType) -> tuple[str, np.dtype[Any]]:
    """The field of ``TensorProto`` with elements of this type outside ``raw_data``, and the type of its entries."""
    return _FIELDS.get(dtype, _INT32)


def entries_needed(dtype: DType, numel: int) -> int:
    """Entries of that field that ``numel`` elements take: 4-bit and 2-bit types share bytes, 6-bit types do not."""
    if dtype in _COMPLEX:
        return 2 * numel
    return -(-numel // (8 // dtype.bits)) if dtype.bits in (2, 4) else numel


def raw_size(dtype: DType, numel: int) -> int:
    """Bytes that ``numel`` elements take in ``raw_data``."""
    return (dtype.bits * numel + 7) // 8


def encode(entries: Any, dtype: DType) -> Array:
    """Entries of a typed field as they would stand in ``raw_data``."""
    _, entry = field_of(dtype)
    array: Array = np.array(entries, entry)
    if dtype.bits == 6:
        return pack(array.astype(np.uint8), 6)
    if entry.itemsize * 8 <= dtype.bits:
        return array
    return array.astype(f"<u{max(1, dtype.bits // 8)}")  # integers wrap, floats are stored as their bits


def decode(raw: Any, dtype: DType, shape: tuple[int, ...], where: Place) -> Array:
    """The elements in ``raw``, read-only, copied only if they must be. Raises IRC129 if they do not fill ``shape``."""
    numel = math.prod(shape)
    array: Array = np.frombuffer(raw, np.uint8)
    needed = raw_size(dtype, numel)
    if array.size != needed:
        wrong_size(array.size, needed, dtype, shape, where)
    if dtype is DType.BOOL:
        array = array != 0  # a bool of another value than 0 and 1 is undefined behaviour in NumPy
    elif dtype.bits < 8:
        array = _unpack(array, dtype.bits, numel)
    array = array.view(dtype.numpy).reshape(shape)
    if sys.byteorder == "big" and dtype.bits > 8:
        array = array.byteswap()
    array.flags.writeable = False
    return array


def _unpack(packed: Array, bits: int, numel: int) -> Array:
    """``numel`` numbers of ``bits`` bits (2, 4 or 6), one a byte."""
    if bits == 6:
        groups = np.zeros((-(-numel // 4), 3), np.uint8)
        groups.reshape(-1)[: packed.size] = packed
        a, b, c = groups[:, 0], groups[:, 1], groups[:, 2]
        parts = [a & 63, (a >> 6) | ((b & 15) << 2), (b >> 4) | ((c & 3) << 4), c >> 2]
    else:
        mask = (1 << bits) - 1
        parts = [(packed >> shift) & mask for shift in range(0, 8, bits)]
    return np.stack(parts, axis=1).reshape(-1)[:numel]


def pack(codes: Array, bits: int) -> Array:
    """Numbers of ``bits`` bits (2, 4 or 6), one a byte, as they stand in ``raw_data``."""
    if bits == 6:
        padded = np.zeros(-(-codes.size // 4) * 4, np.uint8)
        padded[: codes.size] = codes & 63
        a, b, c, d = padded.reshape(-1, 4).T
        packed = np.stack([a | ((b & 3) << 6), (b >> 2) | ((c & 15) << 4), (c >> 4) | (d << 2)], axis=1)
        return packed.reshape(-1)[: -(-codes.size * 6 // 8)]
    per_byte = 8 // bits
    padded = np.zeros((-(-codes.size // per_byte), per_byte), np.uint8)
    padded.reshape(-1)[: codes.size] = codes & ((1 << bits) - 1)
    return np.bitwise_or.reduce(padded << np.arange(0, 8, bits, dtype=np.uint8), axis=1)


def wrong_size(found: int, needed: int, dtype: DType, shape: tuple[int, ...], where: Place) -> NoReturn:
    """Raise IRC129: ``needed`` bytes were expected."""
    message = f"{dtype.name.lower()} of shape {shape} takes {needed} bytes, but {found} are there"
    raise Error("IRC129", message, str(where))
