"""ONNX types and IR types, both ways.

========================  =============================
``TypeProto``             IR
========================  =============================
``tensor_type``           ``TensorType(dtype, shape)``
``sequence_type``         ``ListType(elem)``
``optional_type``         ``OptionalType(elem)``
``map_type``              ``DictType(key, value)``
========================  =============================

A map's key becomes ``str`` or ``int``; the width of an integer key is not
kept (every operator that takes a map has int64 or string keys).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from irc.errors import Error
from irc.frontend.onnx.checks import Place, text
from irc.ir.types import (
    ANY,
    INT,
    STR,
    TENSOR,
    DictType,
    Dim,
    DType,
    ListType,
    OptionalType,
    TensorType,
    Type,
    merged,
)

if TYPE_CHECKING:
    from onnx import TensorShapeProto, TypeProto

MAX_NESTING = 16
"""How deep types may nest; ``seq(map(int64, tensor(float)))`` has three levels."""

_INTEGERS = {d.onnx for d in DType if d.is_integer}
_BY_NAME = {d.name.lower(): d for d in DType}
_UNDEFINED = 0
_SAYS_NOTHING = re.compile(r"\?*|-\d+|(?i:none|null|nan|unk|unknown|undefined)")
"""What exporters write in place of the name of a size that they do not know: such sizes may differ."""

_LARGEST = (1 << 63) - 1


def from_proto(proto: TypeProto, where: Place, depth: int = 0) -> Type:
    """The IR type of a ``TypeProto``; ``TENSOR`` if it says nothing. Raises IRC131."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        dtype = element_type(tensor.elem_type, where)
        if not tensor.HasField("shape"):
            return TensorType(dtype)
        return TensorType(dtype, tuple([_dim(d, where) for d in tensor.shape.dim]))
    if kind == "sparse_tensor_type":  # its values are dense here, as those of sparse initializers
        sparse = proto.sparse_tensor_type
        shape = tuple([_dim(d, where) for d in sparse.shape.dim]) if sparse.HasField("shape") else None
        return TensorType(element_type(sparse.elem_type, where), shape)
    if kind is None:
        return TENSOR
    if depth == MAX_NESTING:
        raise Error("IRC131", f"types nest deeper than {MAX_NESTING} levels", str(where))
    if kind == "sequence_type":
        return ListType(from_proto(proto.sequence_type.elem_type, where, depth + 1))
    if kind == "optional_type":
        return OptionalType(from_proto(proto.optional_type.elem_type, where, depth + 1))
    if kind == "map_type":
        key = proto.map_type.key_type
        if key != DType.STRING.onnx and key not in _INTEGERS:
            raise Error("IRC131", f"a map's keys are integers or strings, not element type {key}", str(where))
        value = from_proto(proto.map_type.value_type, where, depth + 1)
        return DictType(STR if key == DType.STRING.onnx else INT, value)
    raise Error("IRC131", f"values of ONNX's {kind} are not supported", str(where))


def element_type(number: int, where: Place) -> DType | None:
    """The element type with ``TensorProto.DataType`` ``number``; None for UNDEFINED. Raises IRC131."""
    if number == _UNDEFINED:
        return None
    try:
        return DType.from_onnx(number)
    except KeyError:
        raise Error("IRC131", f"{number} is no element type that irc knows", str(where)) from None


def _dim(dim: TensorShapeProto.Dimension, where: Place) -> Dim:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        size = dim.dim_value
        if size < -1:
            raise Error("IRC131", f"a dimension of size {size}", str(where))
        return None if size < 0 else size  # -1 is how several exporters spell an unknown size
    if kind != "dim_param":
        return None
    name = text(dim.dim_param, where)
    return None if _SAYS_NOTHING.fullmatch(name) else name


def to_proto(type: Type) -> TypeProto:
    """The ``TypeProto`` of an IR type; TypeError for types that ONNX does not have, Error IRC350 for such sizes."""
    from onnx import TypeProto

    proto = TypeProto()
    _fill(proto, type)
    return proto


def _fill(proto: TypeProto, type: Type) -> None:
    if isinstance(type, TensorType):
        proto.tensor_type.elem_type = type.dtype.onnx if type.dtype else _UNDEFINED
        if type.shape is not None:
            proto.tensor_type.shape.SetInParent()  # a scalar's shape is present and empty
            for dim in type.shape:
                added = proto.tensor_type.shape.dim.add()
                if isinstance(dim, int):
                    if dim > _LARGEST:
                        raise Error("IRC350", f"ONNX's sizes are at most {_LARGEST}; here is {type}")
                    added.dim_value = dim
                elif isinstance(dim, str):
                    added.dim_param = dim
    elif isinstance(type, ListType):
        _fill(proto.sequence_type.elem_type, type.elem)
    elif isinstance(type, OptionalType):
        _fill(proto.optional_type.elem_type, type.elem)
    elif isinstance(type, DictType):
        proto.map_type.key_type = DType.STRING.onnx if type.key == STR else DType.INT64.onnx
        _fill(proto.map_type.value_type, type.value)
    else:
        _no_onnx_type(type)


def _no_onnx_type(type: Type) -> NoReturn:
    raise TypeError(f"ONNX has no type for {type}")


def from_schema(text: str) -> Type:
    """The IR type of a type string of an operator's schema, such as ``seq(map(int64, float))``."""
    text = text.strip()
    head, _, rest = text.partition("(")
    inner = rest.removesuffix(")")
    if head == "tensor":
        return TensorType(_BY_NAME.get(inner))
    if head == "seq":
        return ListType(from_schema(inner))
    if head == "optional":
        return OptionalType(from_schema(inner))
    if head == "map":
        key, _, value = inner.partition(",")
        return DictType(STR if key.strip() == "string" else INT, from_schema(value))
    return TensorType(_BY_NAME.get(head))  # a bare element type: the values of a map


def settle(inferred: Type | None, declared: Type | None) -> Type:
    """The type that a value starts with, from what irc infers and what the model declares.

    A declaration (``value_info``) adds what irc does not know yet,
    but never overrides the kind of value or its element type. Of what an operator that irc does not know gives,
    wherever that is handed on, only the declaration says anything.
    """
    if inferred is None or inferred is ANY:
        return declared or inferred or TENSOR
    if declared is None:
        return inferred
    return merged(inferred, declared, _settled)


def _settled(inferred: TensorType, declared: TensorType) -> TensorType:
    if inferred.dtype is not None and declared.dtype not in (None, inferred.dtype):
        return inferred
    shape = declared.shape if inferred.shape is None else inferred.shape
    return TensorType(inferred.dtype or declared.dtype, shape)
