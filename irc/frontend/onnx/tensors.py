"""Tensors and attributes of messages to those of the IR.

Every size of a ``TensorProto`` or ``SparseTensorProto`` is checked against the bytes that are there before anything is
allocated. Small tensors, and those in the fields for single types, are decoded at
once; large ones when they are first used, from the message or the file,
without a copy wherever the bytes are laid out as NumPy needs them. If they have
changed by then, that is an error: they never become another weight.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from onnx import AttributeProto, SparseTensorProto, TensorProto

from irc.errors import Error
from irc.frontend.onnx.files import DataFolder, FileSlice
from irc.frontend.onnx.opsets import Operator
from irc.frontend.onnx.types import Place, from_proto, text
from irc.ir import MAX_RANK, DType
from irc.ir.tensor import Array, Tensor, sample
from irc.ops import record

# How ONNX writes the elements of tensors: ``raw_data`` and the fields for single types.
#
# ``raw_data`` is little-endian; types of 2, 4 and 6 bits are packed from the low
# bits up (``onnx.proto``, ``TensorProto``).


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
    """The field of ``TensorProto`` for elements of this type outside ``raw_data``, and its entries' type."""
    return _FIELDS.get(dtype, _INT32)


def entries_needed(dtype: DType, numel: int) -> int:
    """The number of entries for ``numel`` elements: 4-bit and 2-bit types share bytes, 6-bit do not."""
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
    """The elements in ``raw``, read-only, copied only if needed; IRC129 if they do not fill ``shape``."""
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


# -- tensors -------------------------------------------------------------------


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
                hint = (
                    "or the model with its data, as onnx.load reads it by default, or import_model(model, folder=...)"
                )
                message = f"its data is external, but it is not known where: give the path of the model instead, {hint}"
                raise Error("IRC130", message, str(where))
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
            taken = f"sparse tensors take {self._sparse_bytes} bytes as dense ones up to this"
            _fail(f"{taken}; the limit for a model is {MAX_SPARSE_BYTES}", where)
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
            wanted = f"int64 of shape ({count},) or ({count}, {len(shape)})"
            _fail(f"the indices of a sparse tensor with {count} values are {wanted}, not {tensor.type}", where)
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
        _fail(f"{number} is not an element type of tensors that irc knows", where)


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
            changed = "the message was changed after it was imported and before this weight was first used"
            raise Error("IRC130", f"{changed}: import it again, or change a copy of it", str(where))
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
        takes = f"{dtype.name.lower()} of shape {shape} takes {expected} entries of {field}"
        _fail(f"{takes}, not {len(entries)}", where)
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


# ``AttributeProto`` to attributes of the IR, checked against the operator's schema.
#
# A schema allows checks of names and types, and of which attributes are required.
# Records and tables add what the specification states in prose: which values are possible.
# Ranges that depend on the inputs are left to shape inference and kernels.


Environment = dict[str, "AttributeProto"]
"""The attributes that a call of a function gives, by name; absent ones are missing."""

FLOAT, INT, STRING, GRAPH, INTS = 1, 2, 3, 5, 7


_CONTENTS = "f i s t g floats ints strings tensors graphs sparse_tensor sparse_tensors tp type_protos".split()
"""The fields of ``AttributeProto`` with the values of attributes of types 1, 2 and so on."""

_LISTS = frozenset({6, 7, 8, 9, 10, 12, 14})
"""Types of attributes that are lists."""

_EMPTY = _LISTS | {FLOAT, INT, STRING}
"""Those that may have no value: empty lists are written as nothing, and some writers omit 0 and ""."""

_CONVERT: dict[int, Callable[[AttributeReader, Any, str, Place], Any]] = {
    FLOAT: lambda r, value, name, where: value,
    INT: lambda r, value, name, where: value,
    STRING: lambda r, value, name, where: value.decode(),
    4: lambda r, value, name, where: r.dense(value, name, where),
    GRAPH: lambda r, value, name, where: None,  # becomes a block
    6: lambda r, value, name, where: list(value),
    INTS: lambda r, value, name, where: list(value),
    8: lambda r, value, name, where: [s.decode() for s in value],
    9: lambda r, value, name, where: [r.dense(t, name, where) for t in value],
    11: lambda r, value, name, where: r.sparse(value, name, where),
    13: lambda r, value, name, where: from_proto(value, where),
}
"""Type of an attribute -> its value in the IR, from that of the field, a name for tensors, and the place."""

_ELEMENT_TYPES = frozenset(d.onnx for d in DType)
_AXES = frozenset(range(-MAX_RANK, MAX_RANK))
_INTEGERS: dict[str, tuple[frozenset[int], str]] = {
    **dict.fromkeys(("to", "dtype", "stash_type"), (_ELEMENT_TYPES, "an element type")),
    **dict.fromkeys(("output_dtype", "softmax_precision"), (_ELEMENT_TYPES | {0}, "an element type or 0")),
    **dict.fromkeys(
        ("axis", "axes", "batch_axis", "time_axis", "perm", "scan_input_axes", "scan_output_axes"),
        (_AXES, f"an axis: tensors have at most {MAX_RANK} dimensions"),
    ),
}
"""Attribute of standard operators -> its possible values, in words too."""

_FINITE = frozenset({"seed"})
"""Attributes of standard operators that cannot be infinite or NaN."""


class AttributeReader:
    """Converts the attributes of nodes.

    Args:
        tensors: reads tensors.
        hold: makes the attribute's value of a tensor and a name for it.
    """

    def __init__(
        self, tensors: TensorReader, hold: Callable[[Tensor, str], Tensor] = lambda tensor, name: tensor
    ) -> None:
        self._tensors = tensors
        self._hold = hold

    def dense(self, proto: TensorProto, name: str, where: Place) -> Tensor:
        """A tensor of an attribute, to be called ``name``."""
        return self._hold(self._tensors.dense(proto, where), name)

    def sparse(self, proto: SparseTensorProto, name: str, where: Place) -> Tensor:
        """As `dense`, for a sparse tensor."""
        return self._hold(self._tensors.sparse(proto, where), name)

    def read(self, protos: Sequence[AttributeProto], operator: Operator, name: str, where: Place) -> dict[str, Any]:
        """All attributes but graphs. Raises IRC127 and what tensors and types raise.

        Args:
            protos: the attributes, references replaced by what they refer to.
            operator: what the schema says of them.
            name: names of tensors are ``name.attribute``.
            where: the node in messages.
        """
        found: dict[str, Any] = {}
        known = operator.attributes
        for proto in protos:
            key = text(proto.name, where)
            expected = known.get(key) if known is not None else None
            if expected is None and known is not None:
                names = ", ".join(sorted(known)) or "none"
                _wrong(f"{operator.name} has no attribute {key!r}; it has {names}", where)
            type = proto.type or (expected[0] if expected else 0)  # IR version 1 gives no types
            if expected is not None and type != expected[0]:
                _wrong(f"attribute {key!r} is {_type_name(type)}, but must be {_type_name(expected[0])}", where)
            if key in found:
                _wrong(f"attribute {key!r} is given twice", where)
            found[key] = value = self.value(proto, type, f"{name}.{key}", where)
            if operator.is_standard:
                _check_value(operator.name, key, type, value, where)
        for key, (_, is_required) in (known or {}).items():
            if is_required and key not in found:
                _wrong(f"{operator.name} needs attribute {key!r}", where)
        return found

    def value(self, proto: AttributeProto, type: int, name: str, where: Place) -> Any:
        """The value of one attribute; None for a graph."""
        if not 0 < type <= len(_CONTENTS):
            _wrong(f"attribute {proto.name!r} has the unknown type {type}", where)
        value: Any = getattr(proto, content_field(type))
        if not (value if type in _LISTS else proto.HasField(content_field(type))):
            others = any(field.name in _CONTENTS for field, _ in proto.ListFields())
            if others or type not in _EMPTY:
                _wrong(f"attribute {proto.name!r} is {_type_name(type)}, but has no such value", where)
        if type not in _CONVERT:
            _wrong("lists of graphs, sparse tensors and types are not supported", where)
        try:
            return _CONVERT[type](self, value, name, where)
        except UnicodeDecodeError:
            _wrong(f"attribute {proto.name!r} is not UTF-8 text", where)


def content_field(type: int) -> str:
    """The field of ``AttributeProto`` that has the value of attributes of ``type``."""
    return _CONTENTS[type - 1]


def substitute(protos: Iterable[AttributeProto], environment: Environment | None, where: Place) -> list[AttributeProto]:
    """Replace references to a function's attributes by the call's; drop absent ones. Raises IRC127.

    Args:
        protos: a node's attributes.
        environment: the call's attributes; None outside of functions.
        where: the node in messages.
    """
    found: list[AttributeProto] = []
    for proto in protos:
        reference = text(proto.ref_attr_name, where)
        if not reference:
            found.append(proto)
        elif environment is None:
            _wrong(f"attribute {proto.name!r} refers to {reference!r} of a function, but is in none", where)
        elif reference in environment:
            given = environment[reference]
            if proto.type and given.type and proto.type != given.type:
                other = f"the function's {reference!r} is {_type_name(given.type)}"
                _wrong(f"attribute {proto.name!r} is {_type_name(proto.type)}, but {other}", where)
            found.append(renamed(given, text(proto.name, where)))
    return found


def renamed(proto: AttributeProto, name: str) -> AttributeProto:
    """``proto`` under another name: a copy, unless it has that name."""
    if proto.name == name:
        return proto
    copy = deepcopy(proto)
    copy.name = name
    return copy


def _check_value(operator: str, key: str, type: int, value: Any, where: Place) -> None:
    """Check the value of an attribute of a standard operator."""
    if type == STRING:
        choices = record(f"onnx::{operator}").attributes.get(key)
        if isinstance(choices, tuple) and value not in choices:
            _wrong(f"attribute {key!r} of {operator} is one of {', '.join(map(str, choices))}, not {value!r}", where)
    elif type in (INT, INTS) and key in _INTEGERS:
        allowed, words = _INTEGERS[key]
        for number in [value] if type == INT else value:
            if number not in allowed:
                _wrong(f"attribute {key!r} is out of range: {number} is not {words}", where)
    elif type == FLOAT and key in _FINITE and not math.isfinite(value):
        _wrong(f"attribute {key!r} is out of range: {value} is not a finite number", where)


def _type_name(type: int) -> str:
    known: dict[int, str] = {number: name for name, number in AttributeProto.AttributeType.items()}
    return known.get(type, f"of the unknown type {type}")


def _wrong(message: str, where: Place) -> NoReturn:
    raise Error("IRC127", message, str(where))
