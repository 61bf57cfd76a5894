"""Memory of which nothing is known but a type.

For each atom (see `irc.alias.memory_types`) there are up to two elements: what an *unknown* value of that type may be,
and all memory of that type that has *escaped*. Two unknown values may be the same, and an unknown value may be what
escaped, if and only if their types overlap.

Atoms of one *family* (one constructor; for tuples, one length) may overlap. Closed atoms overlap only themselves and
open ones, so a closed atom is compared with the open ones, not with thousands of closed ones. Where a family
has more open atoms than `MOST_OPEN`, they count as one that overlaps all of the family: n types that all
overlap would need n² pointers.
"""

from __future__ import annotations

from collections.abc import Callable

from irc.alias import facts as f
from irc.alias.facts import Atoms, Element, Facts, Family, Kind, Site
from irc.alias.memory_types import atoms, is_closed, type_intersection
from irc.ir.types import ANY, TENSOR, TensorType, TupleType, Type

MOST_OPEN = 64
"""Open atoms of a family that are told apart."""


class UnknownMemory:
    """Makes the elements of unknown memory, and relates them by the types that they have in common.

    Args:
        facts: where they are kept.
        point: records that one element may denote whatever another does.
    """

    def __init__(self, facts: Facts, point: Callable[[Element, Element], None]) -> None:
        self.facts = facts
        self._point = point
        self._tensor = self._unknown_atom(TENSOR)

    def of(self, type: Type) -> Element:
        """The element of a value of which nothing but its type is known."""
        if type.__class__ is TensorType:
            return self._tensor
        found = self.facts.unknown.get(type)
        if found is None:
            found = self.facts.unknown[type] = self.facts.join([self._unknown_atom(atom) for atom in atoms(type)])
            self.facts.unknown_of.setdefault(found, type)
        return found

    def add_escaped(self, location: Element) -> None:
        """``location``, which has escaped, may be any unknown value of a type that overlaps its own."""
        for atom in atoms(self.facts.type_of(location)):
            self._point(self._escaped_atom(atom), location)

    def _unknown_atom(self, atom: Type) -> Element:
        """The element of an unknown value of an atom.

        It points to one location of unknown memory for each type that both it and some other unknown value may have.
        """
        unknown = self.facts.unknown
        found = unknown.get(atom)
        if found is not None:
            return found
        element = unknown[atom] = self.facts.new()
        self.facts.unknown_atoms[element] = self.facts.unknown_of[element] = atom
        family = self._family(atom)
        # Entered before anything is pointed to: that may make further types known, which then see this one.
        _side(family, atom).unknown.append(atom)
        own = self._location(atom)
        if family.merged is None:
            for other in self._unknown_beside(atom, family):
                common = self._location(type_intersection(atom, other) or atom)
                self._point(element, common)
                self._point(unknown[other], common)
            for escaped in self._escaped_beside(atom, family):
                self._point(element, escaped)
            self._merge_if_many(family)
        else:
            self._point(element, own)
            self._point(family.merged, own)
            self._point(element, family.merged_escapes if is_closed(atom) else family.merged)
            if atom in family.closed.escaped:
                self._point(element, family.closed.escaped[atom])
        if atom != ANY:
            if ANY in unknown:
                self._point(unknown[ANY], own)
            for escaped in self._family(ANY).open.escaped.values():
                self._point(element, escaped)
        return element

    def _escaped_atom(self, atom: Type) -> Element:
        """The element of all that escaped and may be of an atom by its own type."""
        unknown, family = self.facts.unknown, self._family(atom)
        side = _side(family, atom)
        found = side.escaped.get(atom)
        if found is not None:
            return found
        element = side.escaped[atom] = self.facts.new()
        if family.merged is None:
            for other in self._unknown_beside(atom, family):
                self._point(unknown[other], element)
            self._merge_if_many(family)
        else:
            self._point(family.merged, element)
            if side is family.open:
                self._point(family.merged_escapes, element)
            elif atom in unknown:
                self._point(unknown[atom], element)
        if atom != ANY and ANY in unknown:
            self._point(unknown[ANY], element)
        return element

    def _unknown_beside(self, atom: Type, family: Family) -> list[Type]:
        """The atoms with an unknown element that overlap ``atom``, itself included; Any only for Any itself."""
        if atom == ANY:
            return [
                other for each in self.facts.families.values() for other in (*each.open.unknown, *each.closed.unknown)
            ]
        if not is_closed(atom):
            return [
                other
                for other in (*family.open.unknown, *family.closed.unknown)
                if type_intersection(atom, other) is not None
            ]
        own = [atom] if atom in self.facts.unknown else []
        return own + [other for other in family.open.unknown if type_intersection(atom, other) is not None]

    def _escaped_beside(self, atom: Type, family: Family) -> list[Element]:
        """The elements of what escaped and has an atom overlapping ``atom``, itself included; Any as above."""
        if atom == ANY:
            return [
                e
                for each in self.facts.families.values()
                for side in (each.open, each.closed)
                for e in side.escaped.values()
            ]
        if not is_closed(atom):
            several = (*family.open.escaped.items(), *family.closed.escaped.items())
            return [e for other, e in several if type_intersection(atom, other) is not None]
        own = [family.closed.escaped[atom]] if atom in family.closed.escaped else []
        return own + [e for other, e in family.open.escaped.items() if type_intersection(atom, other) is not None]

    def _merge_if_many(self, family: Family) -> None:
        """Let open atoms of ``family`` count as one that overlaps all of the family, once they are too many."""
        opened, closed, unknown = family.open, family.closed, self.facts.unknown
        if family.merged is not None or len({*opened.unknown, *opened.escaped}) <= MOST_OPEN:
            return
        merged = family.merged = self.facts.new()
        self.facts.merges_types = True
        family.merged_escapes = self.facts.new()
        for atom in (*opened.unknown, *closed.unknown):
            self._point(merged, self._location(atom))
        for element in (*opened.escaped.values(), *closed.escaped.values()):
            self._point(merged, element)
        for element in list(opened.escaped.values()):
            self._point(family.merged_escapes, element)
        for atom in list(opened.unknown):
            self._point(unknown[atom], merged)
        for atom in list(closed.unknown):
            self._point(unknown[atom], family.merged_escapes)

    def _family(self, atom: Type) -> Family:
        key = ANY if atom == ANY else (TupleType, len(atom.elems)) if isinstance(atom, TupleType) else atom.__class__
        found = self.facts.families.get(key)
        if found is None:
            found = self.facts.families[key] = Family()
        return found

    def _location(self, atom: Type) -> Element:
        facts = self.facts
        found = facts.unknown_locations.get(atom)
        if found is None:
            found = facts.unknown_locations[atom] = facts.location(Site(Kind.UNKNOWN, None, atom))
            facts.unknown_types[found] = atom
            self._point(f.OUTSIDE, found)
        return found


def _side(family: Family, atom: Type) -> Atoms:
    return family.closed if is_closed(atom) else family.open
