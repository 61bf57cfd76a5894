"""The questions an ``AliasDb`` answers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeAlias

from irc.alias import facts as f
from irc.alias.builder import AliasDbBuilder
from irc.alias.facts import Facts
from irc.alias.live import Descent, LiveMemory
from irc.alias.locations import Kind, Location
from irc.alias.memory_dag import MemoryDAG
from irc.alias.memory_types import has_memory
from irc.alias.must import must_alias
from irc.alias.paths import may_run_between, outermost
from irc.alias.sets import EMPTY, LocationSet, askable, contains, intersects, members
from irc.alias.solver import Solver
from irc.errors import Error
from irc.ir.block import Block
from irc.ir.kinds import IF
from irc.ir.node import Node
from irc.ir.objects import Object
from irc.ir.types import TensorType
from irc.ir.value import Value

Values: TypeAlias = Value | Iterable[Value]


class Queries:
    """Which values may share memory, who writes it, and when.

    Where a query takes `Values`, one value or several will do; of several, any counts.
    """

    def __init__(self, builder: AliasDbBuilder) -> None:
        self.graph = builder.graph
        self.module = builder.module
        self.noalias = builder.noalias
        self._solve(builder)

    def _solve(self, builder: AliasDbBuilder) -> None:
        """Turn what was recorded into what answers."""
        self._solver = Solver(builder.facts, builder.writes, builder.functions)
        self._answers = self._solver.dag.answers

    def _element(self, value: Value) -> int:
        found = self._solver.facts.elements.get(value)
        if found is not None:
            return found
        self._check_own_value(value)
        return self._solver.element(value)

    def check_own(self, node: Node) -> None:
        """Error IRC343 if ``node`` does not stand in the graph: nothing is known of what it does."""
        if node.block is not self.graph.block and not self._stands(node.block):
            where = f"%{node.outputs[0].name} = {node.kind}" if node.outputs else node.kind
            raise _foreign(node.block, where, "node")

    def check_single(self, *values: object, taken: str = "this query takes one value on each side") -> None:
        """TypeError if one of ``values`` is not a value, but several, say; Error IRC343 if it is not of the graph."""
        for value in values:
            if not isinstance(value, Value):
                raise TypeError(f"{taken}, not {value!r}")
            self._check_own_value(value)

    def _check_own_value(self, value: Value) -> None:
        if not self._stands(value.block):
            raise _foreign(value.block, f"%{value.name}", "value")

    def _check_values(self, values: Values) -> None:
        """What a query does that need not look at ``values``: error IRC343 or TypeError as if it had."""
        for value in (values,) if isinstance(values, Value) else _each(values):
            if value.__class__ is not Value:
                self._check_values(value)
            elif value.block is not self.graph.block:
                self._check_own_value(value)

    def _stands(self, block: Block | None) -> bool:
        """Whether ``block`` is the graph's, or nested in it."""
        return outermost(block) is self.graph.block

    @property
    def _dag(self) -> MemoryDAG:
        return self._solver.dag

    # -- sharing ---------------------------------------------------------

    def may_alias(self, a: Values, b: Values) -> bool:
        """Whether some value of ``a`` and some value of ``b`` may denote the same memory.

        What containers hold does not count: see ``may_contain_alias``.
        """
        answers = self._answers  # the most frequent question by far: without a call, where both answers are known
        try:
            return not answers[a].isdisjoint(answers[b])  # type: ignore[index,arg-type]  # no value: it is not there
        except (KeyError, TypeError):
            for value in (a, b):
                if isinstance(value, Value):
                    answers[value] = askable(self.location_set(value))
            return intersects(self.location_set(a), self.location_set(b))

    def must_alias(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b``, one value each, certainly share memory where both are defined (unless empty)."""
        self.check_single(a, b)
        unknown = self._solver.became_unknown  # who else has their storage then, is not known
        return must_alias(a, b) and (a is b or not any(intersects(self.location_set(v), unknown) for v in (a, b)))

    def may_contain_alias(self, a: Values, b: Values) -> bool:
        """Whether ``a``, or anything it holds, may share memory with ``b`` or anything that holds."""
        return intersects(self.reach_set(a), self.reach_set(b))

    def escapes(self, values: Values) -> bool:
        """Whether ``values``, or anything they hold, may be known outside of the graph.

        That is: through its inputs, its outputs, or unknown code.
        """
        return self.may_be_known(values) or intersects(self.reach_set(values), self._reached_from_outside())

    def may_be_known(self, values: Values) -> bool:
        """Whether unknown code may know ``values``, or anything they hold: it keeps what it has seen."""
        dag = self._dag
        return intersects(self.reach_set(values), dag.closure(dag.locations(f.OUTSIDE)))

    def _reached_from_outside(self) -> LocationSet:
        """What the inputs and outputs of the graph denote, and all that objects there hold."""
        inputs, outputs = self.graph.inputs, self.graph.outputs
        known = self._dag.interface
        if known is not None and known[0] is inputs and known[1] is outputs:
            return known[2]
        grown = self._solver.grown
        reach = self.reach_set((*inputs, *outputs))
        if self._solver.grown == grown:  # or else what was asked first may have grown by what was asked last
            self._dag.interface = inputs, outputs, reach
        return reach

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
            what: a value, several, or a node.
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
        return index.touches(self.reach_set(values) if contained else self.location_set(values))

    def writers(self, values: Values) -> list[Node]:
        """The nodes that write memory of ``values``, or of what containers there hold; not those around them."""
        index = self._solver.index
        if not index:
            self._check_values(values)
            return []
        return index.writing(self.reach_set(values))

    def written_weights(self) -> frozenset[str]:
        """The names of the model's tensors, constants and attributes, that anything in the graph writes."""
        index = self._solver.index
        return frozenset(name for name, location in self.facts.constants.items() if index.touches(location))

    def is_mutable(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, writes to one of its inputs or to what an input holds."""
        written = self.write_set(node)
        return written is not EMPTY and intersects(written, self.reach_set(node.inputs))

    def has_side_effects(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, acts on the world: it is never removed and nothing is moved past it."""
        self.check_own(node)
        return self._solver.index.writes_element(node, f.WORLD)

    def is_random(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, uses the random state."""
        self.check_own(node)
        return self._solver.index.writes_element(node, f.RANDOM)

    def writes_to_alias(self, node: Node, values: Values) -> bool:
        """Whether ``node``, or one inside it, writes memory of ``values`` or of what they hold."""
        written = self.write_set(node)
        if written is EMPTY:
            self._check_values(values)
            return False
        return intersects(written, self.reach_set(values))

    def writes_to_wildcard(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, writes unknown memory."""
        wild = self._solver.facts.wild_types
        return any(x in wild for x in members(self.write_set(node)))

    def writes_between(self, values: Values, first: Node, last: Node) -> bool:
        """Whether memory of ``values``, or of what they hold, may be written after ``first`` and before ``last``.

        All paths count, through branches and loops, from the latest run of
        ``first`` before ``last`` runs. Writes by the two themselves do not count.
        """
        self.check_own(first)
        self.check_own(last)
        index = self._solver.index
        if not index:
            self._check_values(values)
            return False
        reach = self.reach_set(values)
        if not index.touches(reach):
            return False
        end = last.ancestor_in(first.block) if first.block is not None else None
        if end is not None and first.is_before(end):  # the way between leaves the block for no loop around
            if index.written_between(reach, first, end):
                return True
            if end is last:
                return False
        return any(may_run_between(first, writer, last) for writer in index.writing(reach))

    def reads(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may read. Valid until the next update."""
        return self._report(self.read_set(node))

    def writes(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may write. Valid until the next update."""
        return self._report(self.write_set(node))

    def writes_anything(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, may write at all: what it writes may be thousands of locations."""
        return self.write_set(node) is not EMPTY

    def is_functional(self, node: Node) -> bool:
        """Whether ``node`` writes nothing, and its outputs are tensors in memory of their own, or no memory."""
        return not self.writes_anything(node) and all(map(self._is_own, node.outputs))

    def _is_own(self, value: Value) -> bool:
        """Whether ``value`` surely is a tensor in memory that its node makes for it alone, or no memory."""
        if value.type.__class__ is not TensorType:
            return not has_memory(value.type)
        facts, element = self._solver.facts, self._element(value)
        return facts.targets[element] is None and facts.sites.get(element) is value

    def safe_to_change_aliasing(self, a: Values, b: Values) -> bool:
        """Whether nobody can see if ``a`` and ``b`` share memory: neither is written, nor do both escape."""
        a, b = (v if isinstance(v, Value) else tuple(_each(v)) for v in (a, b))  # each is asked about twice
        if self.has_writers(a) or self.has_writers(b):
            return False
        return not (self.escapes(a) and self.escapes(b))

    # -- sets of locations, for the other parts of this package -------------

    def location_set(self, values: Values) -> LocationSet:
        """What ``values`` may denote."""
        solver = self._solver
        if isinstance(values, Value):
            return solver.dag.locations(self._element(values))
        return solver.dag.sets.union_all([self.location_set(v) for v in _each(values)])

    def union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        """The locations of both."""
        return self._dag.sets.union(a, b)

    def reach_set(self, values: Values) -> LocationSet:
        """What ``values`` may denote, and all that objects there hold."""
        if isinstance(values, Value):
            return self._dag.closure(self.location_set(values))
        return self._dag.sets.union_all([self.reach_set(v) for v in _each(values)])

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

    def descent(self) -> Descent:
        """To go down from values to what they may denote, not what that holds. Valid until the next update."""
        return Descent(self._solver, contained=False)

    def live_memory(self) -> LiveMemory:
        """To find which writes matter. Valid until the next update."""
        return LiveMemory(self._solver)

    def writing_nodes(self) -> list[Node]:
        """The nodes that write, not those around them."""
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
        """The element of all that the object at ``location`` holds; 0 if that has no memory."""
        return self._solver.all_contents(location)

    def is_wild(self, location: int) -> bool:
        """Whether ``location`` stands for unknown memory."""
        return location in self._solver.facts.wild_types

    def is_private(self, location: int, kinds: Container[Kind]) -> bool:
        """Whether ``location`` is of one of ``kinds``, and unknown code cannot know it."""
        return location not in self.facts.escaped and self.facts.site(location).kind in kinds

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
        """Whether some node between two of one block, neither of them counted, acts on the world."""
        return self._solver.index.acts_on_world_between(first, last)

    def touches_written(self, node: Node) -> bool:
        """Whether ``node`` writes, or reads what anything writes."""
        self.check_own(node)
        index = self._solver.index
        if not index:
            return False
        return self.write_set(node) is not EMPTY or index.touches(self.read_set(node))

    def reads_written(self, node: Node, goal: Node) -> bool:
        """Whether what ``node`` reads may be written by ``goal``, a node of the same block, or between the two."""
        read = self.read_set(node)
        if intersects(self.write_set(goal), read):
            return True
        first, last = (node, goal) if node.is_before(goal) else (goal, node)
        return self._solver.index.written_between(read, first, last)

    def _report(self, locations: LocationSet) -> frozenset[Location]:
        found = {self.describe(x) for x in members(locations)}
        if any(x.kind is Kind.UNKNOWN for x in found):
            # What borrowed inputs denote is unknown memory, and any unknown memory may be theirs.
            wild = self._solver.facts.wild_types
            for value in self.graph.inputs:
                if any(x in wild and contains(locations, x) for x in members(self.location_set(value))):
                    found.add(Location(Kind.BORROWED, value, value.type))
        return frozenset(found)


def _read_by(node: Node) -> Sequence[Value]:
    """The inputs whose memory ``node`` may read: what a block of TorchScript's hands on stays as it is.

    ONNX loops stack what their bodies return.
    """
    outer = node.outer if node.is_return else None
    if outer is not None:
        if outer.kind == IF:
            return ()
        if outer.kind == "prim::Loop":
            return node.inputs[:1]  # whether to go on
    return node.inputs


def _each(values: Iterable[Value]) -> Iterable[Value]:
    """The members of a collection of values; TypeError for a name, which nests without end."""
    if isinstance(values, str):
        raise TypeError(f"queries take values, not names: graph.value({values!r})")
    return values


def _foreign(block: Block | None, where: str, what: str) -> Error:
    """IRC343: what stands in ``block`` does not stand in the graph."""
    top = outermost(block)
    if top is None or top is not top.graph.block:
        message = f"this {what} stands in no graph: it was erased, or is not inserted yet"
    else:
        message = (
            f"this {what} is of another graph, of which the analysis knows nothing: analyze that "
            "graph by itself (that of a group of nodes is its attribute Subgraph)"
        )
    return Error("IRC343", message, where)
