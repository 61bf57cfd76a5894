"""Which values certainly are one tensor, or certainly share memory.

Schema rows mark results that always are an argument (in-place operators, ``positive``), or lie within one (``t``,
``select``). Such results are followed up to where the memory comes from, through branches that return the same value,
and loops that carry a value unchanged.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from irc.alias.memory_types import has_memory
from irc.ir import Block, Node, Tensor, Value, constant_value
from irc.ir.kinds import IF, PRIM_LOOP
from irc.ir.region_flow import carried
from irc.ops import of_kind, record, resolve, schemas

_SAME = frozenset({"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::Guard", "prim::profile"})

_MOST_NESTED = 32
"""How many blocks deep branches and loops are looked into."""


class Cover(IntEnum):
    """How much of the memory of a value another one shows."""

    PART = 0
    ALL = 1
    SAME = 2
    """All of it, as the same tensor, or the same container: a change of shape is seen through both."""


class Link(NamedTuple):
    """How a value is made of an earlier one.

    Attributes:
        value: the earlier one.
        cover: how much of its memory is shown.
        keeps_elements: whether there certainly are elements if the earlier value has any.
    """

    value: Value
    cover: Cover = Cover.SAME
    keeps_elements: bool = True

    def after(self, later: Link) -> Link:
        """The link of a value of which ``later`` leads to the one that this link is of."""
        return Link(self.value, min(self.cover, later.cover), self.keeps_elements and later.keeps_elements)


def common_origin(a: Value, b: Value) -> tuple[Link, Link] | None:
    """The links of ``a`` and ``b`` to their nearest common origin, or to two constants of one weight."""
    # From both at once: what is made of one value meets soon, however long the chain that this came by is.
    above: tuple[dict[object, Link], dict[object, Link]] = {}, {}
    ends: list[Link | None] = [Link(a), Link(b)]
    while any(ends):
        for i, end in enumerate(ends):
            if end is None:
                continue
            memory = _memory(end.value)
            above[i][memory] = end
            other = above[1 - i].get(memory)
            if other is not None:
                return (end, other) if i == 0 else (other, end)
            step = step_of(end.value)
            ends[i] = None if step is None else step.after(end)
    return None


def same_tensor(a: Value, b: Value) -> bool:
    """Whether ``a`` and ``b``, where both are defined, certainly are one tensor, or one container."""
    if a is b:
        return has_memory(a.type)
    origin = _origin(a, b)
    if origin is None:
        return False
    (value, cover, _), (other, other_cover, _) = origin
    return value is other and cover == other_cover == Cover.SAME


def must_share(a: Value, b: Value, *, if_any: bool = False) -> bool:
    """Whether ``a`` and ``b``, where both are defined, certainly share memory if either has any elements.

    Two parts of one tensor need not: only a part and the whole do. With ``if_any``, it is enough that they share if
    both have elements.
    """
    origin = _origin(a, b)
    if origin is None:
        return False
    of_a, of_b = origin
    return max(of_a.cover, of_b.cover) > Cover.PART and (if_any or (of_a.keeps_elements and of_b.keeps_elements))


def _origin(a: Value, b: Value) -> tuple[Link, Link] | None:
    return common_origin(a, b) if has_memory(a.type) and has_memory(b.type) else None


def _memory(value: Value) -> object:
    """A key for a value's memory if it is not a view: the weight's name for a constant, else the value."""
    tensor = constant_value(value)
    return tensor.name if isinstance(tensor, Tensor) and tensor.name else value


# -- steps ---------------------------------------------------------------------


def step_of(value: Value, depth: int = 0) -> Link | None:
    """The value that ``value`` certainly is, or shows memory of; None if there is none."""
    node = value.node
    if node is None:
        outer = value.definer
        return _of_loop(value, outer, depth) if outer is not None and outer.kind == PRIM_LOOP else None
    if node.kind == IF:
        return _of_branches(value, node, depth)
    if node.kind == PRIM_LOOP:
        return _of_loop(value, node, depth)
    if node.kind in _SAME:
        return Link(node.inputs[0]) if value.index == 0 else None
    if node.kind in _TAKING_APART:
        return _taken(value, node)
    return _by_row(value, node)


@of_kind
def _may_share(kind: str) -> bool:
    """Whether a row says of a result where its memory comes from; those of most kinds are new."""
    return any(result.alias for row in schemas(kind) for result in row.returns)


def _by_row(value: Value, node: Node) -> Link | None:
    if not _may_share(node.kind):
        return None
    schema = resolve(node)
    result = schema and schema.result(value.index)
    info = result and result.alias
    if schema is None or not info or len(info.before) != 1 or not (info.must or info.write):
        return None
    sources = [
        node.inputs[i]
        for i, argument in enumerate(schema.arguments[: len(node.inputs)])
        if argument.alias is not None and argument.alias.before == info.before
    ]
    if len(sources) != 1:
        return None
    keeps = record(node.kind).keeps_elements
    return Link(sources[0], _COVERS[info.must], keeps is None or keeps(node))


_COVERS = {"": Cover.SAME, "==": Cover.SAME, "=": Cover.ALL, "<": Cover.PART}
"""By what a row says: a result that is written is the argument."""

_TAKING_APART = frozenset({"prim::TupleUnpack", "prim::TupleIndex"})


def _taken(value: Value, node: Node) -> Link | None:
    """What a tuple was made of."""
    made = node.inputs[0].made_by("prim::TupleConstruct")
    index = value.index if node.kind == "prim::TupleUnpack" else constant_value(node.inputs[1])
    if made is None or not isinstance(index, int) or not -len(made.inputs) <= index < len(made.inputs):
        return None
    return Link(made.inputs[index])


def _of_branches(value: Value, node: Node, depth: int) -> Link | None:
    """The value from outside that both branches return, or views of it."""
    ends = [_leaving(block.returns[value.index], block, depth) for block in node.blocks]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0].value is not ends[1].value:
        return None
    return ends[0].after(ends[1])


def _of_loop(value: Value, loop: Node, depth: int) -> Link | None:
    """The initial value of a loop for a parameter or result that carries it, or a view of it, unchanged."""
    (block,) = loop.blocks
    at = carried(loop)
    number = value.index - (at.param if value.is_param else 0)
    if not 0 <= number < min(at.many, len(block.returns) - at.returned, len(block.params) - at.param):
        return None
    end = _leaving(block.returns[at.returned + number], block, depth)
    given = loop.inputs[at.input + number]
    if end is None or (end.value is not block.params[at.param + number] and end.value is not given):
        return None
    return end._replace(value=given)


def _leaving(value: Value, block: Block, depth: int) -> Link | None:
    """The link of ``value``, which ``block`` returns, to a parameter of the block or to an outer value."""
    end = Link(value)
    while end.value.block is block and not end.value.is_param:
        step = step_of(end.value, depth + 1) if depth < _MOST_NESTED else None
        if step is None:
            return None
        end = step.after(end)
    return end
