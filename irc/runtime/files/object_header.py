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


class Packer:
    """Turns objects into JSON.

    Args:
        table: the tensors that are written; those of the objects are entered.
    """

    def __init__(self, table: dict[str, Tensor]) -> None:
        self._table = table
        self._numbers: dict[int, int] = {}
        """Of views, by identity: equal numbers are one tensor."""

    def pack(self, value: Any) -> Any:
        """An object, or a value of one, as JSON."""
        pack, table = self.pack, self._table
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
        number = self._numbers.setdefault(id(owner), len(self._numbers))
        place = {"shape": view.shape, "strides": view.strides, "offset": view.offset, "view": number}
        return {"tensor": _enter(view.storage, self._table), **place}


def _enter(tensor: Tensor, table: dict[str, Tensor]) -> str:
    """The name under which ``table`` holds ``tensor``."""
    name, n = tensor.name, 0
    while not _same(table.setdefault(name, tensor), tensor):
        n += 1
        name = f"{tensor.name}.{n}"
    return name


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.name == b.name and a.type == b.type and np.shares_memory(a.numpy(), b.numpy()))


class Unpacker:
    """Turns what `Packer` made back into objects.

    Args:
        table: the tensors of the file.
    """

    def __init__(self, table: Mapping[str, Tensor]) -> None:
        self._table = table
        self._views: dict[Any, Strided] = {}

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
            return self._view(fields) if "strides" in fields else self._table[fields["tensor"]]
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
        view = _strided(self._table[fields["tensor"]], fields)
        number = fields.get("view")  # which older files do not have
        if not isinstance(number, int):
            return view
        return self._views.setdefault((number, fields["tensor"], *view[1:]), view)


def _strided(storage: Tensor, fields: dict[str, Any]) -> Strided:
    shape, strides, offset = tuple(fields["shape"]), tuple(fields["strides"]), fields["offset"]
    numbers = (*shape, *strides, offset)
    fits = len(shape) == len(strides) <= MAX_RANK and all(type(n) is int and n >= 0 for n in numbers)
    if fits and math.prod(shape):
        fits = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) < storage.numel
    if not fits or len(storage.shape) != 1 or offset > storage.numel or storage.is_splat:
        raise Error("IRC513", f"a view of {storage.name!r} does not fit into it")
    return Strided(storage, shape, strides, offset)
