"""``TensorProto`` and ``SparseTensorProto`` to tensors of the IR.

Every size is checked against the bytes that are there before anything is
allocated. Small tensors, and those in the fields for single types, are decoded at
once; large ones when they are first used, from the message or the file,
without a copy wherever the bytes are laid out as NumPy needs them. If they have
changed by then, that is an error: they never become another weight.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from irc.errors import Error
from irc.frontend.onnx.checks import Place
from irc.frontend.onnx.encoding import Array, decode, encode, entries_needed, field_of, raw_size, wrong_size
from irc.frontend.onnx.external import DataFolder, FileSlice
from irc.ir.limits import MAX_RANK
from irc.ir.tensor import Tensor, sample
from irc.ir.types import DType

if TYPE_CHECKING:
    from onnx import SparseTensorProto, TensorProto

EAGER_BYTES = 1 << 16
"""Tensors in the message are decoded at once up to this size."""

MAX_SPARSE_BYTES = 1 << 31
"""The most that a model's sparse tensors may take as dense arrays: unlike those, they cost a file nothing."""

_MAX_EXTENT = 1 << 60
_EXTERNAL = 1
_SPLAT_CHUNK = 1 << 20


class TensorReader:
    """Reads the tensors of one model.

    Args:
        folder: where external data may lie; None if the model came without a path.
    """

    def __init__(self, folder: DataFolder | None) -> None:
        self.folder = folder
        self._sparse_bytes = 0

    def dense(self, proto: TensorProto, where: Place, region: FileSlice | None = None) -> Tensor:
        """The tensor of ``proto``, whose ``raw_data`` was left in ``region`` if given. Raises IRC129, IRC130."""
        dtype = _dtype(proto.data_type, where)
        shape = _shape(proto.dims, dtype, where)
        numel = math.prod(shape)
        is_external = proto.data_location == _EXTERNAL
        if dtype is DType.STRING and (is_external or region is not None or proto.HasField("raw_data")):
            _fail("strings are stored in string_data, not in raw or external data", where)
        if is_external:
            if self.folder is None:
                raise Error(
                    "IRC130",
                    "its data is external, but it is not known where: give the path of the model instead, or the model "
                    "with its data, as onnx.load reads it by default, or import_model(model, folder=...)",
                    str(where),
                )
            region = self.folder.region(proto.external_data, raw_size(dtype, numel), where)
        if region is not None:
            return _from_region(region, dtype, shape, where)
        if not proto.HasField("raw_data"):
            return _from_field(proto, dtype, shape, where)
        if raw_size(dtype, numel) > EAGER_BYTES:
            return _from_message(proto, dtype, shape, where)
        return _small(proto.raw_data, dtype, shape, where)

    def sparse(self, proto: SparseTensorProto, where: Place) -> Tensor:
        """The sparse tensor of ``proto``, dense. Raises IRC129, IRC130."""
        values = self.dense(proto.values, where)
        dtype = values.dtype
        shape = _shape(proto.dims, dtype, where)
        numel = math.prod(shape)
        self._sparse_bytes += numel * dtype.numpy.itemsize
        if self._sparse_bytes > MAX_SPARSE_BYTES:
            _fail(
                f"sparse tensors take {self._sparse_bytes} bytes as dense ones up to this; the limit for a model is "
                f"{MAX_SPARSE_BYTES}",
                where,
            )
        if len(values.shape) != 1:
            _fail(f"the values of a sparse tensor have one dimension, not shape {values.shape}", where)
        empty: Any = "" if dtype is DType.STRING else 0
        if values.numel == 0 and dtype is not DType.STRING and numel > 1:
            return Tensor.splat(dtype, shape, empty)
        at = self._positions(proto, shape, values.numel, where)

        def load() -> Array:
            dense = np.full(shape, empty, dtype.numpy)
            dense.reshape(-1)[at] = values.numpy()
            return dense

        return Tensor.lazy(dtype, shape, load)

    def _positions(self, proto: SparseTensorProto, shape: tuple[int, ...], count: int, where: Place) -> Array:
        """Where a sparse tensor's values go in the flat dense tensor."""
        tensor = self.dense(proto.indices, where)
        if tensor.dtype is not DType.INT64 or tensor.shape not in ((count,), (count, len(shape))):
            _fail(
                f"the indices of a sparse tensor with {count} values are int64 of shape ({count},) or "
                f"({count}, {len(shape)}), not {tensor.type}",
                where,
            )
        indices = tensor.numpy()
        if len(tensor.shape) == 2:
            if bool(((indices < 0) | (indices >= np.array(shape, np.int64))).any()):
                _fail(f"an index of the sparse tensor lies outside its shape {shape}", where)
            strides = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
            indices = indices @ strides
        elif count and not (int(indices.min()) >= 0 and int(indices.max()) < math.prod(shape)):
            _fail(f"an index of the sparse tensor lies outside its shape {shape}", where)
        if bool((np.diff(indices) <= 0).any()):
            _fail("the indices of a sparse tensor must be ascending, without duplicates", where)
        return indices


def _dtype(number: int, where: Place) -> DType:
    try:
        return DType.from_onnx(number)
    except KeyError:
        _fail(f"{number} is no element type of tensors that irc knows", where)


def _shape(dims: Any, dtype: DType, where: Place) -> tuple[int, ...]:
    shape: tuple[int, ...] = tuple(dims)
    if len(shape) > MAX_RANK:
        _fail(f"a tensor has at most {MAX_RANK} dimensions, not {len(shape)}", where)
    if shape and min(shape) < 0:
        _fail(f"its shape {shape} has a negative size", where)
    if math.prod([d or 1 for d in shape]) * max(1, dtype.numpy.itemsize) >= _MAX_EXTENT:
        _fail(f"its shape {shape} is too large", where)
    return shape


def _from_region(region: FileSlice, dtype: DType, shape: tuple[int, ...], where: Place) -> Tensor:
    needed = raw_size(dtype, math.prod(shape))
    if region.length != needed:
        wrong_size(region.length, needed, dtype, shape, where)
    item = _splat_item(region.view(), dtype)
    if item is not None:
        return _splat(item, dtype, shape)

    # A misaligned array would be copied at each use.
    transient = region.copied or region.offset % dtype.numpy.alignment != 0
    return Tensor.lazy(dtype, shape, lambda: decode(region.view(), dtype, shape, where), transient=transient)


def _from_message(proto: TensorProto, dtype: DType, shape: tuple[int, ...], where: Place) -> Tensor:
    """A tensor in the message, which returns a copy at each access: it is checked now, but not kept.

    Callers may change their message. To make sure that this never changes a model, the hash of the bytes is compared:
    Python's hash for bytes has 64 bits, is keyed for each process, and is faster than most checksums.
    """
    raw = proto.raw_data
    expected = hash(raw)
    seen = sample(decode(raw, dtype, shape, where))

    def load() -> Array:
        raw = proto.raw_data
        if hash(raw) != expected:
            raise Error(
                "IRC130",
                "the message was changed after it was imported and before this weight was first used: import it again, "
                "or change a copy of it",
                str(where),
            )
        return decode(raw, dtype, shape, where)

    return Tensor.lazy(dtype, shape, load, sample=seen)


def _from_field(proto: TensorProto, dtype: DType, shape: tuple[int, ...], where: Place) -> Tensor:
    numel = math.prod(shape)
    if dtype is DType.STRING:
        strings = _strings(proto, numel, shape, where)
        strings.flags.writeable = False
        return Tensor(dtype, shape, array=strings)
    field, _ = field_of(dtype)
    entries = getattr(proto, field)
    expected = entries_needed(dtype, numel)
    if len(entries) != expected:
        _fail(
            f"{dtype.name.lower()} of shape {shape} takes {expected} entries of {field}, not {len(entries)}",
            where,
        )
    if raw_size(dtype, numel) > EAGER_BYTES:
        return Tensor(dtype, shape, array=decode(encode(entries, dtype), dtype, shape, where))
    return _small(encode(entries, dtype).tobytes(), dtype, shape, where)


def _strings(proto: TensorProto, numel: int, shape: tuple[int, ...], where: Place) -> Array:
    if len(proto.string_data) != numel:
        _fail(f"strings of shape {shape} take {numel} entries of string_data, not {len(proto.string_data)}", where)
    array = np.empty(numel, object)
    try:
        array[:] = [s.decode() for s in proto.string_data]
    except UnicodeDecodeError:
        _fail("its strings are not UTF-8", where)
    return array.reshape(shape)


def _small(raw: bytes, dtype: DType, shape: tuple[int, ...], where: Place) -> Tensor:
    """A tensor that is decoded at once."""
    array = decode(raw, dtype, shape, where)
    width = dtype.bits >> 3
    if array.size > 1 and not dtype.bits & 7 and raw == raw[:width] * array.size:
        return _splat(raw[:width], dtype, shape)
    return Tensor(dtype, shape, array=array)


def _splat(item: bytes, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    return Tensor(dtype, shape, scalar=decode(item, dtype, (), ""))


def _splat_item(data: memoryview, dtype: DType) -> bytes | None:
    """The bytes of the element that ``data`` repeats, or None; cheap if the ends differ."""
    width = dtype.bits >> 3
    if dtype.bits & 7 or len(data) <= width:
        return None
    item = bytes(data[:width])
    middle = len(data) // width // 2 * width
    if bytes(data[-width:]) != item or bytes(data[middle : middle + width]) != item:
        return None
    chunk = item * (_SPLAT_CHUNK // width)
    for start in range(0, len(data), len(chunk)):
        part = bytes(data[start : start + len(chunk)])
        if part != chunk[: len(part)]:
            return None
    return item


def _fail(message: str, where: Place) -> NoReturn:
    raise Error("IRC129", message, str(where))
