"""Replacements of a write: the functional form of an in-place operator, and how new contents of a part reach the whole.

``x.select(0, 1).add_(y)`` is ``x' = x.select_scatter(x.select(0, 1) + y, 0, 1)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

from irc.ir import Node, Value, types
from irc.ir.constants import constant_value
from irc.ir.ops import Effects, effects, resolve, schemas
from irc.ir.ops.joins import APPEND, CONCAT
from irc.ir.ops.twins import keeps_type, twin, twin_of
from irc.ir.schema import Schema
from irc.ir.types import TensorType

# -- in-place operators ------------------------------------------------------

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
"""Types of operands that are no numbers."""


def functional_kind(node: Node) -> str | None:
    """The operator that computes into new memory what ``node`` writes into its first input; None if there is none.

    It takes the same arguments and shares memory with none. Its result is what the in-place
    operator writes into its input, provided that it converts to the input's element
    type (`is_like_first`); otherwise the in-place one fails.
    """
    if not node.inputs or len(node.outputs) > 1 or not isinstance(node.inputs[0].type, TensorType):
        return None
    kind = node.kind
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if functional != kind and _is_twin(node, functional) else None
    row = resolve(node)
    return None if row is None or effects(kind) & Effects.RANDOM else _functional_row(row)


def functional_form(kind: str) -> str | None:
    """The `functional_kind` of any node of ``kind``; None if none has one."""
    if kind == APPEND:
        return CONCAT  # as `concatenate_instead` has it
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if twin(functional) == kind else None
    rows = () if effects(kind) & Effects.RANDOM else schemas(kind)
    return next(filter(None, map(_functional_row, rows)), None)


def _is_twin(node: Node, functional: str) -> bool:
    plain = Node(node.graph, functional, version=node.version)
    return twin_of(plain) == node.kind


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
    """Whether ``functional`` on the inputs of ``node`` surely gives a tensor like the first: no conversion, no growth.

    True for twins of ONNX operators, which fail at run time otherwise.
    """
    if not functional.startswith("aten::") or functional in _LIKE_FIRST:
        return True
    first, *others = [v.type for v in node.inputs]
    return functional not in _BOOLEAN and keeps_type(first, [t for t in others if t not in _SETTINGS])


def is_laid_out_like_first(node: Node) -> bool:
    """Whether the functional form of ``node`` surely lays out its result as its first input: no other is a tensor."""
    return not any(isinstance(v.type, TensorType) for v in node.inputs[1:])


# -- views -------------------------------------------------------------------

Emit = Callable[..., Value]
"""``emit(kind, *inputs)`` inserts a node and gives its output; inputs that are Python values become constants."""


class View(NamedTuple):
    """A view operator whose result certainly shares with its first input.

    Attributes:
        again: the operator that gives the same elements, whatever the strides.
        put: from ``emit``, the view's node, the whole and new contents of the part, the whole with these contents;
            None if there is no such operator.
        copies: whether ``put`` makes new memory of the whole's element type.
    """

    again: str
    put: Callable[[Emit, Node, Value, Value], Value] | None
    copies: bool = False


def _scatter(kind: str) -> Callable[[Emit, Node, Value, Value], Value]:
    return lambda emit, node, whole, part: emit(kind, whole, part, *node.inputs[1:])


def _same(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return part


def _swap(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    """A view operator that is its own inverse, as transposition is."""
    return emit(node.kind, part, *node.inputs[1:])


def _permute(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    order = permutation(node)
    assert order is not None
    return emit(node.kind, part, sorted(range(len(order)), key=order.__getitem__))


def _unsqueeze(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::squeeze", part, node.inputs[1])


def _reshape(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::reshape_as", part, whole)


def permutation(node: Node) -> list[int] | None:
    """The constant order of dimensions that ``aten::permute`` is given; None if it is not constant."""
    source = node.inputs[1].made_by("prim::ListConstruct")
    if source is not None:
        order: Any = [constant_value(v) for v in source.inputs]
    else:
        order = constant_value(node.inputs[1])
    if not isinstance(order, list):
        return None
    numbers = [i for i in cast("list[Any]", order) if isinstance(i, int)]
    return [i % len(numbers) for i in numbers] if len(numbers) == len(cast("list[Any]", order)) else None


VIEWS: dict[str, View] = {
    "aten::select": View("aten::select", _scatter("aten::select_scatter"), True),
    "aten::slice": View("aten::slice", _scatter("aten::slice_scatter"), True),
    "aten::t": View("aten::t", _swap),
    "aten::numpy_T": View("aten::numpy_T", _swap),
    "aten::transpose": View("aten::transpose", _swap),
    "aten::permute": View("aten::permute", _permute),
    "aten::unsqueeze": View("aten::unsqueeze", _unsqueeze),
    "aten::squeeze": View("aten::squeeze", _reshape),
    "aten::view": View("aten::reshape", _reshape),
    "aten::view_as": View("aten::reshape_as", _reshape),
    "aten::unflatten": View("aten::unflatten", _reshape),
    "aten::detach": View("aten::detach", _same),
    "aten::alias": View("aten::alias", _same),
    "aten::data": View("aten::data", _same),
    "prim::data": View("prim::data", _same),
    "aten::expand": View("aten::expand", None),
    "aten::expand_as": View("aten::expand_as", None),
    "aten::broadcast_to": View("aten::broadcast_to", None),
    "aten::diagonal": View("aten::diagonal", _scatter("aten::diagonal_scatter"), True),
}
"""Views that can be taken anew of other memory. Not those that show other elements than NumPy's or torch's indexing
does: ``as_strided``, ``unfold``, ``view(dtype)``."""


def view_of(node: Node) -> View | None:
    """How ``node`` views its first input, if its result certainly shares with it."""
    view = VIEWS.get(node.kind)
    if view is None or len(node.outputs) != 1:
        return None
    row = resolve(node)
    if row is None or row.returns[0].alias is None or not row.returns[0].alias.must:
        return None
    if row.overload == "dtype":
        return None  # other bits of the same memory
    return view


def can_put(node: Node, view: View) -> bool:
    """Whether what is written into the result of ``node`` can be put into the whole."""
    return view.put is not None and (node.kind != "aten::permute" or permutation(node) is not None)
