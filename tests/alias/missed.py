"""What PyTorch's analysis misses, told by the facts that irc's goes by."""

from collections.abc import Iterable
from functools import cached_property

from irc.alias import AliasDb
from irc.alias import facts as f
from irc.alias.explain import Fact, Paths, Reached, Step
from irc.alias.facts import Element
from irc.alias.memory_types import atoms, content_types
from irc.ir import Node, Type, Value
from irc.ir.kinds import LOOPS
from tests.schema_differences import shares


def cases(db: AliasDb, a: Value, b: Value) -> list[int]:
    """Of each fact that lets ``a`` and ``b`` share memory, the number of the case."""
    return numbers(db, db.why(a, b))


def numbers(db: AliasDb, facts: Iterable[Fact]) -> list[int]:
    """Of each fact, the number of its case in ``docs/explanation/alias-analysis.md`` if PyTorch misses it, else 0.

    They are: 1 back edges of loops, 2 loops without an iteration, 3 what containers hold, 4 unknown types that overlap,
    5 results that share although its schema calls them fresh, 7 what becomes known outside as a union.
    """
    missed = _Missed(db)
    return [0 if fact.step is None else missed.case(fact.step) for fact in facts]


class _Missed:
    """Of one analysis, which steps PyTorch's misses."""

    def __init__(self, db: AliasDb) -> None:
        self._db, self._raw, self._paths = db, db.facts, Paths(db)

    def case(self, step: Step) -> int:
        """The number of the case of ``step``."""
        x, y, to = step
        if self._paths.is_held(x, y):
            maker = self._paths.maker(self._paths.holder_of.get(x, x))
            if maker is not None and shares(maker):
                return 5
            unknown = self._raw.unknown_types.get(x)
            if unknown is not None and any(len(atoms(held)) > 1 for held in content_types(unknown)):
                return 4  # PyTorch takes a union to overlap nothing else
            held = self._raw.content_type.get(x)
            return 4 if held is not None and self._is_other(held, to) else 3
        if x in self._raw.unknown_atoms and y in self._raw.sites:
            return 4 if self._is_other(self._raw.unknown_atoms[x], y) else self._of_escape(y)
        subject = self._paths.value_of.get(x)
        return 0 if subject is None else self._of_value(subject, y, to)

    def _of_value(self, subject: Value, y: Element, to: Element) -> int:
        """The case that ``subject`` may be ``y``."""
        node = subject.definer
        if y in self._paths.holder_of:  # taken out of a container
            if node is not None and shares(node):
                return 5
            if self._is_other(subject.type, to):
                return 4  # as something else than it is there
        return _of_node(subject, node, self._paths.value_of.get(y))

    def _of_escape(self, location: Element) -> int:
        """The case if ``location`` became known outside as something of a type that is no more than one of several.

        PyTorch then lets unknown values of that type be it, but not those of its own.
        """
        if location not in self._escaped:
            return 0
        e, before = location, self._escaped[location].before
        while e != before:
            value = self._paths.value_of.get(e)
            if value is not None and self._is_other(value.type, location):
                return 4
            if value is not None and len(atoms(value.type)) > 1:
                return 7
            e, before = before, self._escaped[before].before
        return 0

    @cached_property
    def _escaped(self) -> dict[Element, Reached]:
        """All that unknown code may hold, and the shortest ways there."""
        return self._paths.search(f.ESCAPED, inside=False)

    def _is_other(self, type: Type, location: Element) -> bool:
        """Whether what is known to be of ``type`` is something more special at ``location``, or something else."""
        return set(atoms(type)).isdisjoint(atoms(self._raw.type_of(location)))


def _of_node(subject: Value, node: Node | None, target: Value | None) -> int:
    """The case that ``subject`` may be ``target`` because of ``node``."""
    if node is None or target is None:
        return 0
    if node.kind not in LOOPS:
        return 5 if shares(node) else 0
    if subject.is_param and target in node.blocks[0].returns:
        return 1
    return 2 if not subject.is_param and target in node.inputs else 0
