"""Which values show parts of one tensor that cannot overlap.

Points-to sets tell storages apart, not parts of them. Two views of one tensor that lie apart (rows 0 and 1) share no
memory although their storage is one. This is found here from the views alone, when a query asks: nothing is recorded,
so nothing has to be kept right when the graph changes.

Invariants:

- An answer holds at one time. Values of a loop's body differ from iteration to iteration, so the caller names a
  *scope*: a block, of whose one execution it speaks. What numbers and index spaces a part is described by must be
  defined there or around, or live no longer than the tensor that the parts are of.
- A part is of a *base*: memory that a node allocates, no two elements of which are in one place, or an input of the
  main graph. (The boundary copies inputs with elements in one place if the graph writes to inputs.)
- Where an operator changes the shape or strides of a tensor in place, nothing is said of that memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from irc.alias.must import Cover, step_of
from irc.ir.block import Block
from irc.ir.constants import constant_value
from irc.ir.kinds import CONSTANT
from irc.ir.node import Node
from irc.ir.types import TensorType
from irc.ir.value import Value
from irc.ops import record, resolve
from irc.ops.regions import Axis, Region, RegionRule, Span

if TYPE_CHECKING:
    from irc.alias.db import AliasDb

_MOST_VIEWS = 16
"""Of longer chains of views nothing is known."""


_PIECES = frozenset({"prim::ListUnpack", "aten::__getitem__"})
"""Take elements of a list."""


class Apart(NamedTuple):
    """Why two values share no element: they are at ``first`` and ``second`` along an axis of ``base``."""

    base: Value
    axis: Axis
    first: Span
    second: Span

    def text(self) -> str:
        """This in words."""
        value, dim = self.axis
        of = f"the storage of %{self.base.name}" if value is None else f"dimension {dim} of %{value.name}"
        return f"they lie at {self.first} and {self.second} along {of}"


class _View(NamedTuple):
    """A step from ``made`` to the value that it shows a part of: what ``node`` is given first."""

    rule: RegionRule
    node: Node
    made: Value
    number: int


def is_part(value: Value) -> bool:
    """Whether ``value`` may be known to be a part of another one: a quick look."""
    return bool(_chain(value)[1])


def written(node: Node) -> list[Value]:
    """The tensors that ``node`` writes, and no other memory; empty if it may write something else."""
    schema = resolve(node) if node.kind.endswith("_") and not record(node.kind).changes else None
    if schema is None:
        return []
    arguments = zip(node.inputs, schema.arguments)
    return [v for v, argument in arguments if argument.alias is not None and argument.alias.write]


def apart(db: AliasDb, a: Value, b: Value, scope: Block | None = None) -> Apart | None:
    """Where ``a`` and ``b`` lie if they certainly share no element.

    None if they may share one, in one execution of ``scope``: by default, of the innermost block around both.
    """
    base, views = _chain(a)
    other, others = _chain(b)
    if base is not other or not views or not others or not _is_base(db, base):
        return None
    if not all(_is_settled(db, view) for view in (*views, *others)):
        return None
    first, second = _region(base, views), _region(base, others)
    if first is None or second is None:
        return None
    fixed = _around(scope or _common(a, b)) | _around(base.block)
    for axis, span in first.spans.items():
        found = second.spans.get(axis)
        if found is not None and span.is_apart(found):
            names = [axis[0], *span.symbols(), *found.symbols()]
            if all(name is None or name.block in fixed for name in names):
                return Apart(base, axis, span, found)
    return None


def _chain(value: Value) -> tuple[Value, list[_View]]:
    """The value that ``value`` is, or is made of by views with rules, and these views, the first first."""
    views: list[_View] = []
    for _ in range(_MOST_VIEWS):
        step = _step(value)
        if step is None:
            break
        if isinstance(step, Value):
            value = step
        else:
            views.append(step)
            value = step.node.inputs[0]
    return value, views[::-1]


def _step(value: Value) -> _View | Value | None:
    """The view that ``value`` is, or the value that it certainly is; None if it is neither."""
    node, number = value.node, value.index
    if node is not None and not node.inputs:
        return None
    if node is not None and isinstance(value.type, TensorType):
        if node.kind in _PIECES and node.inputs[0].node is not None:
            if node.kind == "aten::__getitem__":
                given = constant_value(node.inputs[1])
                number = given if type(given) is int else -1
            node = node.inputs[0].node
        rule = record(node.kind).region if number >= 0 else None
        if rule is not None:
            return _View(rule, node, value, number)
    link = step_of(value)
    return link.value if link is not None and link.cover is Cover.SAME else None


def _is_settled(db: AliasDb, view: _View) -> bool:
    """Whether a view's result surely is what its rule says: nothing changes the list that it is from."""
    made = view.node.outputs[0]
    return isinstance(made.type, TensorType) or not db.has_writers(made, contained=False)


def _is_base(db: AliasDb, value: Value) -> bool:
    """Whether views of ``value`` that show other elements show other memory."""
    if not isinstance(value.type, TensorType) or db.has_metadata_writers(value):
        return False
    if value.node is None:
        return value.block is db.graph.block and not db.facts.constants_are_given
    return value.node.kind != CONSTANT and db.is_own(value)


def _region(base: Value, views: list[_View]) -> Region | None:
    region: Region | None = Region.whole(base)
    for view in views:
        region = None if region is None else view.rule(view.node, view.made, view.number, region)
    return region


def _around(block: Block | None) -> set[Block]:
    return set() if block is None else set(block.around())


def _common(a: Value, b: Value) -> Block | None:
    around = _around(a.block)
    return next((at for at in b.block.around() if at in around), None) if b.block is not None else None
