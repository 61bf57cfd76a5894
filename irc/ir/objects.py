"""Values of attributes: members of enumerations, objects, tensors that share memory."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from irc.errors import Error
from irc.ir.node import Node
from irc.ir.tensor import Array, Tensor, free_name
from irc.ir.types import ClassType, DictType, DType, EnumType, ListType, OptionalType, TupleType, Type

# Members of enumerations, which TorchScript tells from numbers, strings and objects.


@dataclass(frozen=True)
class EnumMember:
    """A member of an enumeration. Two are equal if they have the same enumeration and name.

    Attributes:
        type: the enumeration.
        name: the member's name in it.
        value: an int, a float or a str. None if it is not known: TorchScript's text has the names of members, but not
            their values.
    """

    type: EnumType
    name: str
    value: int | float | str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.path

    @property
    def path(self) -> str:
        """The name of the member with that of its enumeration: ``__torch__.Color.RED``."""
        return f"{self.type.name}.{self.name}"

    @staticmethod
    def at(path: str, value: int | float | str | None = None) -> EnumMember:
        """The member that has this `path`."""
        type, _, name = path.rpartition(".")
        return EnumMember(EnumType(type), name, value)


def with_members(value: Any, type: Type) -> Any:
    """``value``, of ``type``, with irc's enumeration members in place of Python's (``enum.Enum``)."""
    return _with_members(value, type) if _has_members(type) else value


def _has_members(type: Type) -> bool:
    return isinstance(type, EnumType) or any(map(_has_members, type.inner))


def _with_members(value: Any, type: Type) -> Any:
    if isinstance(type, OptionalType):
        return None if value is None else _with_members(value, type.elem)
    if isinstance(type, ListType) and isinstance(value, list):
        return [_with_members(v, type.elem) for v in cast("list[Any]", value)]
    if isinstance(type, TupleType) and isinstance(value, tuple):
        return tuple(map(_with_members, cast("tuple[Any, ...]", value), type.elems))
    if isinstance(type, DictType) and isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_with_members(k, type.key): _with_members(v, type.value) for k, v in items}
    if not isinstance(type, EnumType) or not isinstance(value, enum.Enum):
        return value
    stands_for: Any = value.value
    return EnumMember(type, value.name, stands_for if isinstance(stands_for, int | float | str) else None)


# Objects that come with a graph's weights: TorchScript's ``self``, a tree of named attributes.
#
# A module lists them by the graph inputs that they are (``Module.objects``). They
# have the attributes' values before the first run; running changes copies.


class Object:
    """An object of a class.

    Attributes:
        type: its class.
        attributes: name -> `Object`, ``Tensor`` or `Strided` (both named: equal names are one memory), a Python
            number, string or None, or a list, tuple or dict of these. Tensors of one name are one tensor, whose shape
            and strides change for all that hold it; so is one `Strided`, while another of the same storage is a tensor
            of its own. In a run there are arrays instead of tensors.
    """

    __slots__ = ("attributes", "type")

    def __init__(self, type: ClassType, attributes: dict[str, Any] | None = None) -> None:
        self.type = type
        self.attributes: dict[str, Any] = {} if attributes is None else attributes

    def __repr__(self) -> str:
        return f"<{self.type}>"


class Strided(NamedTuple):
    """A tensor that shows part of a storage, or a storage that other attributes show too.

    Attributes:
        storage: all elements, one-dimensional.
        shape: its sizes.
        strides: for each dimension, the distance between neighbours in elements of the storage.
        offset: where in the storage it begins.
    """

    storage: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.storage.dtype

    def of(self, storage: Array) -> Array:
        """A new view of ``storage``, an array of the storage's shape, that shows the same elements."""
        steps = tuple(s * storage.itemsize for s in self.strides)
        return np.ndarray(self.shape, storage.dtype, storage, self.offset * storage.itemsize, steps)


def storage_of(tensor: Tensor | Strided) -> Tensor:
    """The tensor whose name identifies the memory."""
    return tensor.storage if isinstance(tensor, Strided) else tensor


# Tensors in the attributes of nodes and objects, also inside of lists, tuples and dictionaries of any depth.


PLAIN = frozenset({bool, int, float, complex, str, bytes})
"""Of these there may be very many."""


def tensors_of(node: Node) -> Iterator[Tensor]:
    """All tensors in the attributes of ``node`` itself."""
    for value in node.attributes.values():
        for tensor in tensors_in(value):
            assert isinstance(tensor, Tensor), "views of storages are attributes of objects only"
            yield tensor


def tensors_in(value: Any) -> Iterator[Tensor | Strided]:
    """All tensors in the value of an attribute of a node or object."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Tensor | Strided):
            yield item
        elif isinstance(item, Object):
            pending.extend(item.attributes.values())
        elif isinstance(item, dict):
            pending.extend(cast("dict[Any, Any]", item).values())
        elif isinstance(item, list | tuple):
            pending.extend(v for v in cast("list[Any]", item) if v.__class__ not in PLAIN)


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The attribute's value with ``change`` applied to all tensors, in new lists and dictionaries."""
    return map_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, Tensor) else leaf)


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change`` applied to all in it but containers, and numbers and texts in these."""
    if isinstance(value, list | tuple):
        items = [v if v.__class__ in PLAIN else map_leaves(v, change) for v in cast("list[Any]", value)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: map_leaves(item, change) for key, item in cast("dict[Any, Any]", value).items()}
    return change(value)


# Which arrays share memory, by their addresses, as named tensors.


def named_tensors(arrays: Mapping[str, Array], taken: Iterable[str] = ()) -> dict[str, Tensor | Strided]:
    """A tensor for each array, with copied contents.

    Names of one array have one tensor. Different arrays that overlap, even if they show the same, become views of one
    storage, named after the first of them: each has a shape and strides of its own, which may change.

    Args:
        arrays: arrays by name.
        taken: names that may not be used.

    Raises:
        Error: IRC143 if arrays of different element types overlap.
    """
    names = set(taken)
    found: dict[str, Tensor | Strided] = {}
    known: dict[int, str] = {}
    for name, array in arrays.items():
        known.setdefault(id(array), name)
    for group in _overlapping({name: arrays[name] for name in known.values()}):
        first = arrays[group[0]]
        key = free_name(group[0], names)
        names.add(key)
        for other in group[1:]:
            if arrays[other].dtype != first.dtype:
                message = f"it shares memory with {group[0]!r}, whose elements are of another type"
                raise Error("IRC143", message, f"attribute {other!r}")
        if len(group) == 1 and is_dense(first):
            found[group[0]] = Tensor(_dtype(first, group[0]), first.shape, name=key, array=first.copy(order="K"))
        else:
            found.update(_views({name: arrays[name] for name in group}, key))
    return {name: found[known[id(array)]] for name, array in arrays.items()}


def _views(arrays: dict[str, Array], key: str) -> dict[str, Strided]:
    """Views of one storage that spans all memory between the first and the last element of ``arrays``."""
    bounds = [_bounds(array) for array in arrays.values()]
    low, high = min(a for a, _ in bounds), max(b for _, b in bounds)
    name, array = next(iter(arrays.items()))
    item = array.itemsize
    storage = np.zeros((high - low) // item, array.dtype)
    views: dict[str, Strided] = {}
    tensor = Tensor(_dtype(array, name), storage.shape, name=key, array=storage)
    for name, array in arrays.items():
        start, _ = _bounds(array)
        steps = tuple(s // item for s in array.strides)
        offset = (address(array) - low) // item
        if (start - low) % item or any(s % item or s < 0 for s in array.strides):
            raise Error("IRC143", "its elements lie at odd places in memory; copy it first", f"attribute {name!r}")
        views[name] = Strided(tensor, array.shape, steps, offset)
        np.copyto(views[name].of(storage), array)
    return views


def _overlapping(arrays: Mapping[str, Array]) -> list[list[str]]:
    """Names of arrays whose ranges of memory overlap, in groups."""
    groups: list[list[str]] = []
    end = -1
    order = {name: i for i, name in enumerate(arrays)}
    for name in sorted(arrays, key=lambda n: (arrays[n].size > 0, _bounds(arrays[n]))):  # empty ones first
        low, high = _bounds(arrays[name])
        if low < end and arrays[name].size:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, high) if arrays[name].size else end
    return [sorted(group, key=order.__getitem__) for group in groups]


def _bounds(array: Array) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high


def address(array: Array) -> int:
    """Where in memory the first element lies."""
    return array.__array_interface__["data"][0]


def is_dense(array: Array) -> bool:
    """Whether the elements fill their range of memory, each at a place of its own."""
    low, high = _bounds(array)
    extent = 1
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride != extent * array.itemsize:
                return False
            extent *= size
    return not array.size or high - low == math.prod(array.shape) * array.itemsize


def _dtype(array: Array, name: str) -> DType:
    try:
        return DType.from_numpy(array.dtype)
    except KeyError:
        raise Error("IRC143", f"irc has no element type for {array.dtype}", f"attribute {name!r}") from None
