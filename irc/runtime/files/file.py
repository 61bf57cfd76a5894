"""``.irc`` files: compiled models on disk. docs/runtime.md describes the format.

A file holds IR text and raw tensors: no code, nothing that is executed. Files
are untrusted: every number is checked against the size of the file before
anything is allocated or mapped.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from irc.errors import Error, cannot
from irc.files import open_regular, replacing, spare_sources
from irc.ir.attributes import map_tensors, tensors_of
from irc.ir.clone import module_of, verify_given
from irc.ir.functions import with_subgraphs
from irc.ir.objects import Object
from irc.ir.tensor import Tensor
from irc.ir.text.parser import parse_module
from irc.ir.text.printer import print_module
from irc.runtime.files.object_header import Packer, Unpacker
from irc.runtime.files.tensor_bytes import entry_of, tensor_at, write_tensor
from irc.runtime.report import Report

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.runtime.model import CompiledModel

MAGIC = b"\x89IRC\r\n\x1a\n"
"""Like PNG's: shows transfers that strip the eighth bit or change line ends."""

VERSION = 1
ALIGNMENT = 64

_NOT_KEPT: dict[str, Any] = {"backend": "", "declined": {}}
"""What files do not say of a report: what loads a model chooses the backend."""

_PREFIX = struct.Struct("<8sIIQQ")
"""Magic, format version, CRC-32 of the header, bytes of the header, bytes of the file."""


def save(model: CompiledModel, path: str | os.PathLike[str], changed: Mapping[str, Object]) -> None:
    """Write ``model`` to ``path``, whole or not at all.

    Args:
        model: what is saved.
        path: of the file.
        changed: the objects that no longer are as the model's module says, as they are now.

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
    _name_large_constants(module)
    used = _named_tensors(module)
    packer = Packer(used)
    objects = {name: packer.pack(value) for name, value in {**module.objects, **changed}.items()}
    tensors = {name: default for name, default in module.defaults.items() if isinstance(default, Tensor)}
    values = {name: packer.pack(default) for name, default in module.defaults.items() if name not in tensors}
    table = [*used.values(), *tensors.values()]
    entries: list[dict[str, Any]] = []
    end = 0
    for tensor in table:
        entry = entry_of(tensor, _aligned(end))
        end = entry["offset"] + entry["bytes"]
        entries.append(entry)
    header = json.dumps(
        {
            "byteorder": sys.byteorder,
            "ir": print_module(module),
            "weights": dict(zip(used, entries)),
            "defaults": dict(zip(tensors, entries[len(used) :])),
            "values": values,
            "objects": objects,
            "metadata": module.metadata,
            "report": None if model.report is None else {**model.report.to_dict(), **_NOT_KEPT},
        },
        separators=(",", ":"),
    ).encode("ascii")
    start = _aligned(_PREFIX.size + len(header))
    with replacing(where) as file:
        file.write(_PREFIX.pack(MAGIC, VERSION, zlib.crc32(header), len(header), start + end))
        file.write(header)
        position = _PREFIX.size + len(header)
        for tensor, entry in zip(table, entries):
            file.write(bytes(start + entry["offset"] - position))
            write_tensor(file, tensor)
            position = start + entry["offset"] + entry["bytes"]
        file.write(bytes(start + end - position))


def read(path: str | os.PathLike[str]) -> tuple[Module, Report | None]:
    """The module and the report in a ``.irc`` file, whether or not there are kernels for it. Errors as of `load`."""
    where = os.fsdecode(path)
    try:
        with open_regular(path) as file:
            header, start, contents = _open(file, where)
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        raise cannot("IRC502", "read the file", error, where) from None
    try:
        module = _module(header, contents, start)
        report = None if header["report"] is None else Report.from_dict(header["report"])
    except Error as error:
        place = f"{error.where}: " if error.where else ""
        raise Error("IRC513", f"the file is inconsistent: {place}{error.message}", where) from error
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise Error("IRC513", f"the file's header is malformed ({error!r})", where) from error
    return module, report


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a ``.irc`` file, whatever its name: it begins like one."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path):  # opening a pipe would wait for a writer
            with open(path, "rb") as file:
                return file.read(len(MAGIC)) == MAGIC
    return False


# -- writing -------------------------------------------------------------------


def _name_large_constants(module: Module) -> None:
    """Make tensors without a name weights if they are large, so that their bytes are stored and not their text."""
    for node in with_subgraphs(*module.graphs.values()):
        for key, value in node.attributes.items():
            node.attributes[key] = map_tensors(value, partial(module.weights.hold, key))


def _named_tensors(module: Module) -> dict[str, Tensor]:
    """The weights that some node uses; weights that passes have left unused are not stored."""
    nodes = with_subgraphs(*module.graphs.values())
    return {tensor.name: tensor for node in nodes for tensor in tensors_of(node) if tensor.name}


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


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
        raise Error(
            "IRC511",
            f"the file has format version {version}, this irc reads {VERSION}: update irc or save it again",
            where,
        )
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
        raise Error("IRC513", f"the file's header is no JSON: {error}", where) from None
    if not isinstance(header, dict):
        raise Error("IRC513", "the file's header is no JSON object", where)
    fields = cast("dict[str, Any]", header)
    if fields.get("byteorder") != sys.byteorder:
        raise Error("IRC513", f"the file was written on a {fields.get('byteorder')}-endian machine", where)
    return fields, _aligned(_PREFIX.size + header_size), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


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
            raise Error("IRC513", f"there is a default for {name!r}, which is no input")
    for name, data in header.get("objects", {}).items():  # which files of before there were objects do not have
        if name not in inputs or not isinstance(value := unpacker.unpack(data), Object):
            raise Error("IRC513", f"there is an object for {name!r}, which is none")
        module.objects[name] = value
    module.metadata.update((str(key), str(value)) for key, value in header["metadata"].items())
    module.verify(operators=False)  # schemas were checked when it was saved, and would need onnx
    return module
