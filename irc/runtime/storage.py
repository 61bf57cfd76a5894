"""The runtime's view of the alias analysis: which values may share memory, what is written.

Values are told apart as precisely as is needed before memory is overwritten: by memory classes
(`irc.alias.classes`), for the graph and for what is in its fusion groups.

What a loop is given, at its beginning or by the iteration before, is *handed over* if nothing else needs it. Else it is
*borrowed*: it enters as a read-only view, and so, like inputs and weights, is never overwritten, nor are views of it,
in whatever iteration. Hence what a parameter or a result of a loop holds is its own wherever it may be written, and of
a class of its own. Such a value *shows* the classes of what the loop was given, which are in use as long as it is.

So does what holds it, but not all else of its class. What is in one tuple with a loop's result is of one class with it,
and may have been made before the loop; if it showed what the loop makes, each iteration would share memory with the one
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from irc.alias import AliasDb, Kind, analyze
from irc.alias.classes import ESCAPED, MemoryClasses
from irc.alias.location_sets import EMPTY, BigSet, LocationSet, intersects, members
from irc.alias.memory_types import has_memory, may_hold
from irc.alias.rules import is_functional
from irc.ir import Block, Graph, Node, Value
from irc.ir.kinds import CONSTANT, LOOPS, SCAN
from irc.ir.region_flow import carried, inner_graph, is_batched
from irc.ops.axes import APPEND, is_list_joined, joined
from irc.ops.registry import record
from irc.runtime.arguments import values_at
from irc.runtime.prepack import lasting_nodes

_MOST = 32
"""How many locations a value may show, roughly: those of one loop after the other, each given what one before gave."""


class _Column(NamedTuple):
    """What a loop carries in one place.

    Attributes:
        takers: the parameter and the result, if there is one.
        given: what the first iteration is given, and later ones.
    """

    takers: tuple[Value, ...]
    given: tuple[Value, ...]


class LoopAliases:
    """Which classes of memory the values of a graph may show.

    Args:
        loops: those whose parameters and results are apart from all else in ``classes``.
        classes: of the values of their graph; what cannot be kept apart is joined.
        written: the values that some node writes: a write must reach all that shows the memory.
    """

    def __init__(self, loops: Iterable[Node], classes: MemoryClasses, written: Collection[Value]) -> None:
        self._classes = classes
        self._found: dict[frozenset[int], frozenset[int]] = {}
        left = [one for node in loops for one in _carried(node)]
        while True:  # what is joined may make others reach what is written, or too many locations
            self._shows = _edges(left, classes.locations)
            changed = {ESCAPED, *map(classes.of, written)}
            joined = {one for one in left if self._must_be_joined(one, changed)}
            if not joined:
                return
            for one in joined:
                for value in (*one.takers[1:], *one.given):
                    classes.join(one.takers[0], value)
            left = [one for one in left if one not in joined]

    def of(self, value: Value) -> frozenset[int]:
        """The class of ``value``, and those that it, or what it holds, may show."""
        locations = self._classes.locations(value)
        found = self._found.get(locations)
        if found is None:
            found = frozenset(map(self._classes.class_at, self._reached(locations, None)))
            self._found[locations] = found
        return found

    def _must_be_joined(self, one: _Column, changed: Collection[int]) -> bool:
        """Whether memory of ``one`` cannot be borrowed, or is at too many locations to tell them apart."""
        values = one.takers + one.given
        return (
            any(may_hold(value.type) for value in values)  # what a container holds is not read-only if that is
            or any(self._classes.of(value) in changed for value in one.takers)
            or any(len(self._reached(self._classes.locations(value), _MOST)) > _MOST for value in one.takers)
        )

    def _reached(self, locations: Iterable[int], most: int | None) -> set[int]:
        found, pending = set(locations), list(locations)
        while pending and (most is None or len(found) <= most):
            further = self._shows.get(pending.pop(), set()) - found
            found |= further
            pending += further
        return found


def _carried(loop: Node) -> Iterator[_Column]:
    """What ``loop`` carries that has memory."""
    at = carried(loop)
    for block in loop.blocks:
        for i in range(at.many):
            takers = (*block.params[at.param + i :][:1], *loop.outputs[i:][:1])
            given = (*loop.inputs[at.input + i :][:1], *block.returns[at.returned + i :][:1])
            takers, given = (tuple([v for v in values if has_memory(v.type)]) for values in (takers, given))
            if takers and given:
                yield _Column(takers, given)


def _edges(apart: Collection[_Column], locations: Callable[[Value], Collection[int]]) -> dict[int, set[int]]:
    """Which locations what is at a location may show directly."""
    found: dict[int, set[int]] = {}
    for one in apart:
        given = {location for value in one.given for location in locations(value)}
        for taker in one.takers:
            for location in locations(taker):
                found.setdefault(location, set()).update(given)
    return found


_OURS = frozenset([Kind.TEMPORARY, Kind.CONSTANT, Kind.DONATED])
"""Memory that a run may write, or that is read-only for NumPy too and so cannot be written by mistake."""


class Storage:
    """The classes of the values of a graph and of its fusion groups.

    Args:
        db: the analysis of the graph, which must not change afterwards; it is not kept. Inputs that it knows to share
            with nothing hold what is read-only unless it is the run's to overwrite; others are foreign.
        apart: an analysis of the graph with ``loops_apart``. If it is given, what loops carry is of classes of its own,
            as far as can be (`irc.runtime.storage`): only the graph itself may then write its results.

    Attributes:
        written: the values whose memory, or that of what they hold, some node may write.
        lasting: the nodes of the graph whose results may be kept from run to run (`irc.runtime.prepack`).
    """

    def __init__(self, db: AliasDb, apart: AliasDb | None = None) -> None:
        self.written: set[Value] = set()
        self.lasting = lasting_nodes(db)
        self._classes = MemoryClasses(_OURS)
        self._groups: set[Graph] = set()
        self._add(apart or db)
        loops = [node for node in apart.graph.walk() if node.kind in LOOPS] if apart else []
        self._loop_aliases = LoopAliases(loops, self._classes, self.written)
        self.written.update(_written(db))
        self._captors: defaultdict[int, set[Block]] = defaultdict(set)
        for value in self._classes.values():
            self._find_captors(value)

    def of(self, value: Value) -> int:
        """The class of ``value``, a number; `ESCAPED` for memory that must not be written."""
        return self._classes.of(value)

    def shown(self, value: Value) -> frozenset[int]:
        """The classes of memory that ``value`` may show: its own and, if loop-carried, initial values'."""
        return self._loop_aliases.of(value)

    def captors(self, storage: int) -> set[Block]:
        """The bodies of loops that need memory of class ``storage`` again in every iteration."""
        return self._captors.get(storage, set())

    def _add(self, db: AliasDb) -> None:
        lists = {node.inputs[0] for node in db.graph.walk() if is_list_joined(node)}
        self._classes.add(db, lists)
        self.written.update(_written(db))
        for node in db.graph.walk():
            group = inner_graph(node)
            if group is not None:
                if group not in self._groups:  # one graph may serve several groups
                    self._groups.add(group)
                    self._add_group(group)
                for outer, inner in (*zip(node.inputs, group.inputs), *zip(node.outputs, group.outputs)):
                    self._classes.join(outer, inner)

    def _add_group(self, group: Graph) -> None:
        """Add a group's values: results of fused operators are fresh, without an analysis."""
        nodes = [node for node in group.nodes if node.kind != CONSTANT]
        if all(map(is_functional, nodes)):
            values = (*group.inputs, *(value for node in nodes for value in node.outputs))
            self._classes.add_fresh(value for value in values if has_memory(value.type))
        else:
            self._add(analyze(group, noalias=group.inputs))

    def _find_captors(self, value: Value) -> None:
        blocks: set[Block] = set()
        for user in value.iter_users():
            blocks.update(block for owner, block in _between(user, value) if owner.kind in LOOPS)
            # A Scan reads slices of the inputs after the states; before version 9, with a batch axis, of these too.
            if user.kind == SCAN and value in (user.inputs if is_batched(user) else user.inputs[carried(user).many :]):
                blocks.update(user.blocks)
        # What a list holds may be of several classes, of which others may know some.
        for storage in self.shown(value) - {ESCAPED} if blocks else ():
            self._captors[storage] |= blocks


def _written(db: AliasDb) -> list[Value]:
    if not db.any_writes():
        return []
    return [v for v in db.values_in_order() if isinstance(db.reach_set(v), BigSet) or db.touches_storage(v)]


def _between(user: Node, value: Value) -> Iterator[tuple[Node, Block]]:
    """Nodes around ``user`` but not ``value``, innermost first, and their blocks that hold ``user``."""
    for block in user.block.around() if user.block is not None else ():
        if block is value.block or block.node is None:
            return
        yield block.node, block


class _Change(NamedTuple):
    """What an operator does that gives its operand with other elements, or with more behind them.

    Attributes:
        operand: what that may denote.
        result: what the result may denote.
        scatters: whether it changes elements, rather than to put more behind them.
    """

    operand: LocationSet
    result: LocationSet
    scatters: bool


class Writes:
    """What the runs of a graph write to.

    Args:
        db: the analysis of the graph, which must not change afterwards; it is not kept.

    Attributes:
        inputs: the names of the inputs whose memory a run may change; a superset of those that it does change.
            ``irc::append_`` writes only behind what its operand shows, and only in memory that the run owns: no input
            needs a copy for it.
    """

    def __init__(self, db: AliasDb) -> None:
        graph = db.graph
        self.inputs = frozenset(v.name for v in graph.inputs if any(n.kind != APPEND for n in db.writers(v)))
        changing = [(n, join) for n in graph.walk() if (join := joined(n)) is not None or record(n.kind).scatters]
        self._memory: dict[Value, LocationSet] = {}
        self._changes: list[_Change] = []
        if self.inputs or any(join is None for _, join in changing):
            self._memory = {v: db.location_set(v) for v in (*graph.inputs, *values_at(graph.outputs))}
            self._changes = [
                _Change(
                    db.location_set(n.inputs[0] if join is None else join.parts[0]),
                    db.location_set(n.output),
                    scatters=not join,
                )
                for n, join in changing
            ]
        self._inputs = {value.name: value for value in graph.inputs}

    def overwrites(self, value: Value, name: str) -> bool:
        """Whether ``value`` is the input ``name`` with some elements changed, through any view or loop.

        In some branches it may instead have something appended, as in attention that takes caches of either kind.

        Args:
            value: an output of the graph, or an element of one that is a tuple.
            name: of an input.
        """
        memory, start = (self._memory.get(v, EMPTY) for v in (value, self._inputs[name]))
        became, changes = frozenset(members(start)), name in self.inputs
        pending = self._changes
        while met := [change for change in pending if intersects(change.operand, became)]:
            pending = [change for change in pending if not intersects(change.operand, became)]
            became = became.union(*(members(change.result) for change in met))
            changes = changes or any(change.scatters for change in met)
        return changes and memory is not EMPTY and became.issuperset(members(memory))
