"""The values that share one memory: where they come from, and which of them surely show a known part."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from irc.alias import AliasDb
from irc.ir import INT, Block, ListType, Node, Schema, TensorType, Value, types
from irc.ir.kinds import IF, ONNX_LOOP, PRIM_LOOP
from irc.ir.region_flow import carried, slots
from irc.ops import Effects, effects, record, resolve, schemas
from irc.ops.axes import APPEND, CONCAT
from irc.ops.pointwise import inplace_variant, inplace_variant_of, keeps_type
from irc.ops.views import Number, View, number
from irc.passes.base import Refused
from irc.passes.in_place import ReverseAlias, way_up
from irc.passes.layouts import Contiguity, Layouts

# The functional forms of in-place operators.


_RENAMED = {
    "aten::zero_": "aten::zeros_like",
    **{f"aten::__i{name}__": f"aten::__{name}__" for name in ("and", "or", "xor", "lshift", "rshift")},
}

_LIKE_FIRST = frozenset(
    f"aten::{name}"
    for name in (
        "copy fill index_add index_copy index_fill index_put masked_fill masked_scatter neg put relu scatter "
        "scatter_add tril triu zeros_like"
    ).split()
)
"""Operators whose result has the element type and shape of the first argument, whatever the others are."""

_BOOLEAN = frozenset(f"aten::{name}" for name in "eq ge gt le logical_and logical_not logical_or lt ne".split())

_SETTINGS = frozenset({types.NONE, types.STR})
"""Types of operands that are not numbers."""


def functional_kind(node: Node) -> str | None:
    """The operator that computes in fresh memory what ``node`` writes into its first input; or None.

    It takes the same arguments and shares memory with none. Its result is what the in-place
    operator writes into its input, provided that it converts to the input's element
    type (`is_like_first`); otherwise the in-place one fails.
    """
    if not node.inputs or len(node.outputs) > 1 or not isinstance(node.inputs[0].type, TensorType):
        return None
    kind = node.kind
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if functional != kind and _is_variant(node, functional) else None
    row = resolve(node)
    return None if row is None or effects(kind) & Effects.RANDOM else _functional_row(row)


def functional_form(kind: str) -> str | None:
    """The `functional_kind` of any node of ``kind``; None if none has one."""
    if kind == APPEND:
        return CONCAT  # as `concatenate_instead` has it
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if inplace_variant(functional) == kind else None
    rows = () if effects(kind) & Effects.RANDOM else schemas(kind)
    return next(filter(None, map(_functional_row, rows)), None)


def _is_variant(node: Node, functional: str) -> bool:
    plain = Node(node.graph, functional, version=node.version)
    return inplace_variant_of(plain) == node.kind


@cache
def _functional_row(row: Schema) -> str | None:
    """The operator with a row that takes the arguments of ``row`` and returns fresh memory."""
    name = _RENAMED.get(row.name) or row.name.removesuffix("_")
    written = [i for i, a in enumerate(row.arguments) if a.alias is not None and a.alias.write]
    if name == row.name or written != [0]:
        return None
    wanted = [(a.name, a.type) for a in row.arguments]
    for other in schemas(name):
        given = [(a.name, a.type) for a in other.arguments[: len(wanted)]]
        rest = other.arguments[len(wanted) :]
        fresh = not other.has_annotations and [r.type for r in other.returns] == [types.TENSOR]
        if given == wanted and fresh and all(a.has_default for a in rest):
            return name
    return None


def is_like_first(node: Node, functional: str) -> bool:
    """Whether ``functional`` on ``node``'s inputs surely gives a tensor of the first one's type and shape.

    True for variants of ONNX operators, which fail at run time otherwise.
    """
    if not functional.startswith("aten::") or functional in _LIKE_FIRST:
        return True
    first, *others = [v.type for v in node.inputs]
    return functional not in _BOOLEAN and keeps_type(first, [t for t in others if t not in _SETTINGS])


_MOST_ELEMENTS = 16
"""Lists of more elements are not rebuilt for each of them that is written."""

ELEMENT = View()
"""An element of a list of views: what is written into it is put where ``put_piece`` of the list says."""

LITERAL = View()
"""A list or tuple of its operands."""

_LITERALS = frozenset({"prim::ListConstruct", "prim::TupleConstruct"})


def view_of(node: Node) -> View | None:
    """How ``node`` views its first input; None if its result is not a view, or perhaps none."""
    if node.kind in _LITERALS:
        return LITERAL if len(node.inputs) <= _MOST_ELEMENTS else None
    view = record(node.kind).view
    if view is None or len(node.outputs) != 1:
        return None
    row = resolve(node)
    if row is None or row.overload == "dtype":
        return None
    if view.put_piece is None and not isinstance(node.output.type, TensorType):
        return None  # of a list: a slice of it, say
    return view


def begins_anywhere(node: Node) -> bool:
    """Whether ``node``, which shows places in memory, is told where the first of them is."""
    return len(node.inputs) > 3 and node.inputs[3].type == INT


def element_index(node: Node) -> Number | None:
    """Which element of a list ``node`` takes; None if it does something else."""
    if node.kind != "aten::__getitem__" or not isinstance(node.inputs[0].type, ListType):
        return None
    return number(node.inputs[1])


# Values that take no new memory, and what they come from: views, results of writes, what branches and loops pass.


CARRIERS = frozenset({IF, PRIM_LOOP, ONNX_LOOP})
"""Nodes that can be given one more value to carry through."""


class Origin(NamedTuple):
    """What a value comes from.

    Attributes:
        given: the values of which it is one, or a view.
        back: the value that each iteration of a loop passes on in place of that.
        view: the node that makes it, if it is a view.
        how: what that node does.
    """

    given: tuple[Value, ...]
    back: Value | None = None
    view: Node | None = None
    how: View | None = None


class Origins:
    """The origins of values in a graph, as they are when first asked for.

    Each node is examined once, however many values it is given: a branch or loop may pass on thousands.
    """

    def __init__(self) -> None:
        self._found: dict[Node, dict[Value, list[tuple[Value, Origin]]]] = {}

    def made_of(self, value: Value) -> Iterator[tuple[Value, Origin]]:
        """The values that users of ``value`` make of it, or pass it on as."""
        for user in value.iter_users():
            node = user.outer if user.is_return else user
            if node is not None:
                yield from self._of(node).get(value, ())

    def _of(self, node: Node) -> dict[Value, list[tuple[Value, Origin]]]:
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = {}
            for made, origin in _results(node):
                for value in dict.fromkeys(origin.given):
                    found.setdefault(value, []).append((made, origin))
        return found


def _results(node: Node) -> Iterable[tuple[Value, Origin]]:
    if node.kind == IF:
        return zip(node.outputs, map(Origin, zip(*[block.returns for block in node.blocks])))
    if node.blocks:
        return _carried(node) if node.kind in CARRIERS else ()
    how = view_of(node)
    if how is LITERAL:
        return [(node.output, Origin((value,), None, node, how)) for value in dict.fromkeys(node.inputs)]
    if how is None and (node.kind == "prim::ListUnpack" or element_index(node) is not None):
        how = ELEMENT
    if how is not None:
        return [(made, Origin((node.inputs[0],), None, node, how)) for made in node.outputs]
    if len(node.outputs) != 1 or functional_kind(node) is None:
        return ()
    return [(node.output, Origin((node.inputs[0],)))]


def _carried(loop: Node) -> Iterator[tuple[Value, Origin]]:
    (block,) = loop.blocks
    inputs, returns = loop.inputs, block.returns
    for slot in slots(loop) or ():
        if slot.input is None or slot.returned is None or slot.returned >= len(returns):
            continue  # what a family is carried by is returned when all are done
        origin = Origin((inputs[slot.input],), returns[slot.returned])
        if slot.param is not None:
            yield block.params[slot.param], origin
        if slot.output is not None:
            yield loop.outputs[slot.output], origin


# -- versions ------------------------------------------------------------------


# Versions of one piece of memory: what a read sees depends on which writes came before it.


Version: TypeAlias = Node | Block | None
"""Contents of the memory: as they are after a node that writes, or has writes inside; as they are when an iteration of
a loop begins, by the loop's block; None: as they were made."""


class Versions:
    """The versions of the memory of ``root``, by where in the graph.

    A write inside a branch or loop makes a new version after it; a write inside
    a loop, also one at the beginning of each iteration. So each place in the graph
    sees exactly one version.

    Attributes:
        home: the block where the memory is made; outside of it, its versions have no names.
        around: the nodes that have writes inside, outermost first.
    """

    def __init__(self, root: Value, writes: Iterable[Node]) -> None:
        assert root.node is not None and root.node.block is not None
        self._root = root.node
        self.home: Block = root.node.block
        events: dict[Block, dict[Node, None]] = {}
        around: dict[Node, None] = {}
        for write in writes:
            way = way_up(write, self.home)
            assert way, "a write must be in the scope of what it writes"
            for at in way:
                assert at.block is not None
                events.setdefault(at.block, {})[at] = None
            around.update(dict.fromkeys(way[:0:-1]))
        self.around = list(around)
        self._events = {block: sorted(nodes, key=lambda n: n.order) for block, nodes in events.items()}

    def while_changing(self) -> Iterator[Node]:
        """All nodes from the allocation of the memory to its last write, and the nodes inside them."""
        at, last = self._root, self._events[self.home][-1]
        while at is not last:
            assert at.next is not None, "a write comes after what it writes is made"
            at = at.next
            yield at
            yield from at.nested()

    def in_scope(self, node: Node) -> bool:
        """Whether ``node`` runs after the memory was made, in its block or nested there."""
        at = node.ancestor_in(self.home)
        return at is not None and self._root.is_before(at)

    def before(self, node: Node) -> Version:
        """The version that ``node``, which is in scope, sees."""
        while True:
            block = node.block
            assert block is not None
            events = self._events.get(block, [])
            index = bisect_left(events, node.order, key=lambda n: n.order)
            if index:
                return events[index - 1]
            if block is self.home:
                return None
            if events and not is_branch(block):
                return block
            assert block.node is not None
            node = block.node

    def after(self, node: Node) -> Version:
        """The version seen right after ``node``, which is in scope."""
        block = node.block
        assert block is not None
        return node if node in self._events.get(block, ()) else self.before(node)

    def at_start(self, block: Block) -> Version:
        """The version seen at the beginning of ``block``, the body of a loop in scope."""
        if self._events.get(block):
            return block
        assert block.node is not None
        return self.before(block.node)

    def at_end(self, block: Block) -> Version:
        """The version seen at the end of ``block``."""
        return self.before(block.return_node)


def is_branch(block: Block) -> bool:
    """Whether ``block`` runs at most once for each run of its node."""
    return block.node is not None and block.node.kind == IF


# -- family --------------------------------------------------------------------


_DEEPEST = 16
"""How many views of views, on average for each use of the memory, may be taken again or put into the whole."""


class Step(NamedTuple):
    """How a member follows from its ``parent``, the root or a view: identical, or a ``view`` of it.

    ``how`` says what that view operator does.
    """

    parent: Value
    view: Node | None = None
    how: View | None = None
    depth: int = 0
    """How many views lie between the root and it."""


class Part(NamedTuple):
    """A view that must be put into a larger one, the ``whole``, when it is written.

    ``view`` is the operator that makes it, or the list in which it has the number ``piece``; ``how`` says what that
    does.
    """

    whole: Value
    view: Node
    how: View
    piece: Number | None = None


class Family:
    """The values that may share the memory of ``root``, a tensor that its node allocates.

    *Members* surely show a known part of it: views, results of in-place
    operators, and what branches and loops pass on of these. They can be taken
    again of any later version. All other values that may share it, or hold it
    in a container, are *loose*: they may not be used once what they show has
    been written over, as it would be uncertain whether they see that.

    Args:
        root: the value.
        db: the alias analysis.
        holders: to find all values that may denote the memory of ``root`` or lead to it.
        origins: of the values of the graph.
        writers: the nodes that write it.
        layouts: of the graph: which of them something sees.
        contiguity: which values are contiguous.

    Attributes:
        targets: the nodes that write it, in-place operators on members, and what of it they write: the root or a view.
        versions: which version of the memory is seen where.
        beside: what else is in lists that are rebuilt, besides members.
        keeps_layout: whether all versions must be laid out as the memory is, and what shows a part must be a view.
        contiguity: as given.

    Raises:
        Refused: if some write cannot be removed.
    """

    def __init__(
        self,
        root: Value,
        db: AliasDb,
        reverse_alias: ReverseAlias,
        origins: Origins,
        writers: Sequence[Node],
        layouts: Layouts,
        contiguity: Contiguity,
    ) -> None:
        self.root = root
        self.contiguity = contiguity
        self._db = db
        self._reverse_alias = reverse_alias
        self._memory = db.location_set(root)
        self._steps: dict[Value, Step] = {}
        self.beside: list[Value] = []
        # The order matters: each check relies on the members, targets and versions found before it.
        self._find_members(origins)
        self.targets: dict[Node, Value] = {node: self._target(node) for node in writers}
        self.keeps_layout = layouts.is_seen([root])
        if self.keeps_layout and layouts.has_gaps(root):
            raise Refused("its memory may be observed otherwise than through its elements")
        self._check_puts()
        self.versions = Versions(root, writers)
        self._check_depths()
        self._final = self.versions.at_end(self.versions.home)
        for node in self.versions.around:
            _check_carrier(node)
        self._check_loose()
        if db.may_be_known(root):
            raise Refused("the memory may have escaped to unknown code")

    # -- members ---------------------------------------------------------

    def member(self, value: Value) -> Value | None:
        """The root, or the view of it, that ``value`` certainly is; None if it is not a member."""
        if value is self.root:
            return value
        step = self._steps.get(value)
        return None if step is None else value if step.view is not None else step.parent

    def step(self, view: Value) -> Step:
        """How the member ``view``, as ``member`` gives it, is made of another one."""
        return self._steps[view]

    def members(self) -> list[Value]:
        """All members, the root first."""
        return [self.root, *self._steps]

    def views(self) -> dict[Value, Step]:
        """The members that are views of other members."""
        return {value: step for value, step in self._steps.items() if step.view is not None}

    def parts(self, view: Value) -> Iterator[Part]:
        """What ``view`` is a part of, and what that is a part of, up to the root."""
        while view is not self.root:
            step = self._steps[view]
            assert step.view is not None and step.how is not None
            if step.how is ELEMENT:
                index = element_index(step.view)
                index = view.index if index is None else index
                step = self._steps[step.parent]
                assert step.view is not None and step.how is not None
                yield Part(step.parent, step.view, step.how, index)
            else:
                yield Part(step.parent, step.view, step.how)
            view = step.parent

    def _find_members(self, origins: Origins) -> None:
        """Find all members. What a loop carries is assumed to be what it is given, until that proves wrong."""
        refuted: set[Value] = set()
        while True:
            self._steps.clear()
            assumed: dict[Value, Value] = {}
            pending = [self.root]
            while pending:
                for value, origin in origins.made_of(pending.pop()):
                    if self._is_loose(value) and value not in refuted:
                        step = self._step_of(origin)
                        if step is not None:
                            self._steps[value] = step
                            pending.append(value)
                            if origin.back is not None:
                                assumed[value] = origin.back
            # A loop that carries a member in may return another value. Then nothing derived from the guess holds, and
            # all is found again without it. Each round refutes at least one value, so this ends.
            wrong = [v for v, returned in assumed.items() if self.member(returned) is not self.member(v)]
            if not wrong:
                return
            refuted.update(wrong)

    def _step_of(self, origin: Origin) -> Step | None:
        parent, *others = [self.member(value) for value in origin.given]
        if parent is None or any(other is not parent for other in others):
            return None
        node, how = origin.view, origin.how
        if node is None or how is None:
            return Step(parent, depth=self._depth(parent))
        if how.of_storage and parent is not self.root:
            if not begins_anywhere(node):
                return None
            parent = self.root
        return Step(parent, node, how, self._depth(parent) + 1) if self._is_certain(node, how) else None

    def _is_certain(self, node: Node, how: View) -> bool:
        """Whether the outputs of ``node`` certainly are what ``how`` says, and stay so."""
        db = self._db
        if how is ELEMENT:
            whole = self.member(node.inputs[0])
            made = None if whole is None else self._steps.get(whole)
            if whole is None or made is None or made.how is None or made.how.put_piece is None:
                return False
            # A list that is written may hold other elements by then; writes to the elements themselves are fine.
            return not db.has_writers(whole, contained=False)
        if not isinstance(node.output.type, TensorType) and db.has_writers(node.output, contained=False):
            return False
        if how is LITERAL:
            self.beside += [v for v in node.inputs if self.member(v) is None]
            return all(isinstance(v.type, TensorType) for v in node.inputs if self.member(v) is not None)
        if how.when_contiguous and not self.contiguity.is_certain(node.inputs[0]):
            return False
        return not (db.has_metadata_writers if how.like_other else db.has_writers)(node.inputs[1:])

    def _depth(self, member: Value) -> int:
        return 0 if member is self.root else self._steps[member].depth

    # -- what may stand in the way ---------------------------------------

    def _target(self, node: Node) -> Value:
        check_form(node)
        target = self.member(node.inputs[0])
        if target is None:
            raise only_may_share(node, self.root)
        return target

    def _check_puts(self) -> None:
        """Refused if what is written into a view cannot be propagated to its base."""
        seen = {self.root}
        for target in self.targets.values():
            for part in self.parts(target):
                if part.piece is None:
                    can_put = part.how.put is not None
                else:
                    can_put = part.how.put_piece is not None
                    can_put &= isinstance(part.piece, int) or part.how.can_put_any(part.view)
                if not can_put or not part.how.can_put(part.view):
                    raise Refused(f"what is written into {part.view.kind} cannot be propagated to its base")
                if part.whole in seen:
                    break
                seen.add(part.whole)

    def _check_depths(self) -> None:
        """Refused if the graph would grow by far more than it has uses of the memory."""
        if all(step.depth <= _DEEPEST for step in self._steps.values()):
            return
        uses, depths = 0, sum(map(self._depth, self.targets.values()))
        for value in self.members():
            part = self.member(value)
            assert part is not None and part.node is not None
            made = self.versions.before(part.node)
            for user in value.iter_users():
                seen = self.versions.before(user)
                there = seen is made or (isinstance(seen, Node) and self.targets.get(seen) is part)
                uses, depths = uses + 1, depths + (0 if there else self._depth(part))
        if depths > _DEEPEST * uses:
            raise Refused("too many views of views would have to be recomputed")

    def _check_loose(self) -> None:
        """A loose value must not be used where another version is seen than where it was made.

        A loose value that was made before the memory, or outside of its scope,
        must see a single version at all its uses; one that the caller knows is
        also used at the end.
        """
        # Values that may hold very much memory are many, and most are used where the memory no longer changes. These
        # see its final version, so they are examined only if another version is seen at all.
        wide = self._reverse_alias.wide(self._memory)
        near = self._near(len(wide))
        some = wide if near is None else [value for value in near if value in wide]
        outside: dict[Version, Value] = {}
        self._note_outside([*self._reverse_alias.narrow(self._memory), *some], outside)
        if any(version is not self._final for version in outside):
            self._note_outside(wide, outside)
        if len(outside) > 1:
            name = next(iter(outside.values())).name
            raise Refused(f"%{name}, which may share or hold its memory, is used before and after it is written")

    def _near(self, most: int) -> dict[Value, None] | None:
        """The values made or used while the memory changes: all other loose values see its final version.

        None if more than ``most`` nodes are there, so that it is cheaper to examine ``most`` values.
        """
        found: dict[Value, None] = {}
        for count, node in enumerate(self.versions.while_changing()):
            if count >= most:
                return None
            for values in (node.inputs, node.outputs, *(block.params for block in node.blocks)):
                found.update(dict.fromkeys(values))
        return found

    def _note_outside(self, values: Iterable[Value], outside: dict[Version, Value]) -> None:
        """Add the versions that loose ``values`` outside the memory's scope may see to ``outside``."""
        versions = self.versions
        for value in filter(self._is_loose, values):
            seen = [versions.before(u) if versions.in_scope(u) else self._final for u in value.iter_users()]
            if self._is_inside(value):
                made = self._made_at(value)
                if any(version is not made for version in seen):
                    raise Refused(f"%{value.name}, which may share or hold its memory, is used after it is written")
                continue
            if value.node is None and value.block is self.root.graph.block:
                seen.append(self._final)
            outside.update((version, value) for version in seen)

    def _is_loose(self, value: Value) -> bool:
        """Whether ``value`` may share the memory or hold it, and is not known to be a member."""
        return value is not self.root and value not in self._steps and self._reverse_alias.holds(value, self._memory)

    def _is_inside(self, value: Value) -> bool:
        node = value.definer
        return node is not None and self.versions.in_scope(node)

    def _made_at(self, value: Value) -> Version:
        if value.node is not None:
            return self.versions.after(value.node)
        block: Block | None = value.block
        assert block is not None
        return self.versions.at_start(block)


def check_form(node: Node) -> None:
    """Refused if ``node``, which writes, has no functional form."""
    if functional_kind(node) is None:
        raise Refused(f"{node.kind}, which writes it, has no functional form")


def only_may_share(node: Node, root: Value) -> Refused:
    """The refusal of ``node``: its first input, which it writes, is not surely the memory of ``root``."""
    return Refused(f"%{node.inputs[0].name} may share memory with %{root.name}, but need not")


def _check_carrier(node: Node) -> None:
    if node.kind not in CARRIERS:
        raise Refused(f"it is written inside {node.kind}, which cannot pass it on")
    if node.kind == ONNX_LOOP and len(node.outputs) > carried(node).many:
        raise Refused("it is written inside a loop that has scan outputs")
