"""The functional forms of in-place operators."""

from __future__ import annotations

from functools import cache

from irc.ir import Node, types
from irc.ir.schema import Schema
from irc.ir.types import TensorType
from irc.ops import Effects, effects, resolve, schemas
from irc.ops.joins import APPEND, CONCAT
from irc.ops.twins import keeps_type, twin, twin_of

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
