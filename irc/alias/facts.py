"""The facts an alias analysis knows: elements, what they point to, what locations contain.

An *element* is a number that stands for what a value may denote. Some
elements are *locations*: memory of their own, described by a ``Site``.
Elements point to others; the locations that an element may denote are those
it reaches, itself included. Locations of containers have *contents*: one
element a field, which points to whatever was stored there.

This is the constraint system of inclusion-based points-to analysis
(Andersen, "Program Analysis and Specialization for the C Programming
Language", 1994), with allocation sites as locations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from irc.ir import CONSTANT, Value, types
from irc.ir.objects import Object
from irc.ir.types import ClassType, TensorType, TupleType, Type


class Kind(Enum):
    """What sort of memory a location is."""

    TEMPORARY = "temporary"
    """Allocated by a node; in a loop, one location stands for the memory of all iterations."""
    CONSTANT = "constant"
    """Of a constant or a weight: read-only, and the same memory at every use, iteration, call and run."""
    BORROWED = "borrowed input"
    """Of a graph input that its caller keeps."""
    DONATED = "donated input"
    """Of a graph input that is known to share with nothing."""
    ATTRIBUTE = "attribute"
    """Of an object's attribute whose storage is known."""
    UNKNOWN = "unknown"
    """Whatever else there is: one location a type."""
    RANDOM = "random state"
    """The state of random number generators."""
    WORLD = "world"
    """What is outside of memory: console, files, the process."""


OWN = frozenset({Kind.TEMPORARY, Kind.DONATED})
"""Memory that is the graph's to write."""


class Location(NamedTuple):
    """One memory location, as queries report it.

    Attributes:
        kind: what sort of memory.
        site: what it belongs to: the value that is allocated there, the name
            of a weight; None for unknown memory, the random state, the world.
        type: the type of the object there.
        path: for what a container of unknown origin holds, the fields that
            lead from it to this location; else empty.
    """

    kind: Kind
    site: Value | str | None
    type: Type
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f" %{self.site.name}" if isinstance(self.site, Value) else f' @"{self.site}"' if self.site else ""
        type = "" if self.kind in (Kind.RANDOM, Kind.WORLD) else f" : {self.type}"
        return f"{self.kind.value}{name}{''.join(self.path)}{type}"


Element: TypeAlias = int
Field: TypeAlias = int | str | None
"""A position in a tuple, the name of an attribute, or None: all that a container holds."""

NOTHING: Element = 0
"""Denotes no memory: numbers, strings, None."""
ESCAPED: Element = 1
"""Points to all that unknown code may hold although the graph made it."""
OUTSIDE: Element = 2
"""Points to all that unknown code may write: ``ESCAPED`` and all unknown memory."""
RANDOM: Element = 3
WORLD: Element = 4


@dataclass(frozen=True, eq=False, slots=True)
class Inside:
    """The call that made a location: where the call is, and the call inside of it, if any, that did.

    Chains of calls share their ends, so each call adds one of these, however long the chain.
    """

    step: str
    further: Inside | None


class Site(NamedTuple):
    """The description of a location for which the value that it was made for is not enough."""

    kind: Kind
    key: Value | str | None
    type: Type
    path: tuple[str, ...] = ()
    inside: Inside | None = None

    def location(self) -> Location:
        """This site as queries report it."""
        steps: list[str] = []
        inside = self.inside
        while inside is not None:
            steps.append(inside.step)
            inside = inside.further
        return Location(self.kind, self.key, self.type, (*steps, *self.path))


class Load(NamedTuple):
    """``target`` may denote what objects denoted by ``base`` hold in ``field``, if it is of type ``type``."""

    base: Element
    field: Field
    target: Element
    type: Type


class Unknown(NamedTuple):
    """Whatever ``base`` denotes may be unknown memory, and unknown code may hold it."""

    base: Element


class Store(NamedTuple):
    """Field ``field`` of whatever ``base`` denotes may hold ``source``, which is of type ``type``."""

    base: Element
    field: Field
    source: Element
    type: Type


Constraint: TypeAlias = Load | Store | Unknown


@dataclass(eq=False, slots=True)
class Atoms:
    """Some atoms of a family.

    Attributes:
        unknown: those with the element of an unknown value.
        escaped: those of which something escaped -> the element of all that did.
    """

    unknown: list[Type] = field(default_factory=list[Type])
    escaped: dict[Type, Element] = field(default_factory=dict[Type, Element])


@dataclass(eq=False, slots=True)
class Family:
    """Atoms that may overlap each other, and none of other families but Any.

    Attributes:
        closed: those that overlap no other closed one (see `irc.alias.memory_types.is_closed`).
        open: the others.
        merged: once there are too many open ones to tell apart, the element of what any of them may be.
        merged_escapes: then, the element of what escaped and is of an open type.
    """

    closed: Atoms = field(default_factory=Atoms)
    open: Atoms = field(default_factory=Atoms)
    merged: Element | None = None
    merged_escapes: Element = NOTHING


class Facts:
    """The facts, and how elements are made. They know no graph, no rules and no queries.

    Attributes:
        elements: value -> its element, which is its alone. A value that is not in it denotes fresh memory that
            nothing has mentioned yet.
        targets: element -> what it points to: None, one element that it stands for and that is all, or a list of
            them that may still grow.
        sites: location -> its memory. A plain ``Value`` stands for memory that the value's node allocates.
        made_for: value -> the locations inside what it denotes, or of what a call made for it, whose sites name it.
        contents: location of a container -> field -> element.
        constructed: containers that the graph fills itself. What others hold is unknown, but theirs alone.
        content_type: element of a content -> its type.
        objects: location of an object that comes with the model -> what it is before the first run.
        private: location of a container that the graph did not fill -> the location of what it held from the start.
        constraints: loads and stores through a base that may be more than one location or is not known at once,
            and what has become unknown.
        unknown: type -> the element of a value of which nothing but its type is known.
        unknown_atoms: those elements, if the type is an atom -> that atom.
        unknown_of: those elements, whatever the type -> the type.
        families: key of a family of atoms -> what unknown memory of these types is (see `irc.alias.unknown_memory`).
        merges_types: whether some family has more open atoms than are told apart.
        unknown_locations: atom -> the location of unknown memory of that type.
        unknown_types: those locations -> that atom.
        escaped: locations that unknown code may hold.
        constants: name of a weight -> its location.
        of_functions: value of a constant without name, in a function, and path inside of it -> its location: it is the
            same memory in all calls.
        shared: these locations.
        pointed_from: element -> those that point to it; None until somebody needs it.
        released: elements that are no more, as long as ``pointed_from`` still has them.
        objects_made: the locations of all but tensors, in order: nothing else holds anything.
        has_parts: whether some node was ever recorded that takes a part of a tensor.
        constants_are_given: whether a constant may be anything that the graph is given: a function, or fusion group,
            may be given what it, or another, has returned.
    """

    def __init__(self, constants_are_given: bool = False) -> None:
        self.constants_are_given = constants_are_given
        self.has_parts = False
        self.elements: dict[Value, Element] = {}
        self.targets: list[Element | list[Element] | None] = []
        self.sites: dict[Element, Site | Value] = {}
        self.made_for: dict[Value, list[Element]] = {}
        self.contents: dict[Element, dict[Field, Element]] = {}
        self.constructed: set[Element] = set()
        self.content_type: dict[Element, Type] = {}
        self.objects: dict[Element, Object] = {}
        self.private: dict[Element, Element] = {}
        self.constraints: list[Constraint] = []
        self.unknown: dict[Type, Element] = {}
        self.unknown_atoms: dict[Element, Type] = {}
        self.unknown_of: dict[Element, Type] = {}
        self.families: dict[object, Family] = {}
        self.merges_types = False
        self.unknown_locations: dict[Type, Element] = {}
        self.unknown_types: dict[Element, Type] = {}
        self.escaped: set[Element] = set()
        self.constants: dict[str, Element] = {}
        self.of_functions: dict[tuple[Value, tuple[str, ...]], Element] = {}
        self.shared: set[Element] = set()
        self.pointed_from: dict[Element, list[Element]] | None = None
        self.released: set[Element] = set()
        self.objects_made: list[Element] = []
        for _ in (NOTHING, ESCAPED, OUTSIDE):
            self.new()
        self.targets[NOTHING] = None
        self.point(OUTSIDE, ESCAPED)
        self.location(Site(Kind.RANDOM, None, types.NONE))
        self.location(Site(Kind.WORLD, None, types.NONE))
        self.objects_made.clear()

    # -- elements --------------------------------------------------------

    def location(self, site: Site | Value) -> Element:
        """A new location."""
        element = len(self.targets)
        self.targets.append(None)
        self.sites[element] = site
        if site.type.__class__ is not TensorType:
            self.objects_made.append(element)
        if not isinstance(site, Value) and isinstance(site.key, Value):
            self.made_for.setdefault(site.key, []).append(element)
        return element

    def of_function(self, site: Site) -> Element:
        """The location at ``site`` of a constant of a function, or of what it holds."""
        assert isinstance(site.key, Value)
        place = site.key, site.path
        found = self.of_functions.get(place)
        if found is None:
            found = self.of_functions[place] = self.location(site)
            self.shared.add(found)
        return found

    def new(self) -> Element:
        """A new element that points to nothing yet."""
        self.targets.append([])
        return len(self.targets) - 1

    def same(self, target: Element) -> Element:
        """A new element that denotes just what ``target`` does."""
        if target == NOTHING:
            return NOTHING
        element = len(self.targets)
        self.targets.append(target)
        if self.pointed_from is not None:
            self.pointed_from.setdefault(target, []).append(element)
        return element

    def join(self, elements: Iterable[Element]) -> Element:
        """An element that may denote whatever any of ``elements`` may: a new one if there are several."""
        targets = list(dict.fromkeys(e for e in elements if e != NOTHING))
        if len(targets) < 2:
            return targets[0] if targets else NOTHING
        element = len(self.targets)
        self.targets.append(targets)
        if self.pointed_from is not None:
            for target in targets:
                self.pointed_from.setdefault(target, []).append(element)
        return element

    def point(self, source: Element, target: Element) -> bool:
        """Let ``source`` point to ``target`` too; False if it surely did. Long lists are searched in part."""
        have = self.targets[source]
        if source == target or have == target:
            return False
        if have is None:
            self.targets[source] = [target]
        elif isinstance(have, int):
            self.targets[source] = [have, target]
        elif target in (have if len(have) < 16 else have[-4:]):
            return False
        else:
            have.append(target)
        # The index exists once a question has needed it; until then, building is spared its upkeep.
        if self.pointed_from is not None:
            self.pointed_from.setdefault(target, []).append(source)
        return True

    def redirect(self, old: Element, new: Element) -> None:
        """Let whatever points to ``old``, except ``new`` itself, point to ``new`` instead."""
        sources = self.sources_of(old)
        index = self.pointed_from
        assert index is not None, "sources_of has made it"
        moved = index.setdefault(new, [])
        for source in sources:
            if source != new:
                have = self.targets[source]
                self.targets[source] = new if have == old else [new if t == old else t for t in self.targets_of(source)]
                moved.append(source)
        index[old] = [source for source in sources if source == new]

    def targets_of(self, element: Element) -> list[Element]:
        """What ``element`` points to, not including ``element`` itself."""
        have = self.targets[element]
        return [] if have is None else [have] if isinstance(have, int) else have

    def sources_of(self, element: Element) -> list[Element]:
        """The elements that point to ``element``."""
        index = self.pointed_from
        if index is None:
            index = self.pointed_from = {}
            for source, have in enumerate(self.targets):
                if isinstance(have, int):
                    index.setdefault(have, []).append(source)
                elif have is not None:
                    for target in have:
                        index.setdefault(target, []).append(source)
        found = index.get(element, [])
        if self.released and not self.released.isdisjoint(found):
            gone = self.released.intersection(found)
            self.released -= gone
            found = index[element] = [source for source in found if source not in gone]
        return found

    def release(self, element: Element) -> bool:
        """Release the value of ``element``; drop the element if nothing leads to it, and return whether."""
        have = self.targets[element]
        if self.pointed_from is None or isinstance(have, list) or self.sources_of(element):
            return False  # to make the index for this alone would cost more than the element
        if have is not None:
            self.released.add(element)
        elif element in self.sites and self.type_of(element).__class__ is TensorType:
            del self.sites[element]
        else:
            return False
        self.targets[element] = None
        return True

    def resolve(self, element: Element) -> Element:
        """The end of the chain from ``element`` through elements that stand for just one other."""
        targets = self.targets
        while isinstance(have := targets[element], int):
            element = have
        return element

    def chain(self, element: Element) -> Iterator[Element]:
        """``element``, then the element that it stands for, and so on to the end of the chain."""
        have: Element | list[Element] | None = element
        while isinstance(have, int):
            yield have
            have = self.targets[have]

    def resolve_alike(self, a: Element, b: Element) -> bool:
        """Whether the chains of ``a`` and ``b`` meet. Both are followed in step, as they may meet early."""
        ways: list[tuple[set[Element], Element | None]] = [(set(), a), (set(), b)]
        while any(at is not None for _, at in ways):
            for i, (passed, at) in enumerate(ways):
                if at is None:
                    continue
                if at in ways[1 - i][0]:
                    return True
                passed.add(at)
                have = self.targets[at]
                ways[i] = passed, have if isinstance(have, int) else None
        return False

    # -- locations -------------------------------------------------------

    def site(self, location: Element) -> Site:
        """What ``location`` is."""
        site = self.sites[location]
        return Site(_kind_made_for(site), site, site.type) if isinstance(site, Value) else site

    def disown(self, value: Value) -> None:
        """Forget ``value``; memory made for it, which other elements may point to, keeps its name."""
        element = self.elements.pop(value, None)
        if element is not None and self.sites.get(element) is value:
            self.sites[element] = Site(_kind_made_for(value), value.name, value.type)
        for location in self.made_for.pop(value, ()):
            self.sites[location] = self.site(location)._replace(key=value.name)

    def type_of(self, location: Element) -> Type:
        """The type of the object at ``location``."""
        return self.sites[location].type

    def has_fields(self, location: Element) -> bool:
        """Whether the object at ``location`` has separate contents for each position or name."""
        return isinstance(self.type_of(location), TupleType | ClassType)


def _kind_made_for(value: Value) -> Kind:
    """The kind of the memory that is made for ``value`` alone."""
    return Kind.CONSTANT if value.made_by(CONSTANT) else Kind.TEMPORARY
