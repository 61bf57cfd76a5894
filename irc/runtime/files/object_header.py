"""Objects of a module in the header of a ``.irc`` file: JSON, with tensors by the names they are stored under."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from irc.errors import Error
from irc.ir.enumerations import EnumMember
from irc.ir.limits import MAX_RANK
from irc.ir.objects import Object, Strided
from irc.ir.tensor import Tensor
from irc.ir.types import ClassType

_PLAIN = (bool, int, float, str, type(None))


def pack(value: Any, table: dict[str, Tensor]) -> Any:
    """An object, or a value of one, as JSON; the tensors in it are entered into ``table``."""
    if isinstance(value, Object):
        attributes = {name: pack(v, table) for name, v in value.attributes.items()}
        return {"object": value.type.name, "attributes": attributes}
    if isinstance(value, Strided):
        place = {"shape": value.shape, "strides": value.strides, "offset": value.offset}
        return {"tensor": _enter(value.storage, table), **place}
    if isinstance(value, Tensor):
        array = value.numpy()
        if array.flags.c_contiguous or value.is_splat:
            return {"tensor": _enter(value, table)}
        flat = Tensor(value.dtype, (value.numel,), name=value.name, array=array.ravel(order="K"))
        return pack(Strided(flat, value.shape, tuple(s // array.itemsize for s in array.strides), 0), table)
    if isinstance(value, list | tuple):
        items = [pack(v, table) for v in cast("list[Any]", value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict):
        return {"dict": [[pack(k, table), pack(v, table)] for k, v in cast("dict[Any, Any]", value).items()]}
    if isinstance(value, EnumMember):
        return {"member": value.path, "value": value.value}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value


def _enter(tensor: Tensor, table: dict[str, Tensor]) -> str:
    """The name under which ``table`` holds ``tensor``."""
    name, n = tensor.name, 0
    while not _same(table.setdefault(name, tensor), tensor):
        n += 1
        name = f"{tensor.name}.{n}"
    return name


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.name == b.name and a.type == b.type and np.shares_memory(a.numpy(), b.numpy()))


def unpack(data: Any, table: Mapping[str, Tensor]) -> Any:
    """The object or value that `pack` turned into ``data``.

    Raises:
        Error: IRC513 if a view reaches beyond its storage, or something is of no known kind.
    """
    if isinstance(data, _PLAIN):
        return data
    if not isinstance(data, dict):
        raise Error("IRC513", f"an attribute is a JSON {type(data).__name__}")
    fields = cast("dict[str, Any]", data)
    if "object" in fields:
        attributes = {name: unpack(v, table) for name, v in fields["attributes"].items()}
        return Object(ClassType(str(fields["object"])), attributes)
    if "tensor" in fields:
        tensor = table[fields["tensor"]]
        return _strided(tensor, fields) if "strides" in fields else tensor
    if "list" in fields:
        return [unpack(v, table) for v in fields["list"]]
    if "tuple" in fields:
        return tuple(unpack(v, table) for v in fields["tuple"])
    if "dict" in fields:
        return {unpack(k, table): unpack(v, table) for k, v in fields["dict"]}
    if "member" in fields:
        return EnumMember.at(str(fields["member"]), fields["value"])
    return complex(*fields["complex"])


def _strided(storage: Tensor, fields: dict[str, Any]) -> Strided:
    shape, strides, offset = tuple(fields["shape"]), tuple(fields["strides"]), fields["offset"]
    numbers = (*shape, *strides, offset)
    fits = len(shape) == len(strides) <= MAX_RANK and all(type(n) is int and n >= 0 for n in numbers)
    if fits and math.prod(shape):
        fits = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) < storage.numel
    if not fits or len(storage.shape) != 1 or offset > storage.numel:
        raise Error("IRC513", f"a view of {storage.name!r} does not fit into it")
    return Strided(storage, shape, strides, offset)
