"""Attributes of the IR to ``AttributeProto``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from irc.errors import Error
from irc.frontend.onnx.types import to_proto
from irc.frontend.onnx_export.tensors import fill
from irc.ir import Graph, Tensor
from irc.ir.types import Type

if TYPE_CHECKING:
    from onnx import AttributeProto

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, TYPE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 13


def _tensors(proto: AttributeProto, value: list[Tensor]) -> None:
    for tensor in value:
        fill(tensor, proto.tensors.add(), tensor.name)


_SETTERS: dict[int, Callable[[AttributeProto, Any], object]] = {
    FLOAT: lambda proto, value: setattr(proto, "f", value),
    INT: lambda proto, value: setattr(proto, "i", int(value)),
    STRING: lambda proto, value: setattr(proto, "s", value.encode()),
    TENSOR: lambda proto, value: fill(value, proto.t, value.name),
    FLOATS: lambda proto, value: proto.floats.extend(value),
    INTS: lambda proto, value: proto.ints.extend(map(int, value)),
    STRINGS: lambda proto, value: proto.strings.extend([s.encode() for s in value]),
    TENSORS: _tensors,
    TYPE: lambda proto, value: proto.tp.CopyFrom(to_proto(value)),
}
"""``AttributeProto.AttributeType`` -> how the value is put in. Graphs are their writer's business."""

_BY_CLASS: tuple[tuple[type | tuple[type, ...], int, int], ...] = (
    ((bool, int), INT, INTS),
    (float, FLOAT, FLOATS),
    (str, STRING, STRINGS),
    (Tensor, TENSOR, TENSORS),
)
"""Class of a value, the type of an attribute that is one, and of one that is a list of them."""


def write_attribute(proto: AttributeProto, name: str, value: Any, type: int | None, where: str) -> None:
    """Make ``proto``, which is empty, the attribute ``name``.

    Args:
        proto: the attribute.
        name: its name.
        value: a value as nodes hold it, but no graph.
        type: its ``AttributeProto`` type as the operator's schema has it; None: as the value is.
        where: the node in messages.

    Raises:
        Error: IRC350 if ONNX has no such attributes.
    """
    proto.name = name
    found = type_of(value) if type is None else type
    if found not in _SETTERS:
        raise Error("IRC350", f"ONNX has no attributes like {name!r}: {value!r}", where)
    proto.type = found  # type: ignore[assignment]  # an enumeration's number
    try:
        _SETTERS[found](proto, value)
    except (TypeError, ValueError, AttributeError) as error:
        raise Error("IRC350", f"attribute {name!r} is not what the operator takes: {error}", where) from None


def type_of(value: Any) -> int:
    """The type of an attribute that is in no schema; 0 if ONNX has no type for it."""
    if isinstance(value, Graph):
        return GRAPH
    if isinstance(value, Type):
        return TYPE
    is_list = isinstance(value, list)
    first: Any = next(iter(cast("list[Any]", value)), 0) if is_list else value
    return next((many if is_list else one for kind, one, many in _BY_CLASS if isinstance(first, kind)), 0)
