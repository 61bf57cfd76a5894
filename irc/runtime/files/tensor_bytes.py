"""Tensors as bytes of a file: where each lies, writing it, mapping it.

Numbers and bools are stored as NumPy holds them in memory, in C order (types
smaller than a byte one byte each); a splat as its one element; strings as
n + 1 64-bit offsets followed by UTF-8 text.
"""

from __future__ import annotations

import math
import mmap
from itertools import pairwise
from typing import Any, BinaryIO, cast

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_RANK
from irc.ir.tensor import Array, Tensor
from irc.ir.types import DType
from irc.runtime.kernels.support import MAX_BYTES

_OFFSET = np.dtype(np.uint64)


def entry_of(tensor: Tensor, offset: int) -> dict[str, Any]:
    """The description of a tensor in a file's header; ``offset`` is relative to the first tensor's."""
    if tensor.dtype is DType.STRING:
        size = sum(part.nbytes for part in _string_parts(_stored(tensor)))
    else:
        size = tensor.dtype.numpy.itemsize if tensor.is_splat else tensor.nbytes
    entry: dict[str, Any] = {"dtype": tensor.dtype.label, "shape": tensor.shape, "offset": offset, "bytes": size}
    return entry | ({"splat": True} if tensor.is_splat else {})


def write_tensor(file: BinaryIO, tensor: Tensor) -> None:
    """Write the bytes that ``entry_of(tensor, ...)`` describes."""
    array = _stored(tensor)
    for part in _string_parts(array) if tensor.dtype is DType.STRING else [array]:
        file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


def tensor_at(contents: mmap.mmap, start: int, entry: dict[str, Any], name: str) -> Tensor:
    """The tensor that ``entry`` describes; its elements stay in the file until they are needed.

    Raises:
        Error: IRC513 if the description is inconsistent or does not fit into the file.
    """
    dtype = DType.from_label(entry["dtype"])
    shape, offset, size = entry["shape"], entry["offset"], entry["bytes"]
    if dtype is None:
        raise Error("IRC513", f"tensor {name!r} has the unknown element type {entry['dtype']!r}")
    sizes = tuple(cast("list[int]", shape)) if isinstance(shape, list) else None
    if sizes is None or len(sizes) > MAX_RANK or not all(map(_is_size, [*sizes, offset, size])):
        raise Error("IRC513", f"tensor {name!r} has impossible sizes, or more than {MAX_RANK} of them")
    is_splat = entry.get("splat") is True
    stored = 1 if is_splat else math.prod(sizes)
    begin = start + offset
    fits = begin + size <= len(contents) and begin % dtype.numpy.itemsize == 0
    if dtype is DType.STRING:
        fits = fits and begin % _OFFSET.itemsize == 0 and (stored + 1) * _OFFSET.itemsize <= size
    else:
        fits = fits and stored * dtype.numpy.itemsize == size
    if not fits or math.prod(sizes) * max(1, dtype.numpy.itemsize) > MAX_BYTES:
        raise Error("IRC513", f"tensor {name!r} of shape {list(sizes)} does not fit into its {size} bytes of the file")
    stored_shape = () if is_splat else sizes

    def read() -> Array:
        if dtype is DType.STRING:
            return _strings(contents[begin : begin + size], stored, name).reshape(stored_shape)
        array = np.frombuffer(contents, np.uint8, size, begin) if size else np.empty(0, np.uint8)
        # Bits above those of the type: code that masks them would see other numbers than code that does not.
        bits = 1 if dtype is DType.BOOL else dtype.bits
        if bits < 8 and (array >> bits).any():
            raise Error("IRC513", f"tensor {name!r} has elements that are no {dtype.label}")
        return array.view(dtype.numpy).reshape(stored_shape)

    if is_splat:
        return Tensor.splat(dtype, sizes, read(), name)
    return Tensor.lazy(dtype, sizes, read, name)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _stored(tensor: Tensor) -> Array:
    return tensor.scalar if tensor.is_splat else tensor.peek()


def _string_parts(array: Array) -> list[Array]:
    # Lone surrogates, which stand for bytes that were no UTF-8, survive.
    texts = [str(s).encode("utf-8", "surrogatepass") for s in array.reshape(-1)]
    offsets = np.zeros(len(texts) + 1, _OFFSET)
    np.cumsum([len(t) for t in texts], out=offsets[1:])
    return [offsets, np.frombuffer(b"".join(texts), np.uint8)]


def _strings(raw: bytes, count: int, name: str) -> Array:
    offsets = np.frombuffer(raw, _OFFSET, count + 1)
    text = raw[offsets.nbytes :]
    if offsets[0] != 0 or offsets[-1] != len(text) or (offsets[1:] < offsets[:-1]).any():
        raise Error("IRC513", f"the strings of tensor {name!r} are inconsistent")
    bounds: list[int] = offsets.tolist()
    array = np.empty(count, object)
    try:
        array[:] = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise Error("IRC513", f"the strings of tensor {name!r} are no UTF-8: {error}") from None
    return array
