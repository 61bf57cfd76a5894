"""Results written over operands that nothing needs any more.

Each rewrite is proved by the alias analysis and reported to it, since the next proof relies on its answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import ClassVar, Self

from irc.alias import AliasDb, Kind
from irc.alias.facts import OWN
from irc.alias.location_sets import EMPTY, LocationSet, contains, intersects, members
from irc.ir import Block, Graph, Node, TensorType, Value, counterpart, describe
from irc.ir.kinds import CONSTANT, GROUP, IF, ONNX_LOOP, PRIM_LOOP
from irc.ir.region_flow import Slot, bodies, slots
from irc.ops import Movement, record, schemas
from irc.ops.layouts import lies_as_first, makes_dense
from irc.ops.pointwise import can_replace_input, inplace_variant_of, reads_first
from irc.passes.base import MOST_EXPLAINED, PassContext
from irc.passes.layouts import Contiguity, Layouts
from irc.passes.registry import register
from irc.support.remarks import NOT_IN_PLACE, Reason, Remedy, declare, fix_sizes, move_before

_WHOSE = {
    Kind.CONSTANT: "a constant",
    Kind.BORROWED: "an input that the caller keeps",
    Kind.ATTRIBUTE: "an attribute of an object",
    Kind.UNKNOWN: "unknown memory",
}


OTHER_FORM = "its result may have another shape or element type than"
"""A reason that runs need not have, which know shapes and element types."""


@register
@dataclass(frozen=True)
class InPlace:
    """Replace operators by their in-place variants: ``onnx::Relu(%x)`` by ``onnx::Relu_(%x)``.

    Only where it makes no observable difference: the operand is whole memory of
    its own, made in the graph or donated; the result surely has its element
    type and shape; the operator reads it at the same places only, through no
    other operand, unless it is one tensor in an operator like Add (`reads_first`); and no value that
    may be, or hold, that memory is used later, on any path. If the operator
    commutes, the first operand that is free is taken. Where something may see how the result lies in memory, it must
    surely lie as the operand does.
    """

    name: ClassVar[str] = "in-place"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Walk in order, until a walk finds nothing more: in loops, one decision may depend on a later one."""
        overwriter = _Overwriter(graph, ctx)
        while overwriter.walk():
            pass
        for node, reason in overwriter.reasons():
            ctx.note(node, Reason(f"not in place: {reason}", reason.blocker, reason.remedy), NOT_IN_PLACE)
        ctx.count("in_place", overwriter.done)
        return bool(overwriter.done)


class _Overwriter:
    """One run of the pass.

    Attributes:
        refused: nodes that stay as they are -> why.
        done: how many were replaced.
    """

    def __init__(self, graph: Graph, ctx: PassContext) -> None:
        self.refused: dict[Node, Reason] = {}
        self.done = 0
        self._graph = graph
        self._ctx = ctx
        self._rewriter = ctx.rewriter(graph)
        self._db = self._rewriter.db
        self._holders = ReverseAlias(self._db, graph.inputs)  # of values in sight: those before the node in question
        self._owners = StorageOwners(self._db)
        self._uses = LastUses()
        self._layouts = Layouts(graph, self._db, ctx.memory)
        self._contiguity = Contiguity(self._db.has_metadata_writers)

    def walk(self) -> bool:
        """Look at every node once; whether any was replaced."""
        before = self.done
        self.refused.clear()
        self._holders = ReverseAlias(self._db, self._graph.inputs)
        around: list[Node] = []
        for node in self._graph.walk():
            while around and around[-1] not in node.around():
                self._holders.enter(around.pop().outputs)
            if node.blocks:  # what it makes is not in sight of what is in it
                around.append(node)
                for block in node.blocks:
                    self._holders.enter(block.params)
            elif not self._overwrite(node):
                self._holders.enter(node.outputs)
        return self.done > before

    def _overwrite(self, node: Node) -> bool:
        """Let ``node`` write over an operand, the first that it may; whether it was replaced."""
        kind = inplace_variant_of(node)
        if kind is None or not node.inputs or len(node.outputs) != 1 or not node.output.has_uses:
            return False
        reasons: list[Reason] = []
        for index in range(len(node.inputs)):
            reason = self._refusal(node, index)
            if reason is None:
                if not self._ctx.allow(node):
                    return False
                self._replace(node, kind, index)
                return True
            reasons.append(reason)
        fitting = (reason for i, reason in enumerate(reasons) if can_replace_input(node, i))
        self.refused[node] = next(fitting, reasons[0])
        return False

    def _refusal(self, node: Node, index: int) -> Reason | None:
        """Why ``node`` may not write its result into operand ``index``; None if it may."""
        value = node.inputs[index]
        changes_metadata = self._db.has_metadata_writers((*node.inputs, node.output))
        if not can_replace_input(node, index) and not changes_metadata:
            return Reason(f"{OTHER_FORM} %{value.name}", value.name, _typing_remedy(node))
        db = self._db
        memory = db.location_set(value)
        if not isinstance(memory, int) and self._uses.may_be_used_after(value, node):
            return _UsedLater(value)  # asked first, for it may be at thousands of places
        foreign = self._foreign(memory)
        if foreign is not None:
            return Reason(f"%{value.name} may be {_WHOSE.get(foreign, 'anything')}", value.name)
        if not self._owners.owns_storage(value):
            text = f"%{value.name} may be a part of something larger, out of order, or repeat elements"
            return Reason(text, value.name)
        others = [v for i, v in enumerate(node.inputs) if i != index and intersects(db.reach_set(v), memory)]
        if others and not (reads_first(node.kind) and all(db.same_tensor(v, value) for v in others)):
            return Reason(f"%{value.name} is read through another operand too", others[0].name)
        if db.any_escaped(memory):
            return Reason(f"%{value.name} may have escaped to unknown code", value.name)
        if changes_metadata:
            return Reason("the graph changes shapes or element types of tensors in place")
        if not self._lies_as_operand(node, index):
            text = f"an operator observes the memory layout of its result, which may be otherwise than %{value.name}"
            return Reason(text, value.name)
        return self._later_use(node, value)

    def _lies_as_operand(self, node: Node, index: int) -> bool:
        """Whether ``node``'s result lies in memory as operand ``index``, without gaps, or nobody can tell.

        `Layouts` stays right of results that are not replaced yet: those that are get the memory of the operand.
        """
        if (index == 0 and lies_as_first(node)) or not self._layouts.is_seen(node.outputs):
            return True
        return all(map(self._contiguity.is_certain, (node.output, node.inputs[index])))

    def _foreign(self, memory: LocationSet) -> Kind | None:
        """The kind of some location in ``memory`` that the graph may not write to; None if there is none."""
        foreign = self._db.all_but(OWN)
        if not intersects(memory, foreign):
            return None
        location = next(x for x in members(memory) if contains(foreign, x))
        kind = self._db.describe(location).kind
        # What borrowed inputs denote is unknown memory.
        given = kind is Kind.UNKNOWN and any(contains(self._db.location_set(v), location) for v in self._graph.inputs)
        return Kind.BORROWED if given else kind

    def _later_use(self, node: Node, value: Value) -> Reason | None:
        """How ``value``'s memory may be used after ``node``, by a value that may be or hold it; or None."""
        memory = self._db.location_set(value)
        over: list[Value] = []
        found: Reason | None = None
        for holder in self._holders.candidates(memory):
            if holder.is_param and holder.block is self._graph.block and not self._is_donated(holder):
                known = True
            elif self._uses.may_be_used_after(holder, node):
                known = False
            else:
                if self._uses.is_over(holder, node):
                    over.append(holder)
                continue
            if self._holders.holds(holder, memory):
                text = f"the caller may know it through %{holder.name}"
                found = Reason(text, holder.name) if known else _UsedLater(holder)
                break
        self._holders.drop(over)  # else all that was ever in some memory would be looked at for each of its users
        return found

    def reasons(self) -> Iterator[tuple[Node, Reason]]:
        """The nodes that stay as they are, and why; of the first that wait for later users, which these are."""
        left = MOST_EXPLAINED
        for node, reason in self.refused.items():
            if isinstance(reason, _UsedLater) and left and reason.value.user_count <= MOST_EXPLAINED:
                left -= 1
                yield node, reason.explained(node, self._db)
            else:
                yield node, reason

    def _is_donated(self, value: Value) -> bool:
        return all(location.kind is Kind.DONATED for location in self._db.locations(value))

    def _replace(self, node: Node, kind: str, index: int) -> None:
        target, result = node.inputs[index], node.output
        operands = [target, *(v for i, v in enumerate(node.inputs) if i != index)]
        memory, freed = self._db.location_set(target), self._db.location_set(result)
        variant = counterpart(node, kind, operands, [result.type])
        with self._db.rewrite():
            self._rewriter.insert(variant, before=node)
            self._rewriter.replace(result, variant.output, keep_name=True)
            self._uses.replaced(node, variant)
            self._rewriter.erase(node)
        self._holders.moved(freed, memory)
        self._holders.enter(variant.outputs)
        self._owners.add(variant.output)
        self.done += 1


class _UsedLater(Reason):
    """That ``value`` is used later."""

    value: Value

    def __new__(cls, value: Value) -> Self:
        made = super().__new__(cls, f"%{value.name} is used later", value.name)
        made.value = value
        return made

    def explained(self, node: Node, db: AliasDb) -> Reason:
        """The same with the first later node that uses it, and the remedy if all those can go before."""
        after = [user for user in self.value.iter_users() if user.block is node.block and node.is_before(user)]
        after = sorted(dict.fromkeys(after), key=lambda user: user.order)
        names = [user.outputs[0].name for user in after if user.outputs]
        if not names:
            return self
        free = len(names) == len(after) and all(db.can_move_before(user, node) for user in after)
        remedy = move_before(names, node.output.name) if free else None
        return Reason(f"{self} by {describe(after[0])}", names[0], remedy)


def _typing_remedy(node: Node) -> Remedy | None:
    """What would tell that the result of ``node``, of tensors, is like an operand."""
    types = [value.type for value in node.inputs if isinstance(value.type, TensorType)]
    unknown = [
        v.name for v in node.inputs if isinstance(v.type, TensorType) and (not v.type.dtype or v.type.shape is None)
    ]
    if unknown:
        return declare(unknown)
    sizes = [size for type in types for size in type.shape or () if isinstance(size, str)]
    return fix_sizes(sizes) if sizes and len({type.rank for type in types}) == 1 else None


# -- last uses -----------------------------------------------------------------


_READ_AT_ENTRY = frozenset({IF, PRIM_LOOP, ONNX_LOOP})
"""Operators that read their inputs before anything inside them runs, and not again."""


class LastUses:
    """The last uses of values, kept once found. Whatever changes the graph must call ``replaced``."""

    def __init__(self) -> None:
        self._last: dict[Value, dict[Block, Node]] = {}
        """Value -> each block that it is used in, or inside a node of -> the last such node there."""

    def may_be_used_after(self, value: Value, node: Node) -> bool:
        """Whether what ``value`` denotes when ``node`` runs may still be used by name once ``node`` has run.

        These do not count: a use after ``value`` is defined again, on a later iteration of
        the loop that contains its definition; a use by ``node`` itself, unless it runs
        again before that.
        """
        home = value.block
        way = way_up(node, home)
        if home is None or not way:
            return False  # not visible from ``node``: a later use comes after a new definition
        if value.node is not None and not value.node.is_before(way[-1]):
            return False  # defined later
        last = self._last_in(value)
        loop = max((i for i, n in enumerate(way) if i and n.kind != IF), default=0)
        if loop and any(block in last for block in way[loop].blocks):
            return True  # it may run its inside again
        for i, at in enumerate(way[loop:], loop):
            beside = None if at.block is None else last.get(at.block)
            if beside is not None and at.is_before(beside):
                return True
            if i and at.kind not in _READ_AT_ENTRY and value.uses_by(at):
                return True
        return False

    def is_over(self, value: Value, node: Node) -> bool:
        """Whether ``value``, defined before ``node``, surely has no use after it; nested uses do not count.

        Then no path leads from the end of ``node`` to a use of the value.
        """
        home = value.block
        at = None if home is None else node.ancestor_in(home)
        if home is None or at is None:
            return True  # out of sight
        last = self._last_in(value).get(home)
        return last is None or last is node or last.is_before(at)

    def _last_in(self, value: Value) -> dict[Block, Node]:
        """Where ``value`` is used last, as `_last_uses` says."""
        found = self._last.get(value)
        if found is None:
            found = self._last[value] = _last_uses(value)
        return found

    def replaced(self, node: Node, variant: Node) -> None:
        """``variant``, with the same inputs and outputs, has taken the place of ``node``: neither has blocks."""
        for value in variant.inputs:
            last = self._last.get(value, {})
            if variant.block is not None and last.get(variant.block) is node:
                last[variant.block] = variant
        for old, new in zip(node.outputs, variant.outputs):
            if old in self._last:
                self._last[new] = self._last.pop(old)


def way_up(node: Node, home: Block | None) -> list[Node]:
    """``node`` and the nodes around it, innermost first, up to the one in ``home``; empty if none is."""
    way: list[Node] = []
    for at in chain((node,), node.around()):
        way.append(at)
        if at.block is home:
            return way
    return []


def _last_uses(value: Value) -> dict[Block, Node]:
    """For each block from that of ``value`` inwards: its last node that uses ``value``, nested or not."""
    found: dict[Block, Node] = {}
    for user in value.iter_users():
        at: Node | None = user
        while at is not None and at.block is not None:  # not `around`: entered for each use, in 0.15 us, not 0.6
            known = found.get(at.block)
            if known is None or known.is_before(at):
                found[at.block] = at
            if known is not None or at.block is value.block:
                break  # what is around is entered already
            at = at.block.node
    return found


# -- values that own their storage: each element once, in the order of memory ---


class StorageOwners:
    """Which values own their storage, memoised: whoever adds one that does must call ``add``.

    Slices, transposes and expanded tensors do not: writing into them would keep something larger alive, be slow, or
    write one element twice.
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self._known: dict[Value, bool] = {}
        self._slots = cache(_returned)
        """Node with blocks -> of each parameter and result that blocks return, its slot."""

    def add(self, value: Value) -> None:
        """Note that ``value`` owns its storage."""
        self._known[value] = True

    def owns_storage(self, value: Value) -> bool:
        """Whether ``value`` surely covers all its storage, whichever value allocated it."""
        known = self._known.get(value)
        if known is not None:
            return known
        seen = {value}
        pending = [value]
        while pending:
            at = pending.pop()
            if self._known.get(at) or self._is_fresh(at):
                continue
            sources = self._sources(at)
            if not sources or any(self._known.get(v) is False for v in sources):
                self._known[value] = False
                return False
            new = [v for v in sources if v not in seen]
            seen.update(new)
            pending += new
        self._known.update(dict.fromkeys(seen, True))
        return True

    def _is_fresh(self, value: Value) -> bool:
        """Whether the node of ``value`` allocates it, or the caller gives it up."""
        node = value.node
        if node is not None and not all(makes_dense(made.kind) for made in _makers(node)):
            return False
        wanted = Kind.DONATED if node is None else Kind.TEMPORARY
        memory = self._db.location_set(value)
        if not isinstance(memory, int):
            return False
        location = self._db.describe(memory)
        return location.kind is wanted and location.site is value and not location.path

    def _sources(self, value: Value) -> list[Value]:
        """The values that ``value`` may be, all of which must own their storage; empty if they are not known."""
        node = value.node
        if node is None:
            owner = value.definer
            return [] if owner is None else self._carried(owner, value)
        if node.blocks:
            return self._carried(node, value)
        if value.index == 0 and node.inputs and (_reshapes(node.kind) or _writes_first(node)):
            return [node.inputs[0]]
        return []

    def _carried(self, node: Node, value: Value) -> list[Value]:
        """The values that a branch's or loop's parameter or result may be: initial and returned ones."""
        slot = self._slots(node).get(value)
        if slot is None or slot.returned is None:
            return []
        given = [] if slot.input is None else [node.inputs[slot.input]]
        return [*given, *(body.returns[slot.returned] for body in bodies(node))]


def _reshapes(kind: str) -> bool:
    """Whether the first result has all elements of the first input, in their order, each once."""
    found = record(kind)
    return found.covers_operand or found.movement is Movement.IN_ORDER


def _makers(node: Node) -> Iterable[Node]:
    """The operators that make the results of ``node``: the node itself, or those in the group."""
    if node.kind != GROUP:
        return (node,)
    return (inner for block in bodies(node) for inner in block.nodes if inner.kind != CONSTANT)


def _writes_first(node: Node) -> bool:
    """Whether the result of ``node`` is its first input, which it writes."""
    return node.kind.endswith("_") and any(
        row.returns and row.returns[0].alias is not None and row.returns[0].alias.write for row in schemas(node.kind)
    )


def _returned(node: Node) -> dict[Value, Slot]:
    """The slots of parameters and results of ``node`` that its blocks return."""
    found: dict[Value, Slot] = {}
    for slot in slots(node) or ():
        if slot.returned is not None:
            if slot.param is not None:
                found.update((body.params[slot.param], slot) for body in node.blocks)
            if slot.output is not None:
                found[node.outputs[slot.output]] = slot
    return found


# -- the alias analysis in reverse: which values may refer to which memory -----


_WIDE = 16
"""A value that may be at more places than this is kept apart, and looked at for every place."""


class ReverseAlias:
    """Memory location -> the values that may denote it, or hold it in a container.

    Only values that were entered count. Whatever changes the graph must call ``moved``.
    """

    def __init__(self, db: AliasDb, values: Iterable[Value] = ()) -> None:
        self._db = db
        self._generation = db.generation
        self._places: dict[Value, set[int]] = {}
        self._by_location: dict[int, dict[Value, None]] = {}
        self._wide: dict[Value, None] = {}
        self._wide_places: LocationSet = EMPTY
        """All places of wide values, and perhaps some more."""
        self.enter(values)

    def enter(self, values: Iterable[Value]) -> None:
        """``values`` are new."""
        for value in values:
            places = self._db.reach_set(value)
            if places is not EMPTY:
                self._add(value, places)

    def drop(self, values: Iterable[Value]) -> None:
        """``values`` are no longer needed."""
        for value in values:
            self._leave(value)
            self._wide.pop(value, None)

    def candidates(self, locations: LocationSet) -> Iterator[Value]:
        """All values that may denote, or lead to, one of ``locations``, and perhaps some others, one by one.

        It is cheaper to rule out most of them first and ask ``holds`` for the rest.
        """
        yield from self.narrow(locations)
        yield from self.wide(locations)

    def narrow(self, locations: LocationSet) -> Iterator[Value]:
        """The candidates that may be at few places only."""
        self._catch_up()
        at = self._by_location
        if isinstance(locations, int) or len(locations) < len(at):
            places = [location for location in members(locations) if location in at]
        else:
            places = [location for location in at if contains(locations, location)]
        found: set[Value] = set()
        for location in places:
            for value in at[location]:
                if value not in found:
                    found.add(value)
                    yield value

    def wide(self, locations: LocationSet) -> Collection[Value]:
        """All values that may be at very many places, if any of them may be at one of ``locations``."""
        self._catch_up()
        return self._wide if intersects(self._wide_places, locations) else ()

    def holds(self, value: Value, locations: LocationSet) -> bool:
        """Whether ``value`` was entered, and may denote one of ``locations`` or lead to it."""
        return (value in self._places or value in self._wide) and intersects(self._db.reach_set(value), locations)

    def moved(self, old: LocationSet, new: LocationSet) -> None:
        """All that was at ``old`` is at ``new`` now."""
        if not isinstance(old, int):
            self._generation = -1, -1  # several places, of which others may stay: look at everything again
            return
        for value in self._by_location.pop(old, ()):
            self._places[value].remove(old)
            self._add(value, new)
        if contains(self._wide_places, old):
            self._wide_places = self._db.union(self._wide_places, new)

    def _add(self, value: Value, places: LocationSet) -> None:
        mine = self._places.setdefault(value, set())
        if isinstance(places, int) or len(places) <= _WIDE:
            mine.update(members(places))
            if len(mine) <= _WIDE:
                for location in members(places):
                    self._by_location.setdefault(location, {})[value] = None
                return
        self._wide[value] = None
        for some in (places, frozenset(mine)):
            self._wide_places = self._db.union(self._wide_places, some)
        self._leave(value)

    def _leave(self, value: Value) -> None:
        for location in self._places.pop(value, ()):
            held = self._by_location.get(location, {})
            held.pop(value, None)
            if not held:
                self._by_location.pop(location, None)

    def _catch_up(self) -> None:
        if self._generation == self._db.generation:
            return
        self._generation = self._db.generation  # analysing again gives locations other numbers
        known = [*self._places, *self._wide]
        for kept in (self._places, self._by_location, self._wide):
            kept.clear()
        self._wide_places = EMPTY
        self.enter(known)
