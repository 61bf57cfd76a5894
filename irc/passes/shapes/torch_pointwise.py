"""Types of TorchScript's pointwise operators, in place or not, and of arithmetic on integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from irc.ir import Node, types
from irc.ir.dtypes import SCALAR_TYPES
from irc.ir.types import DType, ListType, OptionalType, TensorType, Type
from irc.ops import records, resolve, schemas
from irc.ops.metadata import CHANGES_METADATA
from irc.ops.opaque import is_opaque
from irc.passes.shapes.torch_call import UNKNOWN, Call, TorchRule, torch_rule
from irc.passes.shapes.torch_types import NUMBERS, as_float, category, if_float, result_type

_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in "add sub mul eq ne lt le gt ge".split()
}

_NOT_OPERANDS = frozenset({"alpha", "value", "rounding_mode", "condition", "eps"})

KEEPS_METADATA = frozenset(
    each.kind for each in records("aten") if each.name.endswith("_") and not each.name.endswith("__")
) - CHANGES_METADATA.keys() | {f"aten::__i{name}__" for name in "and or xor lshift rshift".split()}
"""Operators that write into tensors but do not change their shapes and element types."""


def keeps_metadata(node: Node) -> bool:
    """Whether ``node`` surely leaves shapes and element types of existing tensors as they are.

    Operators that other packages have registered may write elements, but change nothing else of a tensor.
    """
    kind, rows = node.kind, schemas(node.kind)
    if kind in KEEPS_METADATA or is_opaque(kind):
        return True
    if kind in ("prim::CallFunction", "prim::CallMethod"):
        return False
    if not kind.startswith("aten::") and (rows or kind.startswith(("onnx::", "prim::", "irc::"))):
        return True
    if not rows:
        return not any(_may_hold_tensors(v.type) for v in node.inputs)
    fitting = resolve(node)
    arguments = [a for row in (rows if fitting is None else (fitting,)) for a in row.arguments]
    return not any(_holds_tensors(a.type) and any(i.write for i in a.alias.walk()) for a in arguments if a.alias)


def _may_hold_tensors(type: Type) -> bool:
    return type not in (*NUMBERS, types.STR, types.NONE)


def _holds_tensors(type: Type) -> bool:
    if isinstance(type, ListType | OptionalType):
        return _holds_tensors(type.elem)
    return isinstance(type, TensorType)


@torch_rule("positive", "clone", "contiguous", "detach", "alias", "dropout", "feature_dropout", "msort")
def same(c: Call) -> Type:
    return c.tensor(0)


@torch_rule(*(kind.removeprefix("aten::") for kind in sorted(KEEPS_METADATA)))
def in_place(c: Call) -> Type:
    return c.tensor(0)


@torch_rule("prelu", "logcumsumexp")
def same_float(c: Call) -> Type:
    return TensorType(if_float(c.tensor(0).dtype), c.tensor(0).shape)


@torch_rule("abs", "square")
def magnitude(c: Call) -> Type:
    x = c.tensor(0)
    # The absolute values of complex numbers are real; squares of truth values are integers.
    return TensorType(x.dtype if x.dtype is not None and category(x.dtype) in (1, 2) else None, x.shape)


def _operands(c: Call) -> list[Type]:
    names = [a.name for a in c.schema.arguments if a.name not in _NOT_OPERANDS]
    return [v.type for v in map(c.value, names) if v is not None]


def together(c: Call, operands: list[Type] | None = None) -> TensorType:
    """The operands' common element type and broadcast shape; ``operands`` are their types, by default those of all."""
    operands = _operands(c) if operands is None else operands
    shapes = [t.shape for t in operands if t.is_any or _holds_tensors(t)]
    if c.schema.name == "aten::where":
        shapes.append(c.tensor("condition").shape)
    return TensorType(result_type(operands), c.broadcast(shapes))


def common(c: Call) -> Type | tuple[Type, ...]:
    return _number(c) if c.is_number() else together(c)


def floats(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    found = together(c)
    return TensorType(as_float(found.dtype), found.shape)


def bools(c: Call) -> Type | tuple[Type, ...]:
    return _number(c) if c.is_number() else TensorType(DType.BOOL, together(c).shape)


_BY_RESULT: dict[str, TorchRule] = {
    "bool": bools,
    "common": common,
    "first": same,
    "first-if-float": same_float,
    "float": floats,
}
for _record in records("aten"):
    if _record.result_type:
        torch_rule(_record.name)(_BY_RESULT[_record.result_type])


@torch_rule("div")
def division(c: Call) -> Type | tuple[Type, ...]:
    rounding = c.arg("rounding_mode")
    if c.is_number() or rounding is None:
        return floats(c)
    found = together(c)
    return TensorType(if_float(found.dtype) if rounding is UNKNOWN else found.dtype, found.shape)


@torch_rule("ldexp", "angle")
def shape_together(c: Call) -> Type | tuple[Type, ...]:
    return () if c.is_number() else TensorType(None, together(c).shape)


@torch_rule("float_power")
def float_power(c: Call) -> Type:
    found = together(c)
    known = found.dtype is not None and category(found.dtype) < 3
    return TensorType(DType.DOUBLE if known else None, found.shape)


@torch_rule("masked_fill", "masked_scatter")
def masked_fill(c: Call) -> Type:
    return TensorType(c.tensor("self").dtype, c.broadcast([c.tensor("self").shape, c.tensor("mask").shape]))


@torch_rule("to", "type_as")
def to(c: Call) -> Type:
    x = c.tensor(0)
    if c.value("other") is not None:
        return TensorType(c.tensor("other").dtype, x.shape)
    given = c.arg("dtype")
    return TensorType(x.dtype if given is None else element_type(given), x.shape)


def element_type(given: Any) -> DType | None:
    """The element type that a ``ScalarType`` argument names, if it is known."""
    return SCALAR_TYPES.get(given) if isinstance(given, int) else None


def _number(c: Call) -> tuple[Type, ...]:
    """Arithmetic on known integers, which computes shapes: the result is tracked."""
    apply = _INTEGERS.get(c.schema.name.removeprefix("aten::"))
    values = [c.known(v) for v in c.node.inputs]
    if apply is not None and len(values) == 2 and all(isinstance(v, int) for v in values):
        c.tell(c.node.outputs[0], apply(*values))
    return ()
