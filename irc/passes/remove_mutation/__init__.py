"""In-place operators become functional ones.

``%y = aten::add_(%x, %z)`` becomes ``%y = aten::add(%x, %z)``, and whatever uses
%x, or a view of it, after the write uses %y, or that view of it. This is SSA
construction with memory as the variable. ``family.py`` has the functional form of each
operator, and finds which contents are seen where, and which value shows which part of
the memory; here the graph is changed. Branches and loops pass changed memory on as values.
Where the memory is not used again, the rewrite needs no certainty.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from irc.alias import AliasDb, Kind
from irc.alias.location_sets import EMPTY, LocationSet, contains, members
from irc.ir import IDENTITY, IF, Block, Builder, Graph, Node, Value, clone_node, constant_value, counterpart
from irc.ir.metadata import provenance
from irc.ir.types import TENSOR, TensorType, Type
from irc.ops.layouts import keeps_layout
from irc.passes.base import PassContext, Refused
from irc.passes.in_place import InPlace, ReverseAlias
from irc.passes.kv_cache import concatenate_instead
from irc.passes.layouts import Contiguity, Layouts
from irc.passes.registry import register
from irc.passes.remove_mutation.family import (
    LITERAL,
    Family,
    Origins,
    Step,
    Version,
    check_form,
    functional_kind,
    is_like_first,
    only_may_share,
)

Returned: TypeAlias = dict[Node, list[Value]]
"""The end of a block -> what it is to return besides."""

_MOST_PIECES = 16
"""Of lists of more elements than this, elements are taken one by one: of n, taken n times, there would be n²."""


class Rewrite:
    """Turns each version into a value: a functional operator's result, or what a branch or loop passes on.

    A user of a member then uses the same part of the version that it saw.
    """

    def __init__(self, family: Family) -> None:
        versions = family.versions
        self._family = family
        self._graph: Graph = family.root.graph
        self._used: dict[Node, list[Value]] = {}
        """User -> the members among its inputs, which may be few of very many."""
        for member in family.members():
            for user in member.iter_users():
                self._used.setdefault(user, []).append(member)
        self._literals: dict[Node, list[Value | None]] = {
            step.view: [family.member(value) for value in step.view.inputs]
            for step in family.views().values()
            if step.view is not None and step.how is LITERAL
        }
        """List or tuple -> the members that it holds, as its inputs are bound to versions later; None for others."""
        self._users = sorted(self._used, key=Node.place)
        self._names = {v: v.name for v in self._used.get(self._graph.block.return_node, ())}
        # Which version everyone sees is settled before anything moves.
        self._seen = {node: versions.before(node) for node in (*self._users, *versions.around)}
        self._ends = {block: versions.at_end(block) for node in versions.around for block in node.blocks}
        self._values: dict[Version, Value] = {None: family.root}
        self._parts: dict[tuple[Version, Value], dict[Block | None, Value]] = {
            (self._seen[step.view], value): {value.block: value}
            for value, step in family.views().items()
            if step.view is not None
        }
        """By the block where they are. Users come in order: so what was made in a block is there for the next."""

    def run(self, returned: Returned) -> None:
        """Make the writes functional. The alias analysis is not updated.

        Additional returns of blocks are collected in ``returned``: thousands of families may be written in one block.
        """
        for node in self._family.versions.around:
            self._carry(node)
        for node in self._users:
            self._rebind(node)
            target = self._family.targets.get(node)
            if target is not None:
                self._replace(node, target)
        for node in self._family.versions.around:
            if node.kind != IF:
                node.append_input(self._values[self._seen[node]])
            for block in node.blocks:
                returned.setdefault(block.return_node, []).append(self._values[self._ends[block]])
        for node in reversed(self._users):
            if node in self._family.targets:
                node.erase()

    def _carry(self, node: Node) -> None:
        """Let ``node``, which has writes inside, pass the memory on: one more parameter, one more output."""
        root = self._family.root
        if node.kind != IF:
            (block,) = node.blocks
            self._values[block] = block.add_param(root.type, root.name)
        self._values[node] = node.add_output(root.type, root.name)

    def _rebind(self, user: Node) -> None:
        """Let ``user`` use the version of the memory that it sees, for each member among its inputs."""
        for value in self._used[user]:
            member = self._family.member(value)
            assert member is not None
            part = self._part(member, self._seen[user], user)
            if part is value:
                continue
            if user is self._graph.block.return_node and not self._graph.is_function:
                part = self._named(part, self._names[value], value.metadata)
            user.replace_uses(value, part)

    def _named(self, part: Value, name: str, metadata: Mapping[str, str]) -> Value:
        """``part`` as an output of the graph that is called ``name`` and has ``metadata``."""
        end = self._graph.block.return_node
        if part.node is None or part.block is not self._graph.block or part.uses_by(end):
            part = Builder.before(end).op(IDENTITY, part, type=part.type)
        part.name = name
        if metadata:
            part.metadata = metadata
        return part

    def _replace(self, node: Node, target: Value) -> None:
        """Make the version after the write ``node``, whose inputs are bound to the version before it."""
        family = self._family
        kind = functional_kind(node)
        assert kind is not None
        old = node.inputs[0]
        exact = is_like_first(node, kind)
        computed = value = self._compute(node, kind, old.type if exact else TENSOR)
        is_alike = value.node is not None and keeps_layout(value.node)
        said = provenance([node])
        emit = _emitter(node, said)
        if not exact:
            value, is_alike = emit("irc::overwrite", old, value, type=old.type), True
        written = node.output if node.outputs else None
        if not family.keeps_layout:
            self._parts[node, target] = {node.block: value}
        elif target is family.root and not is_alike:
            value = self._laid_out_as(old, value, emit)
        is_named = written is not None and (target is family.root or not family.keeps_layout)
        if written is not None and is_named:
            value.succeed(written)
        if computed.node is not None and not node.name and not (is_named and value is computed):  # no name tells
            computed.node.metadata = said
        for part in family.parts(target):
            old = self._part(part.whole, self._seen[node], node)
            if part.piece is not None:
                assert part.how.put_piece is not None
                value = part.how.put_piece(emit, part.view, old, value, part.piece)
            else:
                assert part.how.put is not None
                value = part.how.put(emit, part.view, old, value)
            value.type = old.type
            is_alike = part.how.copies or (is_alike and part.how.turns)
            if family.keeps_layout and part.whole is family.root and not is_alike:
                value = self._laid_out_as(old, value, emit)
        self._values[node] = value

    def _laid_out_as(self, old: Value, value: Value, emit: Callable[..., Value]) -> Value:
        """``value``, or a copy of it, laid out as ``old``, the version before it."""
        contiguity = self._family.contiguity
        if contiguity.is_certain(self._family.root) and contiguity.is_certain(value):
            return value
        return emit("irc::overwrite", old, value, type=old.type)

    def _compute(self, node: Node, kind: str, type: Type) -> Value:
        """The result of the functional operator ``kind`` on what ``node`` is given."""
        return counterpart(node, kind, node.inputs, [type]).insert_before(node).output

    def _part(self, member: Value, version: Version, before: Node) -> Value:
        """The part of ``version`` that ``member`` shows, defined before the node ``before``."""
        missing: list[tuple[Value, Step]] = []
        at = member
        found = self._find(at, version, before)
        while found is None:
            step = self._family.step(at)
            missing.append((at, step))
            at = step.parent
            found = self._find(at, version, before)
        for value, step in reversed(missing):
            found = self._take(value, step, found, version, before)
        return found

    def _take(self, value: Value, step: Step, whole: Value, version: Version, before: Node) -> Value:
        """The view ``value``, taken again of ``whole``, a part of ``version``."""
        view, how = step.view, step.how
        assert view is not None and how is not None
        instead = {view.inputs[0]: whole}
        if how is LITERAL:
            held = zip(view.inputs, self._literals[view])
            instead = {v: self._part(part, version, before) for v, part in held if part is not None}
        if view.kind == "prim::ListUnpack" and len(view.outputs) > _MOST_PIECES:
            emit = _emitter(before, provenance([view]))
            piece = emit("aten::__getitem__", whole, value.index, type=value.type)
            self._parts.setdefault((version, value), {})[before.block] = piece
            return piece
        copy = clone_node(view, self._graph, instead).insert_before(before)
        for old, new in zip(view.outputs, copy.outputs, strict=True):
            self._parts.setdefault((version, old), {})[before.block] = new
        if not view.name:
            copy.metadata = provenance([view])
        return copy.outputs[value.index]

    def _find(self, member: Value, version: Version, before: Node) -> Value | None:
        if member is self._family.root:
            return self._values[version]
        parts = self._parts.get((version, member))
        if parts is None or before.block is None:
            return None
        return next((parts[block] for block in before.block.around() if block in parts), None)


def _emitter(before: Node, metadata: Mapping[str, str]) -> Callable[..., Value]:
    """``emit(kind, *inputs, type=TENSOR)``, which inserts nodes before a node; inputs may be Python's.

    They have ``metadata``.
    """
    builder = Builder.before(before)

    def emit(kind: str, *inputs: Any, type: Type = TENSOR) -> Value:
        values = [v if isinstance(v, Value) else builder.constant(v) for v in inputs]
        made = builder.op(kind, *values, type=type)
        if made.node is not None:
            made.node.metadata = metadata
        return made

    return emit


# Elements taken out of lists and tuples that are written out: ``[a, b][0]`` is ``a``, if nothing changes the list.
#
# The alias analysis knows of a list what all its elements may be. A write into one of them is certain only then.


_TAKING_ONE = {"aten::__getitem__": "prim::ListConstruct", "prim::TupleIndex": "prim::TupleConstruct"}
_TAKING_ALL = {"prim::ListUnpack": "prim::ListConstruct", "prim::TupleUnpack": "prim::TupleConstruct"}


def use_elements(graph: Graph, ctx: PassContext) -> bool:
    """Use written elements of lists directly, instead of taking them out; return whether any changed."""
    changed = 0
    while used := _use(graph, ctx):  # once more: of what was taken out of a list of lists, more is known now
        changed += used
    ctx.count("elements", changed)
    return changed > 0


def _use(graph: Graph, ctx: PassContext) -> int:
    """Replace elements by what was stored there, where certain; return how many nodes took them."""
    taking = [node for node in graph.walk() if node.kind in _TAKING_ONE or node.kind in _TAKING_ALL]
    if not taking:
        return 0
    rewriter = ctx.rewriter(graph)
    db = rewriter.db
    instead: dict[Value, Value] = {}
    done: list[tuple[Node, Sequence[Value]]] = []
    for node in taking:
        source = instead.get(node.inputs[0], node.inputs[0])
        values = [instead.get(value, value) for value in _taken(node, source)]
        if not values or not db.has_writers(node.outputs) or db.has_writers(source, contained=False):
            continue
        if ctx.allow(node):
            instead.update(zip(node.outputs, values, strict=True))
            done.append((node, values))
    # All at once: after each, the analysis would follow again all that depends on it.
    return rewriter.replace_nodes(done)


def _taken(node: Node, source: Value) -> Sequence[Value]:
    """The elements that ``node`` takes out of ``source``, a list construct; empty if it does not."""
    made = _TAKING_ONE.get(node.kind) or _TAKING_ALL.get(node.kind)
    maker = source.made_by(made) if made is not None else None
    if maker is None:
        return ()
    values = maker.inputs
    if node.kind in _TAKING_ONE:
        index = constant_value(node.inputs[1])
        if type(index) is not int or not -len(values) <= index < len(values):
            return ()
        values = [values[index]]
    if len(values) != len(node.outputs) or not all(_are_alike(v, out) for v, out in zip(values, node.outputs)):
        return ()
    return values


def _are_alike(element: Value, taken: Value) -> bool:
    """Whether types say the same of both, but for what they know of a tensor."""
    return element.type == taken.type or (isinstance(element.type, TensorType) and isinstance(taken.type, TensorType))


# In-place operators whose operand is not used again: the inverse of the pass ``in-place``.
#
# For such an operator it need not be certain what it writes. No value that may share the
# operand's memory is used afterwards, so a result in memory of its own
# is as good. The pass ``in-place`` itself decides whether that is so: if it would
# make all of these operators again in the graph without them.


_ROUNDS = 2
"""Those that are left of a first round had others beside them, so they are asked once more; then it would take long."""


def undo(nodes: Iterable[Node], graph: Graph, ctx: PassContext) -> bool:
    """Make those of ``nodes`` functional that ``in-place`` could restore; return whether there are any."""
    db = ctx.alias_db(graph)
    if db.declares_unknown():
        return False  # unknown code may look, and copies of the graph do not say so
    layouts = Layouts(graph, db, ctx.memory)
    candidates = [
        node
        for node in nodes
        if len(node.outputs) == 1 and functional_kind(node) is not None and not layouts.is_seen([node.output])
    ]
    names = {node.output.name for node in candidates}
    for _ in range(_ROUNDS):
        again = _made_again(names, graph, ctx) if names else names
        if again == names:
            break
        names = again
    else:
        return False
    if not names or not ctx.allow(candidates[0]):
        return False
    _make_functional(names, graph)
    ctx.alias_db(graph).refresh()
    ctx.count("removed", len(names))
    return True


def _made_again(names: set[str], graph: Graph, ctx: PassContext) -> set[str]:
    """The results ``names`` that ``in-place`` puts in place again once all of them are functional."""
    copy = graph.copy()
    _make_functional(names, copy)
    InPlace().run(copy, ctx.trial(copy))
    return {name for name in names if _is_like(copy.value(name).node, graph.value(name).node)}


def _is_like(one: Node | None, other: Node | None) -> bool:
    if one is None or other is None or one.kind != other.kind:
        return False
    return [value.name for value in one.inputs] == [value.name for value in other.inputs]


def _make_functional(names: set[str], graph: Graph) -> None:
    writers = [node for node in graph.walk() if len(node.outputs) == 1 and node.output.name in names]
    for node in writers:
        kind = functional_kind(node)
        assert kind is not None
        plain = counterpart(node, kind, node.inputs, [node.output.type]).insert_before(node).output
        written = node.output
        written.replace_all_uses_with(plain)
        node.erase()
        plain.succeed(written)


# -- remove mutation -----------------------------------------------------------


_NO_MEMORY = frozenset({Kind.RANDOM, Kind.WORLD})


@register
@dataclass(frozen=True)
class RemoveMutation:
    """Replace in-place operators by functional ones where what they write, and who sees it, is certain.

    Writes stay, with a note, if they are to memory that the graph did not
    allocate (inputs, constants, unknown memory), if something that only *may*
    share the memory is used before and after, if an operator has no
    functional form, or if chains of views would be taken again so often that
    the graph grew by far more than it has uses of the memory.
    """

    name: ClassVar[str] = "remove-mutation"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Go through all memory that is written, until nothing more can be done."""
        changed = concatenate_instead(graph, ctx)
        changed |= use_elements(graph, ctx)
        refused: dict[Node, str] = {}
        while _round(graph, ctx, refused) or undo(refused, graph, ctx):
            changed = True
        for node in graph.walk() if refused else ():
            if node in refused:
                ctx.note(node, f"still writes: {refused[node]}")
        return changed


def _round(graph: Graph, ctx: PassContext, refused: dict[Node, str]) -> bool:
    db = ctx.alias_db(graph)
    db.tighten()  # what surely is in one place is not to look as if it were in several
    refused.clear()
    removed = 0
    written = _Written(db)
    refused.update((node, written.why_not(node)) for node in written.unsure)
    values = db.values_in_order()
    reverse_alias, origins, known = ReverseAlias(db, values), Origins(), frozenset(values)
    layouts = Layouts(graph, db, ctx.memory)
    # Of what rewrites make in this round, the analysis knows nothing yet: branches return it only at the end.
    contiguity = Contiguity(lambda value: value not in known or db.has_metadata_writers(value))
    returned: Returned = {}
    later: LocationSet = EMPTY  # memory that lists hold which are created: the analysis does not know of these yet
    for location, writers in written.places.items():
        if contains(later, location):
            continue
        try:
            root = _root(db, location)
            written.check(location, root)
            family = Family(root, db, reverse_alias, origins, writers, layouts, contiguity)
        except Refused as reason:
            refused.update((node, str(reason)) for node in writers)
            continue
        if not ctx.allow(writers[0]):
            break
        Rewrite(family).run(returned)
        later = db.union(later, db.reach_set(family.beside))
        removed += len(writers)
    for end, values in returned.items():
        end.set_inputs([*end.inputs, *values])
    ctx.count("removed", removed)
    if removed:
        db.refresh()  # what shares with what has changed wherever the memory was seen
    return removed > 0


class _Written:
    """The memory that nodes write themselves.

    Attributes:
        places: location -> the nodes that write it and nothing else.
        unsure: the nodes that write several locations, or one of several. What they write is not certain, so they stay,
            and so do all writes to any of these locations.
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self.places: dict[int, list[Node]] = {}
        self.unsure: list[Node] = []
        self._so_far: list[LocationSet] = []
        """What each of these and those before it may write."""
        for node in db.writing_nodes():
            first = self._memory(node, 2)  # listing thousands for each node would be quadratic
            if len(first) == 1:
                self.places.setdefault(first[0], []).append(node)
            elif first:
                before = self._so_far[-1] if self._so_far else EMPTY
                self.unsure.append(node)
                self._so_far.append(db.union(before, db.write_set(node)))

    def why_not(self, node: Node) -> str:
        """Why ``node``, which is unsure, stays."""
        (location,) = self._memory(node, 1)
        try:
            root = _root(self._db, location)
            check_form(node)
        except Refused as reason:
            return str(reason)
        return str(only_may_share(node, root))

    def check(self, location: int, root: Value) -> None:
        """Refused if an unsure node may write ``location``, which is the memory of ``root``."""
        if self._so_far and contains(self._so_far[-1], location):
            at = bisect_left(self._so_far, True, key=lambda places: contains(places, location))
            raise only_may_share(self.unsure[at], root)

    def _memory(self, node: Node, count: int) -> list[int]:
        """The first ``count`` locations that ``node`` writes, at most."""
        db = self._db
        places = (x for x in members(db.write_set(node)) if db.describe(x).kind not in _NO_MEMORY)
        return list(islice(places, count))


def _root(db: AliasDb, location: int) -> Value:
    """The tensor that is allocated at ``location``, and is certainly there."""
    site = db.describe(location)
    if site.kind is not Kind.TEMPORARY:
        raise Refused(f"it writes memory that the graph did not allocate ({site.kind.value})")
    root = site.site
    if not isinstance(root, Value) or root.node is None or site.path or not isinstance(root.type, TensorType):
        raise Refused("it writes something that is not a tensor made by a node of this graph")
    if db.location_set(root) != location:
        raise Refused(f"%{root.name} may be other memory as well")
    return root
