"""Sets of locations: where values may be, what nodes read and write."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeAlias

from irc.alias.builder import AliasDbBuilder
from irc.alias.facts import Facts
from irc.alias.live import Descent, LiveMemory
from irc.alias.locations import Kind, Location
from irc.alias.memory_dag import MemoryDAG
from irc.alias.paths import outermost
from irc.alias.sets import EMPTY, LocationSet, contains, intersects, members
from irc.alias.solver import Solver
from irc.errors import Error
from irc.ir.block import Block
from irc.ir.kinds import IF, PRIM_LOOP
from irc.ir.node import Node
from irc.ir.value import Value

Values: TypeAlias = Value | Iterable[Value]


class Places:
    """The solution as sets of locations, for callers to whom `Queries` is too slow.

    Locations are numbers, valid until the next update. A query that takes `Values` accepts one value or several; with
    several, the answer is that for any of them.
    """

    def __init__(self, builder: AliasDbBuilder) -> None:
        self.graph = builder.graph
        self.module = builder.module
        self.noalias = builder.noalias
        self._solve(builder)

    def _solve(self, builder: AliasDbBuilder) -> None:
        """Solve what ``builder`` recorded."""
        self._solver = Solver(builder.facts, builder.writes, builder.functions)
        self._answers = self._solver.dag.answers
        self._others: dict[frozenset[Kind], tuple[int, LocationSet]] = {}

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

    def descent(self) -> Descent:
        """A walk from values down to what they may denote, not what that holds. Valid until the next update."""
        return Descent(self._solver, contained=False)

    def live_memory(self) -> LiveMemory:
        """A search for the writes that matter. Valid until the next update."""
        return LiveMemory(self._solver)

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

    def is_wild(self, location: int) -> bool:
        """Whether ``location`` stands for unknown memory."""
        return location in self._solver.facts.wild_types

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
        looked_at, found = self._others.get(kinds, (0, EMPTY))
        for location in range(looked_at, len(facts.targets)):
            if location in facts.sites and facts.site(location).kind not in kinds:
                found = self.union(found, location)
        self._others[kinds] = len(facts.targets), found
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
        """Whether what ``node`` reads may be written by ``goal``, a node of the same block, or by a node between."""
        read = self.read_set(node)
        if intersects(self.write_set(goal), read):
            return True
        first, last = (node, goal) if node.is_before(goal) else (goal, node)
        return self._solver.index.written_between(read, first, last)


def _read_by(node: Node) -> Sequence[Value]:
    """The inputs whose memory ``node`` may read: a return of a TorchScript block passes values on without reading them.

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
    """The members of a collection of values; TypeError for a string, whose members are strings without end."""
    if isinstance(values, str):
        raise TypeError(f"queries take values, not names: graph.value({values!r})")
    return values


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
