"""Containers: what is stored, loaded, and escapes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Constraint, Element, Field
from irc.alias.memory_types import REMEMBERED, atoms, content_types, has_memory, may_hold, parts
from irc.alias.unknown_memory import UnknownMemory
from irc.ir import types
from irc.ir.types import ClassType, TupleType, Type, UnionType

_DEEPEST = 3
"""Objects inside objects of unknown origin that are told apart, from the outermost in; further ones are merged."""


class Heap(UnknownMemory):
    """Records loads, stores and escapes.

    How a pointer or a constraint is recorded is left open: ``AliasDbBuilder``
    notes them, ``Solver`` propagates them.
    """

    @abstractmethod
    def constrain(self, constraint: Constraint) -> None:
        """Note a constraint that depends on the locations of its base."""

    def escape(self, element: Element) -> None:
        """Unknown code may hold what ``element`` denotes from now on."""
        if element != NOTHING:
            self.point(f.ESCAPED, element)

    def load(self, base: Element, type: Type, field: Field = None) -> Element:
        """What a field of what ``base`` denotes holds, if it is of type ``type``."""
        if base == NOTHING or not has_memory(type):
            return NOTHING
        facts = self.facts
        base = facts.resolve(base)
        if base in facts.unknown_atoms:
            return self.unknown(type)  # the unknown is closed under loads: whatever it holds is unknown
        if self._is_location(base):
            return self.content(base, field, type)
        target = facts.new()
        self.constrain(f.Load(base, field, target, type))
        return target

    def store(self, base: Element, source: Element, type: Type, field: Field = None) -> None:
        """Store ``source``, of type ``type``, into a field of what ``base`` denotes."""
        if base == NOTHING or source == NOTHING:
            return
        facts = self.facts
        base = facts.resolve(base)
        if base in facts.unknown_atoms or base in facts.wild_types:
            self.escape(source)
        elif self._is_location(base):
            self.put(base, field, source, type)
        else:
            self.constrain(f.Store(base, field, facts.same(source), type))

    def put(self, location: Element, field: Field, source: Element, type: Type) -> None:
        """Store into the object at ``location``, which is known."""
        held = self.content(location, field, type)
        if held != NOTHING:
            self.point(held, source)

    def _is_location(self, base: Element) -> bool:
        """Whether ``base`` is one known location, or that and unknown memory.

        In the second case the location has escaped, so it holds the same as unknown memory: the order in which the two
        became known does not matter.
        """
        facts = self.facts
        targets = facts.targets[base]
        return targets is None or (base in facts.sites and all(t in facts.unknown_of for t in facts.targets_of(base)))

    def become_unknown(self, element: Element) -> None:
        """What ``element`` denotes may be any unknown memory of its type, and unknown code may hold it."""
        if element != NOTHING:
            self.constrain(f.Unknown(self.facts.same(element)))

    # -- contents --------------------------------------------------------

    def content(self, location: Element, field: Field, type: Type) -> Element:
        """The element of what a field of the object at ``location`` holds; NOTHING if it holds nothing with memory.

        ``type`` is the type of the field. It matters only for attributes of objects:
        elsewhere the type of the object at ``location`` determines it.
        """
        facts = self.facts
        if not may_hold(facts.type_of(location)):
            return NOTHING
        if location in facts.wild_types:
            return self.unknown(_part(facts.wild_types[location], field, type))
        if not facts.has_fields(location):
            field = None
        fields = facts.contents.get(location)
        if fields is None:
            fields = facts.contents[location] = {}
        found = fields.get(field)
        if found is None:
            return self._content(location, field, type, fields)
        if isinstance(field, str) and type != facts.content_type[found]:
            self._widen(location, found, type)
        return found

    def _widen(self, location: Element, element: Element, type: Type) -> None:
        """Note that an attribute, whose content is ``element``, is also used as a ``type``."""
        facts = self.facts
        before = facts.content_type[element]
        facts.content_type[element] = UnionType(tuple(dict.fromkeys((*parts(before), *parts(type)))))
        if location in facts.escaped:
            self.point(element, self.unknown(type))

    def _content(self, location: Element, field: Field, type: Type, fields: dict[Field, Element]) -> Element:
        facts = self.facts
        owner = facts.type_of(location)
        if field is None and facts.has_fields(location):
            return self._all_fields(location, owner, fields)
        if field is None:
            type = _held(owner)
        elif isinstance(owner, TupleType) and isinstance(field, int) and field < len(owner.elems):
            type = owner.elems[field]
        element = fields[field] = facts.new()
        facts.content_type[element] = type
        if has_memory(type):
            self.point(element, self.initial(location, field))
        if location in facts.escaped:
            self.tie(location, field, element)
        whole = fields.get(None)
        if field is not None and whole is not None:
            self.point(whole, element)
        return element

    def _all_fields(self, location: Element, owner: Type, fields: dict[Field, Element]) -> Element:
        """The element of all that an object with fields holds. Fields that are named later are added to it."""
        facts = self.facts
        element = fields[None] = facts.new()
        facts.content_type[element] = types.ANY
        for inner in list(fields.values()):
            self.point(element, inner)
        for field, type in self.known_fields(location, owner):
            self.content(location, field, type)
        if isinstance(owner, ClassType):
            self.point(element, self.initial(location, None))
        if location in facts.escaped:
            self.escape(element)
        return element

    def initial(self, location: Element, field: Field) -> Element:
        """What a field holds before the graph stores anything there; NOTHING if the graph makes the container."""
        return NOTHING if location in self.facts.constructed else self._private(location)

    def known_fields(self, location: Element, owner: Type) -> Iterable[tuple[Field, Type]]:
        """The fields that an object of type ``owner`` has from the start, with their types."""
        return enumerate(owner.elems) if isinstance(owner, TupleType) else ()

    def tie(self, location: Element, field: Field, element: Element) -> None:
        """``element`` is what a field of an escaped object holds: unknown code may have stored or taken things."""
        if field is None:
            self.escape(element)
            if self.facts.has_fields(location):
                return
        self.point(element, self.unknown(self.facts.content_type[element]))

    def _private(self, location: Element) -> Element:
        """Memory that only the object at ``location``, which the graph did not fill, holds.

        One location for all fields, which may hold the same thing twice.
        """
        facts = self.facts
        found = facts.private.get(location)
        if found is None:
            site = facts.site(location)
            if len(site.path) >= _DEEPEST:
                found = location
            else:
                type = _held(site.type)
                inner = site._replace(type=type, path=(*site.path, "[*]"))
                found = facts.of_function(inner) if location in facts.shared else facts.location(inner)
            facts.private[location] = found
        return found


@lru_cache(maxsize=REMEMBERED)
def _held(type: Type) -> Type:
    """The single type of all that has memory in an object of ``type``; Any if there are several, or none."""
    held = dict.fromkeys(t for atom in atoms(type) for t in content_types(atom) if has_memory(t))
    return next(iter(held)) if len(held) == 1 else types.ANY


@lru_cache(maxsize=REMEMBERED)
def _part(atom: Type, field: Field, type: Type) -> Type:
    """The type of a field of an unknown object of type ``atom``; for an attribute, ``type``."""
    if isinstance(field, str):
        return type
    held = content_types(atom)
    if isinstance(field, int) and isinstance(atom, TupleType) and field < len(held):
        return held[field]
    return held[0] if len(held) == 1 else UnionType(held)
