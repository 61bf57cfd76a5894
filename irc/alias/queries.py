"""The questions an ``AliasDb`` answers."""

from __future__ import annotations

from irc.alias import facts as f
from irc.alias.locations import Kind, Location
from irc.alias.memory_types import has_memory
from irc.alias.must import must_share, same_tensor
from irc.alias.paths import common_block, outermost_loop
from irc.alias.places import Places, Values, each
from irc.alias.sets import EMPTY, LocationSet, askable, contains, intersects, members
from irc.ir.kinds import IF
from irc.ir.node import Node
from irc.ir.objects import Object
from irc.ir.types import TensorType
from irc.ir.value import Value
from irc.ops.metadata import Change


class Queries(Places):
    """Which values may share memory, which nodes write it, and when.

    A query that takes `Values` accepts one value or several; with several, the answer is that for any of them.
    """

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

    def same_tensor(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b``, one value each, certainly are one tensor, or one container, where both are defined.

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
        solver = self._solver
        moved = (solver.became_unknown, solver.index.reshaped(Change.MEMORY))
        return not any(intersects(self.location_set(v), gone) for v in (a, b) for gone in moved)

    def has_metadata_writers(self, values: Values) -> bool:
        """Whether anything in the graph changes the shape or strides of a tensor in the memory of ``values``."""
        locations = self.location_set(values)
        return intersects(locations, self._solver.index.reshaped(Change.SHAPE))

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
        return index.touches(self.reach_set(values) if contained else self.location_set(values))

    def writers(self, values: Values) -> list[Node]:
        """The nodes that write memory of ``values``, or of what they hold; not the nodes around these."""
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
        if not index.touches(reach):
            return False
        block = common_block(first, last)
        assert block is not None, "both are in the graph"
        start, end = first.ancestor_in(block), last.ancestor_in(block)
        assert start is not None and end is not None, "the block contains both"
        in_order = start.is_before(end)
        if not in_order or start is not first:  # iterations of a loop around may lead back, and pass ``first`` by
            loop = outermost_loop(block)
            if loop is not None and index.written_in(loop, reach):
                return True
        if not in_order:  # else only a node that is not known to branch leads from one of its blocks to another
            leads_on = start is end and start.kind != IF and start is not first and start is not last
            return leads_on and index.writes_any(start, reach)
        return (
            index.written_between(reach, start, end)
            or (start is not first and self._written_inside(reach, start, after=first))
            or (end is not last and self._written_inside(reach, end, before=last))
        )

    def _written_inside(
        self, reach: LocationSet, outer: Node, before: Node | None = None, after: Node | None = None
    ) -> bool:
        """Whether ``outer`` may write ``reach`` after, or before, it runs a node inside of it, which is given."""
        index = self._solver.index
        at = before or after
        assert at is not None, "one of the two is given"
        if index.writes_any(at, reach):
            return True
        while at is not outer:
            around, block = at.outer, at.block
            assert around is not None and block is not None, "it is inside"
            writes = index.writes_itself if around.kind == IF else index.writes_any  # a loop may run all that is in it
            first, last = (None, at) if before else (at, block.return_node)
            if writes(around, reach) or index.written_between(reach, first, last):
                return True
            at = around
        return False

    def reads(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may read. Valid until the next update."""
        return self._report(self.read_set(node))

    def writes(self, node: Node) -> frozenset[Location]:
        """What ``node``, or one inside it, may write. Valid until the next update."""
        return self._report(self.write_set(node))

    def writes_anything(self, node: Node) -> bool:
        """Whether ``node``, or one inside it, may write at all; does not collect the locations, possibly thousands."""
        return self.write_set(node) is not EMPTY

    def is_functional(self, node: Node) -> bool:
        """Whether ``node`` writes nothing and each output either is a tensor in memory of its own or has no memory."""
        return not self.writes_anything(node) and all(map(self._is_own, node.outputs))

    def _is_own(self, value: Value) -> bool:
        """Whether ``value`` certainly is a tensor in memory that its node makes for it alone, or has no memory."""
        if value.type.__class__ is not TensorType:
            return not has_memory(value.type)
        facts, element = self._solver.facts, self._element(value)
        return facts.targets[element] is None and facts.sites.get(element) is value

    def safe_to_change_aliasing(self, a: Values, b: Values) -> bool:
        """Whether sharing between ``a`` and ``b`` cannot be observed: neither is written, and at most one escapes."""
        a, b = (v if isinstance(v, Value) else tuple(each(v)) for v in (a, b))  # each is asked about twice
        if self.has_writers(a) or self.has_writers(b):
            return False
        return not (self.escapes(a) and self.escapes(b))

    def _report(self, locations: LocationSet) -> frozenset[Location]:
        found = {self.describe(x) for x in members(locations)}
        if any(x.kind is Kind.UNKNOWN for x in found):
            # What borrowed inputs denote is unknown memory, and any unknown memory may be theirs.
            wild = self._solver.facts.wild_types
            for value in self.graph.inputs:
                if any(x in wild and contains(locations, x) for x in members(self.location_set(value))):
                    found.add(Location(Kind.BORROWED, value, value.type))
        return frozenset(found)
