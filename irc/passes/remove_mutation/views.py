"""Functional forms of in-place operators, and origins of values: views, writes, branches, loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from irc.ir import Node, Value, types
from irc.ir.kinds import IF, ONNX_LOOP, PRIM_LOOP
from irc.ir.region_flow import slots
from irc.ir.schema import Schema
from irc.ir.types import INT, ListType, TensorType
from irc.ops import Effects, effects, record, resolve, schemas
from irc.ops.axes import APPEND, CONCAT
from irc.ops.pointwise import inplace_variant, inplace_variant_of, keeps_type
from irc.ops.views import Number, View, number

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
