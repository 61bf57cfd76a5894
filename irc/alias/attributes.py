"""The memory of what comes with a model: what its objects' attributes and its constant containers hold before a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from irc.alias.facts import NOTHING, Element, Facts, Field, Site
from irc.alias.heap import Heap
from irc.alias.locations import Kind
from irc.alias.memory_types import has_memory
from irc.ir import types
from irc.ir.builder import type_of_constant
from irc.ir.objects import Object, Strided, storage_of
from irc.ir.tensor import Tensor
from irc.ir.types import DictType, ListType, TupleType, Type, UnionType
from irc.ir.value import Value


class Attributes(Heap):
    """A heap with known objects. Attributes are looked at when they are first asked for."""

    def __init__(self, facts: Facts) -> None:
        self._locations = {id(given): location for location, given in facts.objects.items()}
        super().__init__(facts)

    def object(self, given: Object, owner: Value) -> Element:
        """The location of an object that comes with the model as the graph input ``owner``."""
        return self._object(given, Site(Kind.ATTRIBUTE, owner, given.type))

    def constant(self, name: str, type: Type, kind: Kind = Kind.CONSTANT) -> Element:
        """The location of the model's tensor called ``name``: one for all constants and attributes of that name."""
        element = self.facts.constants.get(name)
        if element is None:
            element = self.facts.constants[name] = self.facts.location(Site(kind, name, type))
        return element

    def initial(self, location: Element, field: Field) -> Element:
        given = self.facts.objects.get(location)
        if given is None:
            return super().initial(location, field)
        if not isinstance(field, str) or field not in given.attributes:
            return NOTHING
        return self._given(location, f".{field}", given.attributes[field])

    def known_fields(self, location: Element, owner: Type) -> Iterable[tuple[Field, Type]]:
        given = self.facts.objects.get(location)
        if given is None:
            return super().known_fields(location, owner)
        return [(name, type_of(attribute)) for name, attribute in given.attributes.items()]

    def _object(self, given: Object, site: Site) -> Element:
        location = self._locations.get(id(given))
        if location is None:
            location = self._locations[id(given)] = self.facts.location(site)
            self.facts.objects[location] = given
            self.facts.constructed.add(location)
        return location

    def _given(self, location: Element, step: str, attribute: Any) -> Element:
        """The element of what the object at ``location`` holds as ``attribute``."""
        owner, type = self.facts.site(location), type_of(attribute)
        site = owner._replace(type=type, path=(*owner.path, step))
        if isinstance(attribute, Tensor | Strided):
            name = storage_of(attribute).name
            return self.constant(name, types.TENSOR, owner.kind) if name else self.facts.location(site)
        if not has_memory(type):
            return NOTHING
        if isinstance(attribute, Object):
            return self._object(attribute, site)
        made = self.facts.location(site)
        self.fill(made, attribute)
        return made

    def fill(self, made: Element, attribute: Any) -> None:
        """From the start, the container at ``made`` holds exactly the items of ``attribute``."""
        self.facts.constructed.add(made)
        items = cast("dict[Any, Any]", attribute).values() if isinstance(attribute, dict) else attribute
        for i, item in enumerate(cast("Iterable[Any]", items)):
            self.store(made, self._given(made, f"[{i}]", item), type_of(item), i)


def type_of(attribute: Any) -> Type:
    """The type of an object's attribute."""
    if isinstance(attribute, Tensor | Strided):
        return types.TENSOR
    if isinstance(attribute, Object):
        return attribute.type
    if isinstance(attribute, tuple):
        return TupleType(tuple(map(type_of, cast("tuple[Any, ...]", attribute))))
    if isinstance(attribute, list):
        return ListType(_one_of(cast("list[Any]", attribute)))
    if isinstance(attribute, dict):
        held = cast("dict[Any, Any]", attribute)
        return DictType(_one_of(held.keys()), _one_of(held.values()))
    return type_of_constant(attribute)


def _one_of(items: Iterable[Any]) -> Type:
    found = tuple(dict.fromkeys(map(type_of, items)))
    return found[0] if len(found) == 1 else UnionType(found) if found else types.ANY
