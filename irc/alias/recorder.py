"""Phase one: the vocabulary in which alias rules say what a node does to memory, and what it records.

A rule is the same whether a graph is analysed for the first time or a node is added to a solved database: `Recorder`
notes pointers and constraints, `irc.alias.solver.Solver` draws conclusions from them too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Constraint, Element, Facts, Field, Kind, Site
from irc.alias.memory_types import REMEMBERED, atoms, content_types, has_memory, may_hold, parts
from irc.alias.rules import RULES, is_functional, rule_for, rule_of
from irc.alias.rules.entry import Functional, Steps
from irc.alias.unknown_memory import UnknownMemory
from irc.alias.write_index import WriteLog
from irc.errors import Error
from irc.ir import CONSTANT, Block, Node, Tensor, Value, types
from irc.ir.builder import type_of_constant
from irc.ir.objects import Object, Strided, storage_of, tensors_in
from irc.ir.types import ClassType, DictType, ListType, TensorType, TupleType, Type, UnionType
from irc.ops.record import Change
from irc.ops.registry import record

if TYPE_CHECKING:
    from irc.alias.summaries import Functions

_DEEPEST = 3
"""Objects inside objects of unknown origin that are told apart, from the outermost in; further ones are merged."""


class Recorder:
    """Runs rules: binds values to elements, and records pointers, constraints and writes.

    Attributes:
        facts: what is recorded.
        writes: where writes are noted.
        functions: the summaries of functions that nodes may call.
        loops_apart: see `irc.alias.analyze`.
    """

    def __init__(self, facts: Facts, writes: WriteLog, functions: Functions) -> None:
        self.facts = facts
        self.writes = writes
        self.functions = functions
        self.loops_apart = False
        self._acting: Node | None = None
        self._objects = {id(given): location for location, given in facts.objects.items()}
        """Identity of an object that comes with the model -> its location."""
        self._unknown = UnknownMemory(facts, self.point)

    # -- what the two phases do differently ------------------------------

    def define(self, value: Value) -> Element:
        """The element of a value that has none yet."""
        node = value.node
        if node is None:
            self.bind(value, self.unknown(value.type))
            return self.facts.elements[value]
        if rule_for(node, RULES[node.kind]) is not None and has_memory(value.type):
            raise Error("IRC212", f"%{value.name} is used before {node.kind} defines it", f"%{value.name}")
        return self.fresh(value)

    def point(self, source: Element, target: Element) -> None:
        """``source`` may denote whatever ``target`` denotes."""
        if target != NOTHING:
            self.facts.point(source, target)

    def constrain(self, constraint: Constraint) -> None:
        """Note a constraint that depends on the locations of its base."""
        self.facts.constraints.append(constraint)

    @staticmethod
    def is_functional(node: Node) -> bool:
        """Whether ``node`` writes nothing and all its outputs are fresh memory."""
        return is_functional(node)

    def call(self, node: Node, name: str) -> bool:
        """Record what a call of the function ``name`` does; False if the function is opaque."""
        return self.functions.call(self, node, name)

    # -- nodes -----------------------------------------------------------

    def analyse_block(self, block: Block) -> None:
        """Record what the nodes of ``block`` do, in order."""
        self._run(self._visit(block))

    def analyse_node(self, node: Node) -> None:
        """Record what ``node`` does."""
        rule = rule_of(node)
        nested = rule and rule(self, node)
        if nested is not None:
            self._run(nested)

    def _visit(self, block: Block) -> Steps:
        rules = RULES
        for node in block.unchanging_nodes():
            rule = rules[node.kind]
            # Others fit all nodes of their kind: views, of which graphs consist, are spared a call.
            own = rule_for(node, rule) if rule is None or isinstance(rule, Functional) else rule
            nested = own and own(self, node)
            if nested is not None:
                yield nested

    def _run(self, steps: Steps) -> None:
        """Run ``steps`` and whatever they yield, innermost first: nesting may be deeper than Python's stack."""
        stack = [steps]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(self._visit(step) if isinstance(step, Block) else step)

    # -- values ----------------------------------------------------------

    def element(self, value: Value) -> Element:
        """What ``value`` denotes."""
        found = self.facts.elements.get(value)
        return self.define(value) if found is None else found

    def join(self, elements: Iterable[Element]) -> Element:
        """What may denote whatever any of ``elements`` may."""
        return self.facts.join(elements)

    def bind(self, value: Value, element: Element) -> None:
        """``value`` denotes what ``element`` does."""
        if element.__class__ is not int:  # the rule may be foreign
            raise Error("IRC305", f"an alias rule binds it to {element!r}, which is not an element", f"%{value.name}")
        self.facts.elements[value] = self.facts.same(element)

    def bind_input(self, value: Value, owned: bool) -> None:
        """``value``, an input of the graph, may be anything; if ``owned``, it shares memory with nothing."""
        if owned and has_memory(value.type):
            self.own(value, self.facts.location(Site(Kind.DONATED, value, value.type)))
        else:
            self.bind(value, self.unknown(value.type))

    def own(self, value: Value, element: Element) -> None:
        """Make ``element``, which no other value has, the element of ``value``."""
        self.facts.elements[value] = element

    def hand_over(self, source: Value, target: Value) -> None:
        """Let ``target`` denote what ``source`` does, and own the memory that a tensor ``source`` owned."""
        element, facts = self.element(source), self.facts
        is_own = facts.sites.get(element) is source and source.type.__class__ is TensorType
        if is_own and facts.site(element).kind is Kind.TEMPORARY:
            facts.sites[element] = target
            self.own(target, element)
            self.bind(source, element)
        else:
            self.bind(target, element)

    def fresh(self, value: Value) -> Element:
        """Give ``value`` memory of its own; a container holds unknown contents that share with nothing."""
        node = value.node
        if not has_memory(value.type):
            element = NOTHING
        elif node is not None and node.kind == CONSTANT:
            element = self._constant(value, node)
        else:
            element = self.facts.location(value)
        self.facts.elements[value] = element
        return element

    def container(self, value: Value, type: Type | None = None, path: tuple[str, ...] = ()) -> Element:
        """A new, empty container that ``value`` denotes or, with a path, that is made inside it."""
        site = value if type is None else Site(Kind.TEMPORARY, value, type, path)
        element = self.facts.location(site)
        self.facts.constructed.add(element)
        if type is None:
            self.facts.elements[value] = element
        return element

    def memory(self, value: Value, type: Type, path: tuple[str, ...]) -> Element:
        """Fresh memory of the given type, somewhere inside what ``value`` denotes."""
        return self.facts.location(Site(Kind.TEMPORARY, value, type, path)) if has_memory(type) else NOTHING

    def know_constant(self, node: Node) -> None:
        """Bind the output of ``node`` if it is a constant that callers may also pass as an input."""
        if self.facts.constants_are_given and node.kind == CONSTANT:
            self.element(node.output)

    def _constant(self, value: Value, node: Node) -> Element:
        if self.facts.constants_are_given:
            return self.facts.same(self.unknown(value.type))
        given = node.attributes.get("value")
        if isinstance(given, Tensor) and given.name:
            return self.facts.same(self.constant(given.name, value.type))
        made = self.facts.location(value)
        if not isinstance(given, Tensor) and any(storage_of(tensor).name for tensor in tensors_in(given)):
            self.fill(made, given)
        return made

    # -- memory ----------------------------------------------------------

    def write(self, node: Node, element: Element, change: Change | None = None) -> None:
        """Record that ``node`` writes what ``element`` denotes; ``change``: elements or metadata, by its kind."""
        if element != NOTHING:
            self.writes.add(self._acting or node, element, record(node.kind).changes if change is None else change)

    @contextmanager
    def on_behalf_of(self, node: Node) -> Generator[None]:
        """Count writes by nodes of another graph as writes by ``node``, which runs that graph."""
        outer, self._acting = self._acting, self._acting or node
        try:
            yield
        finally:
            self._acting = outer

    # -- containers ------------------------------------------------------

    def unknown(self, type: Type) -> Element:
        """The element of a value of which nothing but its type is known."""
        return self._unknown.of(type)

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
        if base in facts.unknown_atoms or base in facts.unknown_types:
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

    # -- what containers hold --------------------------------------------

    def content(self, location: Element, field: Field, type: Type) -> Element:
        """The element of what a field of the object at ``location`` holds; NOTHING if that has no memory.

        ``type`` is the type of the field. It matters only for attributes of objects:
        elsewhere the type of the object at ``location`` determines it.
        """
        facts = self.facts
        if not may_hold(facts.type_of(location)):
            return NOTHING
        if location in facts.unknown_types:
            return self.unknown(_part(facts.unknown_types[location], field, type))
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
            self.point(element, self._initial(location, field))
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
        for field, type in self._known_fields(location, owner):
            self.content(location, field, type)
        if isinstance(owner, ClassType):
            self.point(element, self._initial(location, None))
        if location in facts.escaped:
            self.escape(element)
        return element

    def _initial(self, location: Element, field: Field) -> Element:
        """What a field holds before the graph stores anything there; NOTHING if the graph makes the container."""
        given = self.facts.objects.get(location)
        if given is None:
            return NOTHING if location in self.facts.constructed else self._private(location)
        if not isinstance(field, str) or field not in given.attributes:
            return NOTHING
        return self._given(location, f".{field}", given.attributes[field])

    def _known_fields(self, location: Element, owner: Type) -> Iterable[tuple[Field, Type]]:
        """The fields that an object of type ``owner`` has from the start, with their types."""
        given = self.facts.objects.get(location)
        if given is not None:
            return [(name, type_of(attribute)) for name, attribute in given.attributes.items()]
        return enumerate(owner.elems) if isinstance(owner, TupleType) else ()

    def tie(self, location: Element, field: Field, element: Element) -> None:
        """Let ``element``, held by a field of an escaped object, be unknown too: unknown code may store there."""
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

    # -- what comes with a model ----------------------------------------

    def object(self, given: Object, owner: Value) -> Element:
        """The location of an object that comes with the model as the graph input ``owner``."""
        return self._object(given, Site(Kind.ATTRIBUTE, owner, given.type))

    def constant(self, name: str, type: Type, kind: Kind = Kind.CONSTANT) -> Element:
        """The location of the model's tensor ``name``: one for all constants and attributes of that name."""
        element = self.facts.constants.get(name)
        if element is None:
            element = self.facts.constants[name] = self.facts.location(Site(kind, name, type))
        return element

    def _object(self, given: Object, site: Site) -> Element:
        location = self._objects.get(id(given))
        if location is None:
            location = self._objects[id(given)] = self.facts.location(site)
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
