"""Which values show parts of one tensor that cannot overlap.

Points-to sets tell storages apart, not parts of them. Two views of one tensor that lie apart (rows 0 and 1) share no
memory although their storage is one. This is found here from the views alone, when a query asks: nothing is recorded,
so nothing has to be kept right when the graph changes. `Memo` remembers answers: who asks the graph here *looks* first.

Everything fails closed: what is not listed here may be anywhere in its storage. Invariants:

- An answer is about *one* execution of a block, the *scope*. All numbers and index spaces that it rests on must have
  one value in that time, or in the time in which the tensor lives that the parts are of.
- Parts are of a *base*, of which no two elements are in one place: memory that a known operator allocates, or an input
  of the main graph. (The boundary copies inputs with elements in one place if the graph writes to inputs.)
- Nothing is said of memory in which an operator changes the shape, strides or storage of a tensor, of values that were
  declared unknown, and of views of which an operand (a list of pieces, a list of numbers) is written.
- A write is to no more than a part only by a known operator that writes just the elements of its operand. A part is
  read as no more than a part only if all that may see it are known operators that read just the elements of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from irc.alias.guards import MOST_FACTS, facts_of
from irc.alias.memo import MEMORY, Memo
from irc.alias.memory_types import has_memory
from irc.alias.must import Cover, step_of
from irc.alias.rules import is_functional
from irc.alias.rules.schemas import is_unsettled, program_of
from irc.ir import CONSTANT, DOMAINS, GROUP, Block, ListType, Node, TensorType, Value, constant_value
from irc.ir.node import WIDE
from irc.ir.polynomials import Size
from irc.ir.region_flow import inner_graph
from irc.ops import functional_by_default, record, schemas
from irc.ops.layouts import makes_dense
from irc.ops.pointwise import is_pointwise
from irc.ops.regions import Axis, Region, Span, name_of, values_of

if TYPE_CHECKING:
    from irc.alias.db import AliasDb

MOST_VIEWS = 16
"""Of longer chains of views nothing is known."""

MOST_READERS = 64
"""Of values with more users, or more views and views of views, it is not known who reads them."""

_NAMESPACES = ("aten::", *(f"{namespace}::" for namespace in DOMAINS))

_TAKING_PIECES = frozenset({"prim::ListUnpack", "aten::__getitem__"})

_PASSING = frozenset({"prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack"})
"""Neither read tensors nor keep them anywhere but in their results."""


class Apart(NamedTuple):
    """Why two values share no element: they are at ``first`` and ``second`` along ``axis``."""

    axis: Axis
    first: Span
    second: Span

    def __str__(self) -> str:
        return f"they lie at {self.first} and {self.second} along {name_of(self.axis)}"


class Part(NamedTuple):
    """What a value, which is made in ``block``, shows of ``base``.

    Attributes:
        is_constant: whether numbers of the region are constants, and its axes those of ``base``.
    """

    base: Value
    region: Region
    block: Block | None
    is_constant: bool

    def apart(self, other: Part, scope: Block | None, memo: Memo) -> Apart | None:
        """Where the two lie if they certainly share no element in one execution of ``scope``."""
        if self.base is not other.base:
            return None
        facts: Sequence[Size] | None = None
        for axis, span in self.region.spans.items():
            found = other.region.spans.get(axis)
            if found is None:
                continue
            if not span.is_apart(found):
                facts = _facts(self.block, other.block, scope, memo) if facts is None else facts
                if not facts or not span.resolved(facts).is_apart(found.resolved(facts), facts):
                    continue
            is_fixed = self.is_constant and other.is_constant  # as most are, and each answer asks
            if is_fixed or self._are_fixed((axis[0], *span.values(), *found.values()), scope):
                return Apart(axis, span, found)
        return None

    def _are_fixed(self, values: Iterable[Value], scope: Block | None) -> bool:
        """Whether ``values`` stay in an execution of ``scope``, or while the tensor that the part is of lives."""
        for value in values:
            if value is not self.base:
                block = value.block
                if block is not scope and not _is_around(block, scope) and not _is_around(block, self.base.block):
                    return False
        return True

    def __str__(self) -> str:
        return " and ".join(f"{span} along {name_of(axis)}" for axis, span in self.region.spans.items())


class Shown(NamedTuple):
    """What a value shows, if the analysis agrees.

    Attributes:
        part: what that is.
        unsettled: views of which something may write a list of pieces or another operand.
    """

    part: Part
    unsettled: Sequence[Node]


def part_of(db: AliasDb, value: Value) -> Part | None:
    """What ``value`` shows of another tensor, if it is certain that it is no more than a part."""
    return db.memo.answer(_part_of, db, value) if db.facts.has_parts else None


def shown_by(db: AliasDb, value: Value) -> Shown | None:
    """What ``value`` shows, as the graph alone tells; None if it may be all of a tensor."""
    return db.memo.answer(_shown, db.memo, value)


def _part_of(db: AliasDb, value: Value) -> Part | None:
    shown = shown_by(db, value)
    if shown is None:
        return None
    db.memo.depend_on(MEMORY)
    if db.declares_unknown() or not _is_base(db, shown.part.base):
        return None  # it may be followed through values, and lists of pieces, that were declared unknown
    return shown.part if all(_is_settled(db, view) for view in shown.unsettled) else None


def _shown(memo: Memo, value: Value) -> Shown | None:
    memo.depend_on(*_deciding([value]))
    views: list[tuple[Node, Value, int]] = []
    at = _origin(value)
    while at is not None and len(views) < MOST_VIEWS and (found := _view(at)) is not None:
        node, number = found
        at = _origin(node.inputs[0])
        if at is not None:
            views.append((node, at, number))
    if at is None or not views:
        return None
    region = Region()
    for node, of, number in reversed(views):
        rule = record(node.kind).region
        shown = None if rule is None else rule(node, of, number, region)
        if shown is None:
            return None
        region = shown
    unsettled = [view for view, _, _ in views if _may_be_unsettled(view)]
    is_constant = all(axis[0] is at and not span.values() for axis, span in region.spans.items())
    return Shown(Part(at, region, value.block, is_constant), unsettled) if region.spans else None


def _deciding(values: Iterable[Value]) -> set[Node]:
    """The nodes that decide what ``values``, tensors or integers, show or are; and where these nodes are."""
    found: set[Node] = set()
    around: set[Node] = set()
    pending = [*values]
    while pending:
        node = pending.pop().definer
        if node is None or node in found:
            continue
        found.add(node)
        around.update(node.around())
        if not _makes_tensors(node):
            pending += node.inputs
            for block in node.blocks:
                around.add(block.return_node)
                pending += block.returns
    return found | around


def _makes_tensors(node: Node) -> bool:
    """Whether all results are tensors that are not followed to operands: `_origin` and `_view` end there."""
    kind = node.kind
    return (
        kind.startswith(_NAMESPACES)
        and not kind.endswith("_")
        and kind not in _TAKING_PIECES
        and record(kind).region is None
        and all(isinstance(v.type, TensorType) for v in node.outputs)
    )


def apart(db: AliasDb, a: Value, b: Value) -> Apart | None:
    """Where ``a`` and ``b`` lie if they share no element in one execution of the block around both."""
    if not db.facts.has_parts:
        return None
    first = db.memo.answer(_part_of, db, a)
    second = None if first is None else db.memo.answer(_part_of, db, b)
    return None if first is None or second is None else first.apart(second, _common(a, b), db.memo)


def _view(value: Value) -> tuple[Node, int] | None:
    """The node whose first operand ``value`` is a view of, and its number; None if it is no view."""
    node, number = value.node, value.index
    if node is None or not isinstance(value.type, TensorType):
        return None
    if node.kind in _TAKING_PIECES:
        if node.kind != "prim::ListUnpack":
            given = constant_value(node.inputs[1]) if len(node.inputs) == 2 else None
            number = given if type(given) is int else -1
        node = node.inputs[0].node
        if node is None or number < 0 or not isinstance(node.outputs[0].type, ListType):
            return None
    is_view = record(node.kind).region is not None and bool(node.inputs) and isinstance(node.inputs[0].type, TensorType)
    return (node, number) if is_view and not is_unsettled(node) else None


def _origin(value: Value) -> Value | None:
    """The earliest value that certainly is the same tensor; None if far away."""
    for _ in range(MOST_VIEWS):
        is_new = (
            value.node is not None and value.node.kind.startswith(_NAMESPACES) and not value.node.kind.endswith("_")
        )
        link = None if is_new else step_of(value)
        if link is None or link.cover is not Cover.SAME:
            return value
        value = link.value
    return None


def _may_be_unsettled(view: Node) -> bool:
    """Whether ``view`` gives a list, or takes one, or another tensor than the one that it is of."""
    return not isinstance(view.outputs[0].type, TensorType) or any(has_memory(v.type) for v in view.inputs[1:])


def _is_settled(db: AliasDb, view: Node) -> bool:
    """Whether nothing writes a list of pieces that ``view`` gives, or its other operands."""
    made = view.outputs[0]
    operands = [v for v in view.inputs[1:] if has_memory(v.type)]
    for value in (made, *operands):
        db.memo.depend_on_writes(db.reach_set(value))
    is_fixed = isinstance(made.type, TensorType) or not db.touches_storage(made, contained=False)
    return is_fixed and not any(map(db.touches_storage, operands))


def _is_base(db: AliasDb, value: Value) -> bool:
    """Whether all elements of ``value``, a tensor that stays as it is, are in different places."""
    if not isinstance(value.type, TensorType) or db.has_metadata_writers(value):
        return False
    if value.node is None:
        return value.block is db.graph.block and not _may_be_called(db)
    return makes_dense(value.node.kind) and db.is_own(value)


def _may_be_called(db: AliasDb) -> bool:
    """Whether other graphs may call this one, with tensors in which elements share memory."""
    module = db.graph.module
    return db.facts.constants_are_given or db.graph.is_function or (module is not None and len(module.graphs) > 1)


def _is_around(outer: Block | None, inner: Block | None) -> bool:
    """Whether ``outer`` is ``inner`` or one of the blocks around it; not if one of them is None."""
    while inner is not None and inner is not outer:
        inner = inner.node.block if inner.node is not None else None
    return inner is not None


def _facts(a: Block | None, b: Block | None, scope: Block | None, memo: Memo) -> Sequence[Size]:
    """Numbers fixed in an execution of ``scope`` that are at least 0 if ``a`` and ``b`` run in it."""
    found: dict[Size, None] = {}
    for block in (a, b, scope):
        while block is not None and block.node is not None and len(found) < MOST_FACTS:
            memo.depend_on(block.node, *_deciding(block.node.inputs[:1]))
            for fact in facts_of(block):
                if all(_is_around(value.block, scope) for value in values_of(fact)):
                    found[fact] = None
            block = block.node.block
    return list(found)[:MOST_FACTS]


def _common(a: Value, b: Value) -> Block | None:
    """The innermost block around both; None if they are of different graphs."""
    block, other = a.block, b.block
    while block is not other and block is not None and not _is_around(block, other):
        block = block.node.block if block.node is not None else None
    return block


# -- who reads and writes parts ----------------------------------------------


def written(node: Node) -> Sequence[Value] | None:
    """The tensors of which ``node`` writes elements; None if it may write anything else."""
    if not node.kind.endswith("_") or not _is_known(node):
        return None
    program = program_of(node)
    if program is None or program.stores or program.escapes or program.variadic >= 0:
        return None
    found = [node.inputs[part.argument] for part in program.writes if part.argument < len(node.inputs)]
    is_plain = not any(part.steps for part in program.writes)
    return found if is_plain and all(isinstance(v.type, TensorType) for v in found) else None


def part_read_of(db: AliasDb, value: Value) -> Part | None:
    """As `part_of`, if all that may see ``value`` surely reads no more of its storage than that."""
    return db.memo.answer(_part_read_of, db, value)


def _part_read_of(db: AliasDb, value: Value) -> Part | None:
    part = part_of(db, value)
    return part if part is not None and _is_read_as_part(db, value) else None


def _is_read_as_part(db: AliasDb, value: Value) -> bool:
    """Whether all that may see ``value`` surely reads no more of its storage than ``value`` shows."""
    seen = {value}
    pending = [value]
    while pending:
        value = pending.pop()
        db.memo.depend_on(value)
        if max(value.user_count, len(seen)) > MOST_READERS:
            return False
        for user in value.iter_users():
            if len(user.inputs) >= WIDE:  # which does not report for all of its inputs that one was replaced
                db.memo.depend_on(user)
            if not reads_elements(db, user):
                return False
            for result in user.outputs:
                if result not in seen and has_memory(result.type) and not db.is_own(result):
                    seen.add(result)
                    pending.append(result)
    return True


def concerns_readers(node: Node, value: Value) -> bool:
    """Whether `part_read_of` may say something else if ``node`` comes to use ``value``, or goes."""
    if value.user_count >= MOST_READERS or not is_functional(node) or not _is_known(node):
        return True
    return any(v.type.__class__ is not TensorType for v in node.outputs)


def reads_elements(db: AliasDb, node: Node) -> bool:
    """Whether ``node`` surely reads no more than elements of its operands, and keeps no operand."""
    if node.is_return:
        return node.block is db.graph.block and not _may_be_called(db)
    if node.kind in _PASSING:
        return True
    inner = inner_graph(node) if node.kind == GROUP else None
    if inner is not None:
        db.memo.depend_on_nodes_of(inner)
        return all(each.kind == CONSTANT or is_pointwise(each) for each in inner.walk())
    if not _is_known(node):
        return False
    program = program_of(node)
    return program is None or not (program.stores or program.escapes)


def _is_known(node: Node) -> bool:
    """Whether ``node`` is of a known operator that uses no more than elements of its operands."""
    found = record(node.kind)
    if found.changes or "storage" in found.layout or node.blocks or not node.kind.startswith(_NAMESPACES):
        return False
    return not is_unsettled(node) if schemas(node.kind) else functional_by_default(node.kind)
