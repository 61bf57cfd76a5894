"""``.irc`` files: compiled models on disk. docs/explanation/runtime.md describes the format.

A file holds IR text and raw tensors: no code, nothing that is executed. Files
are untrusted: every number is checked against the size of the file before
anything is allocated or mapped.

Numbers and bools are stored as NumPy holds them in memory, in C order (types
smaller than a byte one byte each); a splat as its one element; strings as
n + 1 64-bit offsets followed by UTF-8 text.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np

from irc.errors import Error, cannot
from irc.ir import MAX_RANK, Array, Tensor, parse_module, with_subgraphs
from irc.ir.clone import module_of, verify_given
from irc.ir.objects import EnumMember, Object, Strided, map_tensors, tensors_of
from irc.ir.text.printer import print_module
from irc.ir.types import ClassType, DType
from irc.runtime.array_memory import aligned
from irc.runtime.kernels.support import MAX_BYTES
from irc.runtime.report import Report
from irc.support.files import open_regular, replacing, spare_sources

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.runtime.model import CompiledModel


MAGIC = b"\x89IRC\r\n\x1a\n"
"""Like PNG's: shows transfers that strip the eighth bit or change line ends."""

VERSION = 1

_NOT_KEPT: dict[str, Any] = {"backend": "", "declined": {}}
"""What files do not say of a report: what loads a model chooses the backend."""

_PREFIX = struct.Struct("<8sIIQQ")
"""Magic, format version, CRC-32 of the header, bytes of the header, bytes of the file."""


def save(
    model: CompiledModel, path: str | os.PathLike[str], changed: Mapping[str, Object], packed: bool = False
) -> None:
    """Write ``model`` to ``path``, whole or not at all.

    Args:
        model: what is saved.
        path: of the file.
        changed: the objects that no longer are as the model's module says, as they are now.
        packed: whether to write what the backend has made of weights.

    Raises:
        Error: IRC2xx if the graph breaks a rule of the IR, IRC501 if the file cannot be written, IRC503 if its name
            ends in ``.onnx``, or the model is read from it.
    """
    where = os.fsdecode(path)
    if where.lower().endswith(".onnx"):
        raise Error("IRC503", "this is the name of an ONNX file: irc.export(model, path) writes one", where)
    spare_sources(model.module.sources, [where])
    verify_given(model.graph, operators=find_spec("onnx") is not None)  # schemas need it
    module = module_of(model.graph)
    nodes = list(with_subgraphs(*module.graphs.values()))
    for node in nodes:  # large unnamed tensors become weights, so that their bytes are stored instead of their text
        for key, value in node.attributes.items():
            node.attributes[key] = map_tensors(value, partial(module.weights.hold, key))
    used = {tensor.name: tensor for node in nodes for tensor in tensors_of(node) if tensor.name}
    packer = Packer(used)
    objects = {name: packer.pack(value) for name, value in {**module.objects, **changed}.items()}
    tensors = {name: default for name, default in module.defaults.items() if isinstance(default, Tensor)}
    values = {name: packer.pack(default) for name, default in module.defaults.items() if name not in tensors}
    made: Mapping[str, Tensor] = {}
    if packed and model.backend is not None:
        arrays = {name: t.peek() for name, t in used.items() if t.dtype is not DType.STRING and not t.is_splat}
        made = {text: _tensor(array) for text, array in model.backend.packed(arrays).items()}
    table = [*used.values(), *tensors.values(), *made.values()]
    entries: list[dict[str, Any]] = []
    end = 0
    for tensor in table:
        entry = entry_of(tensor, aligned(end))
        end = entry["offset"] + entry["bytes"]
        entries.append(entry)
    sections, rest = {"weights": used, "defaults": tensors, "packed": made}, iter(entries)
    header = json.dumps(
        {
            "byteorder": sys.byteorder,
            "ir": print_module(module),
            **{key: dict(zip(each, rest)) for key, each in sections.items()},
            "values": values,
            "objects": objects,
            "metadata": module.metadata,
            "report": None if model.report is None else {**model.report.to_dict(), **_NOT_KEPT},
        },
        separators=(",", ":"),
    ).encode("ascii")
    start = aligned(_PREFIX.size + len(header))
    with replacing(where) as file:
        file.write(_PREFIX.pack(MAGIC, VERSION, zlib.crc32(header), len(header), start + end))
        file.write(header)
        position = _PREFIX.size + len(header)
        for tensor, entry in zip(table, entries):
            file.write(bytes(start + entry["offset"] - position))
            write_tensor(file, tensor)
            position = start + entry["offset"] + entry["bytes"]
        file.write(bytes(start + end - position))


class Contents(NamedTuple):
    """What a ``.irc`` file holds.

    Attributes:
        module: the model.
        report: on how it was compiled.
        packed: what a backend has made of weights, by texts of its own.
    """

    module: Module
    report: Report | None
    packed: Mapping[str, Tensor]


def read(path: str | os.PathLike[str]) -> Contents:
    """What a ``.irc`` file holds, even if kernels are missing. Errors as of `load`."""
    where = os.fsdecode(path)
    try:
        with open_regular(path) as file:
            header, start, contents = _open(file, where)
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        raise cannot("IRC502", "read the file", error, where) from None
    try:
        module = _module(header, contents, start)
        report = None if header["report"] is None else Report.from_dict(header["report"])
        packed = header.get("packed", {})  # which older files do not have
        packed = {text: tensor_at(contents, start, entry, "packed") for text, entry in packed.items()}
    except Error as error:
        place = f"{error.where}: " if error.where else ""
        raise Error("IRC513", f"the file is inconsistent: {place}{error.message}", where) from error
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise Error("IRC513", f"the file's header is malformed ({error!r})", where) from error
    return Contents(module, report, packed)


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a ``.irc`` file, whatever its name: it begins like one."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path):  # opening a pipe would wait for a writer
            with open(path, "rb") as file:
                return file.read(len(MAGIC)) == MAGIC
    return False


# -- reading -------------------------------------------------------------------


def _open(file: BinaryIO, where: str) -> tuple[dict[str, Any], int, mmap.mmap]:
    """The header, where the tensors start, and the mapped file."""
    prefix = file.read(_PREFIX.size)
    if not prefix.startswith(MAGIC):
        raise Error("IRC510", "this is no .irc file (irc compile makes them from models)", where)
    if len(prefix) < _PREFIX.size:
        raise Error("IRC512", "the file is truncated", where)
    _, version, checksum, header_size, file_size = _PREFIX.unpack(prefix)
    if version != VERSION:
        message = f"the file has format version {version}, this irc reads {VERSION}: update irc or save it again"
        raise Error("IRC511", message, where)
    size = os.fstat(file.fileno()).st_size
    if size != file_size:
        raise Error("IRC512", f"the file is truncated or has grown: {size} bytes instead of {file_size}", where)
    if header_size > file_size - _PREFIX.size:
        raise Error("IRC513", "the file is damaged: its header would be larger than the file", where)
    raw = file.read(header_size)
    if zlib.crc32(raw) != checksum:
        raise Error("IRC513", "the file is damaged: the checksum of its header is wrong", where)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Error("IRC513", f"the file's header is not a JSON: {error}", where) from None
    if not isinstance(header, dict):
        raise Error("IRC513", "the file's header is not a JSON object", where)
    fields = cast("dict[str, Any]", header)
    if fields.get("byteorder") != sys.byteorder:
        raise Error("IRC513", f"the file was written on a {fields.get('byteorder')}-endian machine", where)
    return fields, aligned(_PREFIX.size + header_size), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _module(header: dict[str, Any], contents: mmap.mmap, start: int) -> Module:
    weights = {name: tensor_at(contents, start, entry, name) for name, entry in header["weights"].items()}
    module = parse_module(header["ir"], weights, "IR text")
    for name, weight in module.weights.items():
        if weight.is_absent:
            raise Error("IRC513", f"the weight {name!r} is missing")
    inputs = {value.name for value in module.main.inputs}
    for name, entry in header["defaults"].items():
        module.defaults[name] = tensor_at(contents, start, entry, name)
    unpacker = Unpacker(weights)
    for name, data in header.get("values", {}).items():  # which older files do not have
        module.defaults[name] = unpacker.unpack(data)
    for name in module.defaults:
        if name not in inputs:
            raise Error("IRC513", f"there is a default for {name!r}, which is not an input")
    for name, data in header.get("objects", {}).items():  # which files of before there were objects do not have
        if name not in inputs or not isinstance(value := unpacker.unpack(data), Object):
            raise Error("IRC513", f"there is an object for {name!r}, which is not an object")
        module.objects[name] = value
    module.metadata.update((str(key), str(value)) for key, value in header["metadata"].items())
    module.verify(operators=False)  # schemas were checked when it was saved, and would need onnx
    return module


def _tensor(array: Array) -> Tensor:
    return Tensor(DType.from_numpy(array.dtype), array.shape, array=array)


_OFFSET = np.dtype(np.uint64)


def entry_of(tensor: Tensor, offset: int) -> dict[str, Any]:
    """The description of a tensor in a file's header; ``offset`` is relative to the first tensor's."""
    if tensor.dtype is DType.STRING:
        size = sum(part.nbytes for part in _parts(tensor))
    else:
        size = tensor.dtype.numpy.itemsize if tensor.is_splat else tensor.nbytes
    entry: dict[str, Any] = {"dtype": tensor.dtype.label, "shape": tensor.shape, "offset": offset, "bytes": size}
    return entry | ({"splat": True} if tensor.is_splat else {})


def write_tensor(file: BinaryIO, tensor: Tensor) -> None:
    """Write the bytes that ``entry_of(tensor, ...)`` describes."""
    for part in _parts(tensor):
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


def _parts(tensor: Tensor) -> list[Array]:
    """The arrays whose bytes are written one after the other."""
    array = tensor.scalar if tensor.is_splat else tensor.peek()
    if tensor.dtype is not DType.STRING:
        return [array]
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


_PLAIN = (bool, int, float, str, type(None))


@dataclass
class Packer:
    """Turns objects into JSON.

    Attributes:
        table: the tensors that are written; those of the objects are entered.
        numbers: of views, by identity: equal numbers are one tensor.
    """

    table: dict[str, Tensor]
    numbers: dict[int, int] = field(default_factory=dict[int, int])

    def pack(self, value: Any) -> Any:
        """An object, or a value of one, as JSON."""
        pack, table = self.pack, self.table
        if isinstance(value, Object):
            return {"object": value.type.name, "attributes": {name: pack(v) for name, v in value.attributes.items()}}
        if isinstance(value, Strided):
            return self._view(value, value)
        if isinstance(value, Tensor):
            array = value.numpy()
            if array.flags.c_contiguous or value.is_splat:
                return {"tensor": _enter(value, table)}
            flat = Tensor(value.dtype, (value.numel,), name=value.name, array=array.ravel(order="K"))
            return self._view(Strided(flat, value.shape, tuple(s // array.itemsize for s in array.strides), 0), value)
        if isinstance(value, list | tuple):
            items = [pack(v) for v in cast("list[Any]", value)]
            return {"list" if isinstance(value, list) else "tuple": items}
        if isinstance(value, dict):
            return {"dict": [[pack(k), pack(v)] for k, v in cast("dict[Any, Any]", value).items()]}
        if isinstance(value, EnumMember):
            return {"member": value.path, "value": value.value}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return value

    def _view(self, view: Strided, owner: Strided | Tensor) -> dict[str, Any]:
        """``view`` as JSON, which shows ``owner``."""
        number = self.numbers.setdefault(id(owner), len(self.numbers))
        place = {"shape": view.shape, "strides": view.strides, "offset": view.offset, "view": number}
        return {"tensor": _enter(view.storage, self.table), **place}


def _enter(tensor: Tensor, table: dict[str, Tensor]) -> str:
    """The name under which ``table`` holds ``tensor``."""
    name, n = tensor.name, 0
    while not _same(table.setdefault(name, tensor), tensor):
        n += 1
        name = f"{tensor.name}.{n}"
    return name


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.name == b.name and a.type == b.type and np.shares_memory(a.numpy(), b.numpy()))


@dataclass
class Unpacker:
    """Turns what `Packer` made back into objects.

    Attributes:
        table: the tensors of the file.
        views: those that have been made, by number and place.
    """

    table: Mapping[str, Tensor]
    views: dict[Any, Strided] = field(default_factory=dict[Any, Strided])

    def unpack(self, data: Any) -> Any:
        """The object or value that was packed as ``data``.

        Raises:
            Error: IRC513 if a view reaches beyond its storage, or something is of no known kind.
        """
        unpack = self.unpack
        if isinstance(data, _PLAIN):
            return data
        if not isinstance(data, dict):
            raise Error("IRC513", f"an attribute is a JSON {type(data).__name__}")
        fields = cast("dict[str, Any]", data)
        if "object" in fields:
            attributes = {name: unpack(v) for name, v in fields["attributes"].items()}
            return Object(ClassType(str(fields["object"])), attributes)
        if "tensor" in fields:
            return self._view(fields) if "strides" in fields else self.table[fields["tensor"]]
        if "list" in fields:
            return [unpack(v) for v in fields["list"]]
        if "tuple" in fields:
            return tuple(unpack(v) for v in fields["tuple"])
        if "dict" in fields:
            return {unpack(k): unpack(v) for k, v in fields["dict"]}
        if "member" in fields:
            return EnumMember.at(str(fields["member"]), fields["value"])
        return complex(*fields["complex"])

    def _view(self, fields: dict[str, Any]) -> Strided:
        view = _strided(self.table[fields["tensor"]], fields)
        number = fields.get("view")  # which older files do not have
        if not isinstance(number, int):
            return view
        return self.views.setdefault((number, fields["tensor"], *view[1:]), view)


def _strided(storage: Tensor, fields: dict[str, Any]) -> Strided:
    shape, strides, offset = tuple(fields["shape"]), tuple(fields["strides"]), fields["offset"]
    numbers = (*shape, *strides, offset)
    fits = len(shape) == len(strides) <= MAX_RANK and all(type(n) is int and n >= 0 for n in numbers)
    if fits and math.prod(shape):
        fits = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) < storage.numel
    if not fits or len(storage.shape) != 1 or offset > storage.numel or storage.is_splat:
        raise Error("IRC513", f"a view of {storage.name!r} does not fit into it")
    return Strided(storage, shape, strides, offset)
