"""The memory of objects that come with a module: each attribute's storage is known."""

from __future__ import annotations

from typing import Any, cast

from irc.alias.facts import NOTHING, Element, Field, Site
from irc.alias.heap import Heap
from irc.alias.locations import Kind
from irc.ir import types
from irc.ir.objects import Object, Strided, storage_of
from irc.ir.tensor import Tensor
from irc.ir.types import DictType, ListType, TupleType, Type


def known_memory(heap: Heap, value: Any, path: str) -> Element:
    """The element of an object or attribute, what it holds included.

    Attributes with the same storage are one location, which a constant of the
    same name is too.
    """
    if isinstance(value, Tensor | Strided):
        name = storage_of(value).name
        if name not in heap.facts.constants:
            heap.facts.constants[name] = heap.facts.location(Site(Kind.ATTRIBUTE, name, types.TENSOR))
        return heap.facts.same(heap.facts.constants[name])
    held = _held(value)
    if held is None:
        return NOTHING
    location = heap.facts.location(Site(Kind.ATTRIBUTE, path, _type(value)))
    heap.facts.constructed.add(location)
    for i, (field, inner) in enumerate(held):
        element = known_memory(heap, inner, f"{path}.{field if isinstance(field, str) else i}")
        if element != NOTHING:
            heap.store(location, element, _type(inner), field)
    return location


def _held(value: Any) -> list[tuple[Field, Any]] | None:
    """What an object or container holds, and in which fields; None if ``value`` is neither."""
    if isinstance(value, Object):
        return list(value.attributes.items())
    if isinstance(value, tuple):
        return list(enumerate(cast("tuple[Any, ...]", value)))
    if isinstance(value, list):
        return [(None, inner) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        return [(None, inner) for inner in cast("dict[Any, Any]", value).values()]
    return None


def _type(value: Any) -> Type:
    """The type of an attribute's value, elements of lists and dictionaries left open."""
    if isinstance(value, Object):
        return value.type
    if isinstance(value, Tensor | Strided):
        return types.TENSOR
    if isinstance(value, list):
        return ListType(types.ANY)
    if isinstance(value, dict):
        return DictType(types.ANY, types.ANY)
    if isinstance(value, tuple):
        return TupleType(tuple(map(_type, cast("tuple[Any, ...]", value))))
    return types.ANY
