"""Which values may be one piece of memory, as far as somebody who overwrites it must know.

The alias analysis tells locations apart; here they are joined into disjoint
classes, so that the memory of a value is counted once, however many views of
it, containers around it and paths to it there are. Joining loses precision,
never soundness: values of different classes share nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from irc.alias import Kind, analyze
from irc.alias.classes import Classes
from irc.alias.sets import EMPTY, BigSet, LocationSet, members
from irc.ir.functions import inner_graph
from irc.ir.graph import Graph
from irc.ir.kinds import LOOPS, SCAN
from irc.ir.ops.loops import carried, is_batched
from irc.runtime.prepared import lasting_nodes

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Block, Node, Value

_OURS = frozenset([Kind.TEMPORARY, Kind.CONSTANT, Kind.DONATED])
"""Memory that a run may write, or that is read-only for NumPy too, so that nobody writes it by mistake."""

FOREIGN = 0
"""The class of all memory that others may know: what it is, nobody here can tell."""


class Storage:
    """The classes of the values of a graph and of its fusion groups.

    Args:
        db: the analysis of the graph, which must not change afterwards; it is not kept. Inputs that it knows to share
            with nothing hold what is read-only unless it is the run's to overwrite; others are foreign.

    Attributes:
        written: the values whose memory, or that of what they hold, some node may write.
        lasting: the nodes of the graph whose results may be kept from run to run (`irc.runtime.prepared`).
    """

    def __init__(self, db: AliasDb) -> None:
        self.written: set[Value] = set()
        self.lasting = lasting_nodes(db)
        self._joined = Classes()
        self._joined.new()  # FOREIGN, which swallows any other
        self._classes: dict[Value, int] = {}
        self._groups: set[Graph] = set()
        self._add(db)
        self._captors: defaultdict[int, set[Block]] = defaultdict(set)
        for value in self._classes:
            self._find_captors(value)

    def of(self, value: Value) -> int:
        """The class of ``value``, a number; `FOREIGN` for memory that must not be written."""
        return self._joined.of(self._classes.get(value, FOREIGN))

    def captors(self, storage: int) -> set[Block]:
        """The bodies of loops that need memory of that class again in every trip."""
        return self._captors.get(storage, set())

    def _add(self, db: AliasDb) -> None:
        values = db.values_in_order()
        places = _Places(self._joined, db, values)
        self._classes.update((value, places.class_of(db.reach_set(value))) for value in values)
        if db.any_writes():
            self.written.update(v for v in values if isinstance(db.reach_set(v), BigSet) or db.has_writers(v))
        for node in db.graph.walk():
            group = inner_graph(node)
            if group is not None:
                if group not in self._groups:  # one graph may serve several groups
                    self._groups.add(group)
                    self._add(analyze(group, noalias=group.inputs))
                for outer, inner in (*zip(node.inputs, group.inputs), *zip(node.outputs, group.outputs)):
                    self._joined.join(self._classes.get(outer, FOREIGN), self._classes.get(inner, FOREIGN))

    def _find_captors(self, value: Value) -> None:
        storage = self.of(value)
        if storage == FOREIGN:
            return
        for user in value.iter_users():
            for owner, block in _between(user, value):
                if owner.kind in LOOPS:
                    self._captors[storage].add(block)
            if user.kind == SCAN and value in _scanned(user):  # it reads slices of them, trip by trip
                self._captors[storage].update(user.blocks)


class _Places:
    """Joins the locations that one database tells apart, where values of its graph may be at several."""

    def __init__(self, joined: Classes, db: AliasDb, values: Iterable[Value]) -> None:
        self._joined = joined
        self._db = db
        self._by_set: dict[LocationSet, int] = {EMPTY: FOREIGN}
        crowds = [value for value in values if isinstance(db.reach_set(value), BigSet)]
        # What values of very many locations may be is not worth telling apart.
        self._by_location = dict.fromkeys(members(db.reach_set(crowds)), FOREIGN)

    def class_of(self, reach: LocationSet) -> int:
        """The class of what may be at any of these locations."""
        found = self._by_set.get(reach)
        if found is None:
            found = FOREIGN if isinstance(reach, BigSet) else self._joined.new()
            for location in () if found == FOREIGN else members(reach):
                self._joined.join(found, self._location(location))
            self._by_set[reach] = found
        return found

    def _location(self, location: int) -> int:
        found = self._by_location.get(location)
        if found is None:
            db = self._db
            ours = location not in db.facts.escaped and db.describe(location).kind in _OURS
            found = self._by_location[location] = self._joined.new() if ours else FOREIGN
        return found


def _scanned(scan: Node) -> Sequence[Value]:
    """The inputs of which each trip sees a slice; of a batch (before version 9), states too."""
    return scan.inputs if is_batched(scan) else scan.inputs[carried(scan).many :]


def _between(user: Node, value: Value) -> Iterator[tuple[Node, Block]]:
    """The nodes around ``user`` that are not around ``value``, innermost first, and in which of its blocks it is."""
    block = user.block
    while block is not None and block is not value.block and block.node is not None:
        yield block.node, block
        block = block.node.block
