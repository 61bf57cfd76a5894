"""``AttributeProto`` to attributes of the IR, checked against the operator's schema.

A schema allows checks of names and types, and of which attributes are required.
Records and tables add what the specification states in prose: which values are possible.
Ranges that depend on the inputs are left to shape inference and kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from irc.errors import Error
from irc.frontend.onnx.types import Place, from_proto, text
from irc.ir.limits import MAX_RANK
from irc.ir.types import DType
from irc.ops import record

if TYPE_CHECKING:
    from onnx import AttributeProto, SparseTensorProto, TensorProto

    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.tensors import TensorReader
    from irc.ir.tensor import Tensor

Environment = dict[str, "AttributeProto"]
"""The attributes that a call of a function gives, by name; absent ones are missing."""

FLOAT, INT, STRING, GRAPH, INTS = 1, 2, 3, 5, 7


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type of attributes.

    Attributes:
        name: its name in ``AttributeProto.AttributeType``.
        field: the field with the value.
        is_list: whether that is a list; an empty list is written as nothing.
        is_number: whether a value that is not written is 0 or "", as some writers omit these.
        convert: (reader, value of the field, name for tensors, place) -> value in the IR.
    """

    name: str
    field: str
    is_list: bool
    is_number: bool
    convert: Callable[[AttributeReader, Any, str, Place], Any]


def _unsupported(reader: AttributeReader, value: Any, name: str, where: Place) -> NoReturn:
    _fail("lists of graphs, sparse tensors and types are not supported", where)


_KINDS: dict[int, _Kind] = {
    FLOAT: _Kind("FLOAT", "f", False, True, lambda r, value, name, where: value),
    INT: _Kind("INT", "i", False, True, lambda r, value, name, where: value),
    STRING: _Kind("STRING", "s", False, True, lambda r, value, name, where: value.decode()),
    4: _Kind("TENSOR", "t", False, False, lambda r, value, name, where: r.dense(value, name, where)),
    GRAPH: _Kind("GRAPH", "g", False, False, lambda r, value, name, where: None),  # becomes a block
    6: _Kind("FLOATS", "floats", True, False, lambda r, value, name, where: list(value)),
    INTS: _Kind("INTS", "ints", True, False, lambda r, value, name, where: list(value)),
    8: _Kind("STRINGS", "strings", True, False, lambda r, value, name, where: [s.decode() for s in value]),
    9: _Kind("TENSORS", "tensors", True, False, lambda r, value, name, where: [r.dense(t, name, where) for t in value]),
    10: _Kind("GRAPHS", "graphs", True, False, _unsupported),
    11: _Kind(
        "SPARSE_TENSOR", "sparse_tensor", False, False, lambda r, value, name, where: r.sparse(value, name, where)
    ),
    12: _Kind("SPARSE_TENSORS", "sparse_tensors", True, False, _unsupported),
    13: _Kind("TYPE_PROTO", "tp", False, False, lambda r, value, name, where: from_proto(value, where)),
    14: _Kind("TYPE_PROTOS", "type_protos", True, False, _unsupported),
}
"""``AttributeProto.AttributeType`` -> what it is."""

_CONTENTS = frozenset([kind.field for kind in _KINDS.values()])

_ELEMENT_TYPES = frozenset(d.onnx for d in DType)
_AXES = frozenset(range(-MAX_RANK, MAX_RANK))
_INTEGERS: dict[str, tuple[frozenset[int], str]] = {
    **dict.fromkeys(("to", "dtype", "stash_type"), (_ELEMENT_TYPES, "an element type")),
    **dict.fromkeys(("output_dtype", "softmax_precision"), (_ELEMENT_TYPES | {0}, "an element type or 0")),
    **dict.fromkeys(
        ("axis", "axes", "batch_axis", "time_axis", "perm", "scan_input_axes", "scan_output_axes"),
        (_AXES, f"an axis: tensors have at most {MAX_RANK} dimensions"),
    ),
}
"""Attribute of standard operators -> its possible values, in words too."""

_FINITE = frozenset({"seed"})
"""Attributes of standard operators that cannot be infinite or NaN."""


class AttributeReader:
    """Converts the attributes of nodes.

    Args:
        tensors: reads tensors.
        hold: makes the attribute's value of a tensor and a name for it.
    """

    def __init__(
        self, tensors: TensorReader, hold: Callable[[Tensor, str], Tensor] = lambda tensor, name: tensor
    ) -> None:
        self._tensors = tensors
        self._hold = hold

    def dense(self, proto: TensorProto, name: str, where: Place) -> Tensor:
        """A tensor of an attribute, to be called ``name``."""
        return self._hold(self._tensors.dense(proto, where), name)

    def sparse(self, proto: SparseTensorProto, name: str, where: Place) -> Tensor:
        """As `dense`, for a sparse tensor."""
        return self._hold(self._tensors.sparse(proto, where), name)

    def read(self, protos: Sequence[AttributeProto], operator: Operator, name: str, where: Place) -> dict[str, Any]:
        """All attributes but graphs. Raises IRC127 and what tensors and types raise.

        Args:
            protos: the attributes, references replaced by what they refer to.
            operator: what the schema says of them.
            name: names of tensors are ``name.attribute``.
            where: the node in messages.
        """
        found: dict[str, Any] = {}
        known = operator.attributes
        for proto in protos:
            key = text(proto.name, where)
            expected = known.get(key) if known is not None else None
            if expected is None and known is not None:
                names = ", ".join(sorted(known)) or "none"
                _fail(f"{operator.name} has no attribute {key!r}; it has {names}", where)
            type = proto.type or (expected[0] if expected else 0)  # IR version 1 gives no types
            if expected is not None and type != expected[0]:
                _fail(f"attribute {key!r} is {_name(type)}, but must be {_name(expected[0])}", where)
            if key in found:
                _fail(f"attribute {key!r} is given twice", where)
            found[key] = value = self.value(proto, type, f"{name}.{key}", where)
            if operator.is_standard:
                _check_value(operator.name, key, type, value, where)
        for key, (_, is_required) in (known or {}).items():
            if is_required and key not in found:
                _fail(f"{operator.name} needs attribute {key!r}", where)
        return found

    def value(self, proto: AttributeProto, type: int, name: str, where: Place) -> Any:
        """The value of one attribute; None for a graph."""
        kind = _KINDS.get(type)
        if kind is None:
            _fail(f"attribute {proto.name!r} has the unknown type {type}", where)
        value: Any = getattr(proto, kind.field)
        if not (value if kind.is_list else proto.HasField(kind.field)):
            others = any(field.name in _CONTENTS for field, _ in proto.ListFields())
            if others or not (kind.is_list or kind.is_number):
                _fail(f"attribute {proto.name!r} is {kind.name}, but has no such value", where)
        try:
            return kind.convert(self, value, name, where)
        except UnicodeDecodeError:
            _fail(f"attribute {proto.name!r} is not UTF-8 text", where)


def content_field(type: int) -> str:
    """The field of ``AttributeProto`` that has the value of attributes of ``type``."""
    return _KINDS[type].field


def substitute(protos: Iterable[AttributeProto], environment: Environment | None, where: Place) -> list[AttributeProto]:
    """Replace references to attributes of the function around by what a call gave; drop absent ones. Raises IRC127.

    Args:
        protos: a node's attributes.
        environment: the call's attributes; None outside of functions.
        where: the node in messages.
    """
    found: list[AttributeProto] = []
    for proto in protos:
        reference = text(proto.ref_attr_name, where)
        if not reference:
            found.append(proto)
        elif environment is None:
            _fail(f"attribute {proto.name!r} refers to {reference!r} of a function, but is in none", where)
        elif reference in environment:
            given = environment[reference]
            if proto.type and given.type and proto.type != given.type:
                _fail(
                    f"attribute {proto.name!r} is {_name(proto.type)}, but the function's "
                    f"{reference!r} is {_name(given.type)}",
                    where,
                )
            found.append(renamed(given, text(proto.name, where)))
    return found


def renamed(proto: AttributeProto, name: str) -> AttributeProto:
    """``proto`` under another name: a copy, unless it has that name."""
    if proto.name == name:
        return proto
    copy = type(proto)()
    copy.CopyFrom(proto)
    copy.name = name
    return copy


def _check_value(operator: str, key: str, type: int, value: Any, where: Place) -> None:
    """Check the value of an attribute of a standard operator."""
    if type == STRING:
        choices = record(f"onnx::{operator}").attributes.get(key)
        if isinstance(choices, tuple) and value not in choices:
            _fail(f"attribute {key!r} of {operator} is one of {', '.join(map(str, choices))}, not {value!r}", where)
    elif type in (INT, INTS) and key in _INTEGERS:
        allowed, words = _INTEGERS[key]
        for number in [value] if type == INT else value:
            if number not in allowed:
                _fail(f"attribute {key!r} is out of range: {number} is not {words}", where)
    elif type == FLOAT and key in _FINITE and not math.isfinite(value):
        _fail(f"attribute {key!r} is out of range: {value} is not a finite number", where)


def _name(type: int) -> str:
    return _KINDS[type].name if type in _KINDS else f"of the unknown type {type}"


def _fail(message: str, where: Place) -> NoReturn:
    raise Error("IRC127", message, str(where))
