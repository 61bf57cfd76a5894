"""Phase two: the database that answers, and that updates keep right.

It is composed of the solved facts (`solver.py`), updates (`incremental.py`), the write index and moves (`motion.py`).
Callers keep two invariants: every change of the graph is reported by the update that belongs to it, at the time that
the update states; and queries name values and nodes that are in this graph (else IRC343). Sets that a query returns
hold until the next update.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, TypeAlias

from irc.alias import explain, regions
from irc.alias import facts as f
from irc.alias.check import compare
from irc.alias.explain import Fact
from irc.alias.facts import Facts, Kind, Location
from irc.alias.incremental import IncrementalSolution
from irc.alias.location_sets import EMPTY, LocationSet, askable, contains, intersects, members
from irc.alias.memo import Memo
from irc.alias.memory_dag import Descent, MemoryDAG
from irc.alias.memory_types import has_memory
from irc.alias.motion import Move
from irc.alias.must import must_share, same_tensor
from irc.alias.part_writes import PartWrites
from irc.alias.solver import Solver
from irc.alias.write_index import LiveWrites, outermost, scope_between, writes_between
from irc.errors import Error
from irc.ir import Block, Node, TensorType, Type, Value
from irc.ir.kinds import IF, PRIM_LOOP
from irc.ir.objects import Object
from irc.ops.record import Change

if TYPE_CHECKING:
    import networkx as nx

    from irc.alias.builder import AliasDbBuilder

Values: TypeAlias = Value | Iterable[Value]

_MOST_PARTS = 32
"""Of more pairs, writers or values in one query, it is not asked in which parts of tensors they lie."""

_LOCAL = frozenset({Kind.TEMPORARY, Kind.RANDOM})
"""A write there matters only if something live reads it. Writes to all other memory are seen outside of the graph."""


class AliasDb:
    """What is known of the memory of a graph's values. Made by ``analyze``.

    It describes the graph as it was then, with the updates made since: whatever
    changes the graph must make them. It is composed of

    - `irc.alias.solver.Solver`: the facts, what each value may denote (`MemoryDAG`) and who writes it (`WriteIndex`);
    - `IncrementalSolution`, which keeps a solver up to date with the graph;
    - the queries, here, in `irc.alias.must` and in `irc.alias.write_index`; moves, in `irc.alias.motion`.

    A query that takes `Values` accepts one value or several; with several, the answer is that for any of them.
    Sets of locations are for callers to whom answers one by one are too slow: locations are numbers, valid until the
    next update.

    Attributes:
        graph: the graph it is about.
        memo: what is remembered of parts of tensors.
        check_rewrites: whether ``rewrite`` ends with ``check``; slow, for tests and the verify-alias instrument.
    """

    def __init__(self, builder: AliasDbBuilder) -> None:
        self.graph = builder.graph
        self.module = builder.module
        self.noalias = builder.noalias
        self.memo = Memo(self.graph, regions.concerns_readers)
        self.check_rewrites = False
        self._builder = type(builder)
        self._solution = IncrementalSolution(builder, self._record, self._solve)

    def _record(self) -> AliasDbBuilder:
        """Record the graph as it is now."""
        builder = self._builder(self.graph, self.module, self.noalias.intersection(self.graph.inputs))
        builder.record()
        return builder

    def _solve(self, builder: AliasDbBuilder) -> Solver:
        """Solve what ``builder`` recorded, and answer from that."""
        return self._use(Solver(builder.facts, builder.writes, builder.functions))

    def _use(self, solver: Solver) -> Solver:
        """Answer from ``solver`` from now on."""
        self._solver = solver
        self._answers = solver.dag.answers
        self._facts = solver.facts
        self._parts = PartWrites(self, solver.index, solver.dag)
        self.memo.follow(solver.dag, solver.index)
        self._all_but: dict[frozenset[Kind], tuple[int, LocationSet]] = {}
        """Kinds -> how many elements were looked at, and the locations of other kinds among them."""
        self._interface: tuple[tuple[Value, ...], tuple[Value, ...], int] | None = None
        """The inputs and outputs, and the version of the memos, for which ``_outside`` was found."""
        self._outside: LocationSet = EMPTY
        return solver

    # -- sharing ---------------------------------------------------------

    def may_alias(self, a: Values, b: Values) -> bool:
        """Whether some value of ``a`` and some value of ``b`` may denote the same memory.

        What containers hold does not count: see ``may_contain_alias``.
        """
        answers = self._answers  # the most frequent question by far: without a call, where both answers are known
        try:
            if answers[a].isdisjoint(answers[b]):  # type: ignore[index,arg-type]  # no value: it is not there
                return False
        except (KeyError, TypeError):
            for value in (a, b):
                if isinstance(value, Value):
                    answers[value] = askable(self.location_set(value))
            if not intersects(self.location_set(a), self.location_set(b)):
                return False
        if not self._facts.has_parts:
            return True
        if isinstance(a, Value) and isinstance(b, Value):
            return regions.apart(self, a, b) is None
        pairs = list(islice(product(_members(a), _members(b)), _MOST_PARTS + 1))
        return len(pairs) > _MOST_PARTS or any(self.may_alias(v, w) for v, w in pairs)

    def same_tensor(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b`` certainly are one tensor, or one container, where both are defined.

        Two tensors of one memory have shapes and strides of their own; of one tensor, whoever has it sees them change.
        """
        self.check_single(a, b)
        return same_tensor(a, b)

    def must_alias(self, a: Value, b: Value, *, if_any: bool = False) -> bool:
        """Whether ``a`` and ``b``, one value each, certainly share memory where both are defined.

        A tensor without elements has no memory to share. The answer is yes if they share memory whenever one of them
        has elements: a slice may be empty though the tensor is not. With ``if_any``, whenever both have.
        """
        self.check_single(a, b)
        if a is b or not must_share(a, b, if_any=if_any):
            return a is b and has_memory(a.type)
        if same_tensor(a, b):
            return True
        # Whoever shows another part of the storage, or another storage, from then on may have nothing of the first.
        solver, locations = self._solver, self.location_set((a, b))
        moved = solver.index.changes_metadata(locations, Change.MEMORY)
        return not moved and not intersects(locations, solver.became_unknown)

    def has_metadata_writers(self, values: Values) -> bool:
        """Whether anything in the graph changes the shape or strides of a tensor in the memory of ``values``."""
        return self._solver.index.changes_metadata(self.location_set(values), Change.SHAPE)

    def may_contain_alias(self, a: Values, b: Values) -> bool:
        """Whether ``a``, or anything it holds, may share memory with ``b`` or anything that holds."""
        return intersects(self.reach_set(a), self.reach_set(b))

    def escapes(self, values: Values) -> bool:
        """Whether ``values``, or anything they hold, may be known outside of the graph.

        That is: through its inputs, its outputs, or unknown code.
        """
        return self.may_be_known(values) or intersects(self.reach_set(values), self._reached_from_outside())

    def may_be_known(self, values: Values) -> bool:
        """Whether unknown code may know ``values``, or anything they hold: it may keep what it has once seen."""
        dag = self._dag
        return intersects(self.reach_set(values), dag.closure(f.OUTSIDE))

    def _reached_from_outside(self) -> LocationSet:
        """What the inputs and outputs of the graph denote, and all that objects there hold."""
        inputs, outputs = self.graph.inputs, self.graph.outputs
        known, version = self._interface, self._dag.version
        if known is None or known[0] is not inputs or known[1] is not outputs or known[2] != version:
            self._interface = inputs, outputs, version  # asking may let things grow: then this is not kept
            self._outside = self.reach_set((*inputs, *outputs))
        return self._outside

    def locations(self, values: Values) -> frozenset[Location]:
        """The memory that ``values`` may denote. Valid until the next update."""
        return self._report(self.location_set(values))

    def known_object(self, value: Value) -> Object | None:
        """The object that comes with the model and that ``value`` certainly is, if there is one."""
        found = self.location_set(value)
        return self.facts.objects.get(found) if isinstance(found, int) else None

    # -- writes ----------------------------------------------------------

    def has_writers(self, what: Values | Node, contained: bool = True) -> bool:
        """Whether anything in the graph writes memory of a value, or of any input or output of a node.

        Args:
            what: a value, several values, or a node.
            contained: whether what containers hold counts too.
        """
        if isinstance(what, Node):
            self.check_own(what)
        index = self._solver.index
        if not index:
            if not isinstance(what, Node):
                self._check_values(what)
            return False
        values = (*what.inputs, *what.outputs) if isinstance(what, Node) else what
        if not self.facts.has_parts:
            return self.touches_storage(values, contained)
        if isinstance(values, Value):
            return self._parts.is_written(values, self.graph.block, contained)
        return any(self.has_writers(value, contained) for value in _members(values))

    def touches_storage(self, values: Values, contained: bool = True) -> bool:
        """Whether anything in the graph writes storage of ``values``, if only a part that none of them shows.

        Faster than ``has_writers``, for callers to whom a storage is one thing.
        """
        return self._solver.index.touches(self.reach_set(values) if contained else self.location_set(values))

    def writers(self, values: Values) -> list[Node]:
        """The nodes that write memory of ``values``, or of what they hold; not the nodes around these."""
        index = self._solver.index
        if not index:
            self._check_values(values)
            return []
        found = index.writing(self.reach_set(values))
        if not found or len(found) > _MOST_PARTS or not self.facts.has_parts:
            return found
        parts = list(map(self._parts.as_read, _members(values)))
        return [node for node in found if any(self._parts.writes(node, part, self.graph.block) for part in parts)]

    def conflict(self, a: Node, b: Node) -> bool:
        """Whether one of two nodes of a block may write what the other uses, in one execution of it.

        The storage that one of them writes, the other reads or writes; they may do so in parts that are apart.
        """
        return not self.facts.has_parts or self._parts.conflict(a, b)

    def written_weights(self) -> frozenset[str]:
        """The names of the model's tensors, constants and attributes, that anything in the graph writes."""
        index = self._solver.index
        return frozenset(name for name, location in self.facts.constants.items() if index.touches(location))

    def is_mutable(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, writes to one of its inputs or to what an input holds."""
        written = self.write_set(node)
        return written is not EMPTY and intersects(written, self.reach_set(node.inputs))

    def has_side_effects(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, acts on the world: never removed, and nothing moves past it."""
        self.check_own(node)
        return f.WORLD in self._solver.index.elements(node)

    def is_random(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, uses the random state."""
        self.check_own(node)
        return f.RANDOM in self._solver.index.elements(node)

    def writes_to_alias(self, node: Node, values: Values) -> bool:
        """Whether ``node``, or one inside it, writes memory of ``values`` or of what they hold."""
        written = self.write_set(node)
        if written is EMPTY:
            self._check_values(values)
            return False
        if not intersects(written, self.reach_set(values)):
            return False
        if not self.facts.has_parts:
            return True
        read = list(islice(_members(values), _MOST_PARTS + 1))
        nodes = list(islice(chain((node,), node.nested()), _MOST_PARTS + 1))
        if max(len(read), len(nodes)) > _MOST_PARTS:
            return True
        parts = map(self._parts.as_read, read)
        return any(self._parts.writes(n, part, self.graph.block) for part in parts for n in nodes)

    def writes_to_wildcard(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, writes unknown memory."""
        unknown = self._solver.facts.unknown_types
        return any(x in unknown for x in members(self.write_set(node)))

    def writes_between(self, values: Values, first: Node, last: Node) -> bool:
        """Whether memory of ``values``, or of what they hold, may be written between ``first`` and ``last``.

        All paths through branches and loops count, from the latest run of ``first``
        before ``last`` runs. Writes by ``first`` and ``last`` themselves do not count.
        """
        self.check_own(first)
        self.check_own(last)
        index = self._solver.index
        if not index:
            self._check_values(values)
            return False
        reach = self.reach_set(values)
        if not index.touches(reach) or not writes_between(index, reach, first, last):
            return False
        if not self.facts.has_parts:
            return True
        if isinstance(values, Value):
            return self._parts.is_written_between(values, first, last, scope_between(first, last))
        return any(self.writes_between(value, first, last) for value in _members(values))

    def reads(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may read. Valid until the next update."""
        return self._report(self.read_set(node))

    def writes(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may write. Valid until the next update."""
        return self._report(self.write_set(node))

    def writes_anything(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, may write at all, without collecting the locations."""
        return self.write_set(node) is not EMPTY

    def is_functional(self, node: Node) -> bool:
        """Whether ``node`` writes nothing, and each output is a tensor in fresh memory or has no memory."""
        return not self.writes_anything(node) and all(map(self.is_own, node.outputs))

    def is_own(self, value: Value) -> bool:
        """Whether ``value`` certainly is a tensor in memory that its node allocates, or has no memory."""
        if value.type.__class__ is not TensorType:
            return not has_memory(value.type)
        facts, element = self._solver.facts, self._element(value)
        return facts.targets[element] is None and facts.sites.get(element) is value

    def safe_to_change_aliasing(self, a: Values, b: Values) -> bool:
        """Whether sharing between ``a`` and ``b`` is unobservable: neither is written, at most one escapes."""
        a, b = (v if isinstance(v, Value) else tuple(each(v)) for v in (a, b))  # each is asked about twice
        if self.has_writers(a) or self.has_writers(b):
            return False
        return not (self.escapes(a) and self.escapes(b))

    def _report(self, locations: LocationSet) -> frozenset[Location]:
        found = {self.describe(x) for x in members(locations)}
        if any(x.kind is Kind.UNKNOWN for x in found):
            # What borrowed inputs denote is unknown memory, and any unknown memory may be theirs.
            unknown = self._solver.facts.unknown_types
            for value in self.graph.inputs:
                if any(x in unknown and contains(locations, x) for x in members(self.location_set(value))):
                    found.add(Location(Kind.BORROWED, value, value.type))
        return frozenset(found)

    # -- sets ------------------------------------------------------------

    def location_set(self, values: Values) -> LocationSet:
        """What ``values`` may denote."""
        solver = self._solver
        if isinstance(values, Value):
            return solver.dag.locations(self._element(values))
        return solver.dag.sets.union_all([self.location_set(v) for v in each(values)])

    def union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        """The locations of both."""
        return self._dag.sets.union(a, b)

    def difference(self, a: LocationSet, b: LocationSet) -> LocationSet:
        """The locations of ``a`` that are not in ``b``."""
        return self._dag.sets.difference(a, b)

    def reach_set(self, values: Values) -> LocationSet:
        """What ``values`` may denote, and all that objects there hold."""
        if isinstance(values, Value):
            return self._dag.closure(self._element(values))
        return self._dag.sets.union_all([self.reach_set(v) for v in each(values)])

    def read_set(self, node: Node) -> LocationSet:
        """What ``node`` and those inside it may read."""
        self.check_own(node)
        if not node.blocks:
            return self.reach_set(node.inputs)
        values = dict.fromkeys(node.inputs)
        for inner in node.nested():
            values.update(dict.fromkeys(_read_by(inner)))
        return self.reach_set(values)

    def write_set(self, node: Node) -> LocationSet:
        """What ``node`` and those inside it may write."""
        if node.block is not self.graph.block:  # not a call: this is asked of every node
            self.check_own(node)
        return self._solver.index.locations(node)

    def sweep(self, contained: bool = True) -> Callable[[Value], Iterator[int]]:
        """A function from values to the locations reachable from them that earlier calls have not returned.

        Valid until the next update.
        """
        descent = Descent(self._solver.facts, self._solver.all_contents if contained else None)
        return lambda value: descent.locations(self._element(value))

    def live_writes(self) -> LiveWrites:
        """A search for the writes that matter. Valid until the next update."""
        return LiveWrites(self._solver.index)

    def seen_outside(self) -> list[int]:
        """The locations whose writes are seen outside of the graph."""
        return [x for x in self.facts.sites if self.facts.site(x).kind not in _LOCAL]

    def writing_nodes(self) -> list[Node]:
        """The nodes that write themselves, not the nodes around them."""
        return self._solver.index.nodes()

    def known_values(self) -> list[Value]:
        """The values that the database refers to."""
        facts = self._solver.facts
        sites = [s if isinstance(s, Value) else s.key for s in facts.sites.values()]
        return [*facts.elements, *(v for v in sites if isinstance(v, Value))]

    def values_in_order(self) -> list[Value]:
        """The graph's values: of each block its parameters, then those its nodes make."""
        found: list[Value] = list(self.graph.inputs)
        for node in self.graph.walk():
            found += node.outputs
            for block in node.blocks:
                found += block.params
        return found

    @property
    def facts(self) -> Facts:
        """The solved facts."""
        return self._solver.facts

    def contents_element(self, location: int) -> int:
        """The element of all that the object at ``location`` holds; 0 if it holds nothing with memory."""
        return self._solver.all_contents(location)

    def is_unknown(self, location: int) -> bool:
        """Whether ``location`` stands for unknown memory."""
        return location in self._solver.facts.unknown_types

    def is_private(self, location: int, kinds: Container[Kind]) -> bool:
        """Whether ``location`` is of one of ``kinds`` and unknown code cannot know it."""
        return location not in self.facts.escaped and self.facts.site(location).kind in kinds

    def any_escaped(self, locations: LocationSet) -> bool:
        """Whether unknown code may know one of ``locations``."""
        escaped = self.facts.escaped
        if isinstance(locations, int) or len(locations) < len(escaped):
            return any(location in escaped for location in members(locations))
        return any(contains(locations, location) for location in escaped)

    def all_but(self, kinds: frozenset[Kind]) -> LocationSet:
        """All memory of other kinds: to look at each of the thousands that values may be would be quadratic."""
        facts = self.facts
        looked_at, found = self._all_but.get(kinds, (0, EMPTY))
        new = [x for x in range(looked_at, len(facts.targets)) if x in facts.sites and facts.site(x).kind not in kinds]
        found = self.union(found, self._dag.sets.of(new))
        self._all_but[kinds] = len(facts.targets), found
        return found

    def held_by(self, location: int) -> LocationSet:
        """What the object at ``location`` holds directly."""
        held = self._solver.all_contents(location)
        return self._dag.locations(held) if held else EMPTY

    def describe(self, location: int) -> Location:
        """``location`` as queries report it."""
        return self._solver.facts.site(location).location()

    def knows_order_of_writers(self) -> bool:
        """Whether nodes that write the same memory stand as they did when they were first asked about."""
        return self._solver.index.is_in_order()

    def any_writes(self) -> bool:
        """Whether anything in the graph writes at all."""
        return bool(self._solver.index)

    def acts_on_world_between(self, first: Node, last: Node) -> bool:
        """Whether some node strictly between two nodes of one block acts on the world."""
        return self._solver.index.acts_on_world_between(first, last)

    def touches_written(self, node: Node) -> bool:
        """Whether ``node`` writes, or reads what anything writes."""
        self.check_own(node)
        index = self._solver.index
        if not index:
            return False
        return self.write_set(node) is not EMPTY or index.touches(self.read_set(node))

    def reads_written(self, node: Node, goal: Node) -> bool:
        """Whether ``goal``, or a node between it and ``node`` in their block, may write what ``node`` reads."""
        read = self.read_set(node)
        if intersects(self.write_set(goal), read):
            return True
        first, last = (node, goal) if node.is_before(goal) else (goal, node)
        return self._solver.index.written_between(read, first, last)

    # -- motion ----------------------------------------------------------

    def can_move_before(self, node: Node, point: Node) -> bool:
        """Whether ``move_before`` would succeed."""
        return Move(self, node, point, before=True).plan is not None

    def can_move_after(self, node: Node, point: Node) -> bool:
        """Whether ``move_after`` would succeed."""
        return Move(self, node, point, before=False).plan is not None

    def move_before(self, node: Node, point: Node, last: Node | None = None) -> bool:
        """Move ``node`` right before ``point``, a node of the same block, if nothing can tell the difference.

        Nodes between the two move too where they must. Returns whether it was
        done; if not, nothing has changed. With ``last``, a node behind
        ``point``, all from there to ``last`` stay together: what must not stay
        before them goes behind them; ``node`` must be before them, or nothing
        is done.
        """
        return self._move(node, point, True, last)

    def move_after(self, node: Node, point: Node) -> bool:
        """Move ``node`` right after ``point``; otherwise as ``move_before``."""
        return self._move(node, point, False)

    def blocker(self, node: Node, point: Node) -> Node | None:
        """A node that keeps ``node`` from moving right before ``point``; None if it may, or none is known."""
        return Move(self, node, point, before=True).blocker

    def _move(self, node: Node, point: Node, before: bool, last: Node | None = None) -> bool:
        move = Move(self, node, point, before, last)
        if move.plan is None:
            return False
        move.carry_out()
        return True

    # -- updates ---------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """``node`` is new in the graph; its inputs, outputs and blocks are complete."""
        self.check_own(node)
        self._solution.add_node(node)

    def create_value(self, value: Value) -> None:
        """``value`` is new and denotes fresh memory, whatever its node is."""
        self._check_told(value)
        self._solution.create_value(value)

    def copy_value(self, source: Value, target: Value) -> None:
        """``target`` is new and denotes what ``source`` does."""
        self._check_told(source, target)
        self._solution.copy_value(source, target)

    def rehome_value(self, value: Value) -> None:
        """``value`` is about to become the result of another node. It denotes what it did."""
        self._check_told(value)
        self._solution.rehome_value(value)

    def unnest_nodes(self, node: Node, moved: Iterable[Node] | None = None) -> None:
        """Nodes have moved from the blocks of ``node``, which is still in the graph, to before it.

        ``moved`` lists these nodes, if given: then there is nothing to do unless one of them writes.
        """
        self._solution.unnest_nodes(node, moved)

    def set_wildcard(self, value: Value) -> None:
        """Make ``value`` unknown: any unknown memory of its type may be its own, and unknown code may hold it."""
        self._check_told(value)
        self._solution.set_wildcard(value)

    def own_inputs(self) -> None:
        """Declare that all inputs share memory with nothing, as an analysis with all as ``noalias`` does."""
        objects = self.module.objects_of(self.graph).keys() if self.module else ()
        new = [v for v in self.graph.inputs if v not in self.noalias and v.name not in objects]
        self.noalias = self.noalias.union(new)
        self._solution.own_inputs(new)

    def replace_value(self, old: Value, new: Value) -> None:
        """Report that every use of ``old``, except as a graph output, has become a use of ``new``.

        Call it after the replacement. If ``new`` is a constant that settles what its users do (whether a
        normalisation trains), and ``old`` is not one, the db remains a superset of the exact answer until ``tighten``.
        """
        self.replace_values([(old, new)])

    def replace_values(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        """`replace_value` for pairs of old and new, none replacing another, with one re-analysis at most.

        Call it after all of them have been replaced.
        """
        pairs = list(pairs)
        for pair in pairs:
            self._check_told(*pair)
        self._solution.replace_values(pairs)

    def retype_value(self, value: Value, before: Type) -> None:
        """The type of ``value``, which was ``before``, has become more exact.

        Where it says less of memory now (a ``Tensor?`` is None), or has a user mean another overload, the db stays what
        it was, a superset, until ``tighten``. Of shapes and element types it says nothing.
        """
        self._check_told(value)
        value.report_type()
        self._solution.retype_value(value, before)

    def erase_value(self, value: Value) -> None:
        """``value`` is about to be erased, or has been."""
        self._solution.erase_value(value)

    def cut_inputs(self, node: Node) -> None:
        """Report that ``node``, or its blocks, will lose inputs or returns on which no value depends."""
        self._solution.cut_inputs(node)

    def erase_node(self, node: Node) -> None:
        """``node``, with all inside it, is about to be erased. Call it before erasing the node from the graph."""
        self._solution.erase_node(node)

    def refresh(self) -> None:
        """The graph has changed beyond what the updates can tell: analyse it again as a whole."""
        self._solution.refresh()

    def tighten(self) -> None:
        """Drop what is left of erased nodes, so that every query answers as after a rebuild."""
        self._solution.tighten()

    @contextmanager
    def rewrite(self) -> Generator[None]:
        """A context for a change of the graph and the updates that report it; inside, the two may disagree.

        If a value was replaced by one that it might have been (the result of an If, by what one of its blocks returns),
        and much of the graph has to be analysed again for that, this is done once, when the outermost bracket closes.
        Until then the database is a superset. If ``check_rewrites`` is set, it is then checked.
        """
        self._solution.open += 1
        try:
            yield
        finally:
            self._solution.open -= 1
        if not self._solution.open:
            self._solution.close()
            if self.check_rewrites:
                self.check()

    @property
    def is_tight(self) -> bool:
        """Whether there are no traces of what was possible before: see `IncrementalSolution`."""
        return self._solution.is_tight

    @property
    def solves(self) -> int:
        """How often the graph was analysed as a whole: once, and when an update changed too much to follow."""
        return self._solution.solves

    @property
    def regions(self) -> int:
        """How often a part of the graph was analysed again."""
        return self._solution.regions

    @property
    def generation(self) -> tuple[int, int]:
        """Grows whenever values got new locations in place of those they had."""
        return self.solves, self.regions

    def is_declared_unknown(self, value: Value) -> bool:
        """Whether ``value`` was declared unknown, which the graph itself does not show."""
        return value in self._solution.declared_unknown

    def declares_unknown(self) -> bool:
        """Whether values of the graph were declared unknown, which the graph itself does not show."""
        return bool(self._solution.declared_unknown)

    def counters(self) -> dict[str, int]:
        """Counts of elements made and known, unions, known elements grown, and analyses in full and in part."""
        return self._solution.counters()

    def check(self, exact: bool = True) -> None:
        """Analyse the graph again and compare the answers; ``Error`` IRC340 names the first difference.

        An answer may be more cautious than the new one only while ``is_tight`` is false, or if not ``exact``.
        """
        fresh = AliasDb(self._record())
        for value in self._solution.declared_unknown:
            fresh._solution.set_wildcard(value)
        compare(self, fresh, exact and self.is_tight and not self._solver.functions.is_cautious)

    def _check_told(self, *values: object) -> None:
        """Raise an error unless ``values`` are of the graph: a foreign one would pass for a new value."""
        self.check_single(*values, taken="updates take one value at a time")

    # -- explaining and drawing ------------------------------------------

    def why(self, a: Value, b: Value) -> list[Fact]:
        """The facts that let ``a`` and ``b``, or something they hold, share memory; empty if they never do.

        Takes one value on each side.
        """
        self.check_single(a, b)
        return explain.why(self, a, b)

    def why_not(self, a: Value, b: Value) -> str:
        """Why ``a`` and ``b``, one value each, never share memory; "" if they may."""
        self.check_single(a, b)
        if not intersects(self.location_set(a), self.location_set(b)):
            return "no memory that one of them may denote is what the other may denote"
        found = regions.apart(self, a, b)
        return "" if found is None else str(found)

    def __repr__(self) -> str:
        return f"<alias analysis of {self.graph!r}>"

    def __str__(self) -> str:
        return explain.to_text(self)

    def _repr_html_(self) -> str:
        from irc.alias.drawing import notebook_html

        return notebook_html(self)

    def to_dot(self) -> str:
        """Values, locations, what they hold and which nodes write them, in Graphviz's language."""
        return explain.to_dot(self)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """The same as a networkx graph; nodes have ``label`` and ``sort``, edges ``kind``."""
        return explain.to_networkx(self)

    # -- values and nodes of the graph -------------------------------------

    def _element(self, value: Value) -> int:
        found = self._solver.facts.elements.get(value)
        if found is not None:
            return found
        self._check_own_value(value)
        return self._solver.element(value)

    def check_own(self, node: Node) -> None:
        """Error IRC343 if ``node`` is not in the graph: the analysis knows nothing of it."""
        if node.block is not self.graph.block and not self._stands(node.block):
            where = f"%{node.outputs[0].name} = {node.kind}" if node.outputs else node.kind
            raise _foreign(node.block, where, "node")

    def check_single(self, *values: object, taken: str = "this query takes one value on each side") -> None:
        """TypeError if one of ``values`` is not a single value; Error IRC343 if it is not of the graph."""
        for value in values:
            if not isinstance(value, Value):
                raise TypeError(f"{taken}, not {value!r}")
            self._check_own_value(value)

    def _check_own_value(self, value: Value) -> None:
        if not self._stands(value.block):
            raise _foreign(value.block, f"%{value.name}", "value")

    def _check_values(self, values: Values) -> None:
        """Raise IRC343 or TypeError for bad ``values``, for queries that answer without looking at them."""
        for value in (values,) if isinstance(values, Value) else each(values):
            if value.__class__ is not Value:
                self._check_values(value)
            elif value.block is not self.graph.block:
                self._check_own_value(value)

    def _stands(self, block: Block | None) -> bool:
        """Whether ``block`` is the graph's block, or nested in it."""
        return outermost(block) is self.graph.block

    @property
    def _dag(self) -> MemoryDAG:
        return self._solver.dag


def _read_by(node: Node) -> Sequence[Value]:
    """The inputs whose memory ``node`` may read; a return of a TorchScript block reads none.

    ONNX loops read them, as they stack what their bodies return.
    """
    outer = node.outer if node.is_return else None
    if outer is not None:
        if outer.kind == IF:
            return ()
        if outer.kind == PRIM_LOOP:
            return node.inputs[:1]  # whether to go on
    return node.inputs


def each(values: Iterable[Value]) -> Iterable[Value]:
    """The members of a collection of values; TypeError for a string, whose members are strings again."""
    if isinstance(values, str):
        raise TypeError(f"queries take values, not names: graph.value({values!r})")
    return values


def _members(values: Values) -> Iterator[Value]:
    """The values in a collection of values, and in collections in it."""
    for value in (values,) if isinstance(values, Value) else each(values):
        if value.__class__ is Value:
            yield value
        else:
            yield from _members(value)


def _foreign(block: Block | None, where: str, what: str) -> Error:
    """Error IRC343 for a node or value in ``block``, which is not in the graph."""
    top = outermost(block)
    if top is None or top is not top.graph.block:
        message = f"this {what} stands in no graph: it was erased, or is not inserted yet"
    else:
        message = (
            f"this {what} is of another graph, of which the analysis knows nothing: analyze that "
            "graph by itself (that of a group of nodes is its attribute Subgraph)"
        )
    return Error("IRC343", message, where)
