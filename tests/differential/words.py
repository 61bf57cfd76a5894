"""What TorchScript's text cannot say (``docs/reference/ir-text.md``): ``torch._C.parse_ir`` refuses or misreads it."""

import keyword
import math
import re
from collections.abc import Iterator
from typing import Any

from irc.ir import EnumMember, Graph, Node, Opaque, Tensor, Value
from irc.ir.types import (
    ClassType,
    DictType,
    DType,
    EnumType,
    FutureType,
    ListType,
    OptionalType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

RESERVED = {*keyword.kwlist} - {"async", "await", "except", "finally", "from", "lambda", "nonlocal", "try", "yield"}
"""Words that cannot be names: those of Python that TorchScript knows."""

_NAME = re.compile(r"([A-Za-z_]\w*|\d+)(\.([A-Za-z_]\w*|\d+))*", re.ASCII)
_UNKNOWN_DTYPES = {DType.STRING, DType.FLOAT4E2M1, DType.FLOAT6E2M3, DType.FLOAT6E3M2}


def wordless(graph: Graph) -> set[str]:
    """What ``graph`` has that PyTorch cannot read, in words; nothing if it can be read."""
    found = {why for value in graph.values() for why in (*_of_name(value), *of_type(value.type))}
    return found | {why for node in graph.walk() for why in _of_node(node)}


def _of_name(value: Value) -> Iterator[str]:
    if _NAME.fullmatch(value.name) is None:
        yield "quoted name"
    if not RESERVED.isdisjoint(value.name.split(".")):
        yield "reserved word"


def of_type(t: Type) -> Iterator[str]:
    """What a type has that PyTorch cannot read."""
    match t:
        case ClassType():
            yield "class type"
        case EnumType():
            yield "enumeration"
        case PrimType(name="Function"):
            yield "function type"
        case PrimType(name=name) if name in RESERVED:
            yield "reserved word"
        case TensorType(dtype=dtype, shape=shape) if dtype is not None and shape is not None:
            if dtype in _UNKNOWN_DTYPES:
                yield "element type"
            if any(isinstance(d, str) for d in shape):
                yield "named dimension"
        case ListType(elem=elem) | OptionalType(elem=elem) | FutureType(elem=elem):
            yield from of_type(elem)
        case DictType(key=key, value=value):
            yield from (*of_type(key), *of_type(value))
        case TupleType(elems=elems) | UnionType(elems=elems):
            for elem in elems:
                yield from of_type(elem)
        case _:
            pass


def _of_node(node: Node) -> Iterator[str]:
    if not node.kind.startswith(("aten::", "prim::", "onnx::", "irc::")):  # passes leave the last two
        yield "operator of another name space"
    for key, value in node.attributes.items():
        if key in RESERVED:
            yield "reserved word"
        yield from of_literal(value)


def of_literal(value: Any) -> Iterator[str]:
    """What an attribute has that PyTorch cannot read."""
    match value:
        case Tensor() | Opaque():
            yield "tensor"
        case EnumMember():
            yield "enumeration"
        case Graph():
            yield "subgraph"
        case None:
            yield "None"
        case tuple() | dict():
            yield "tuple or dictionary"
        case float() if math.isnan(value):
            yield "NaN"
        case complex() if str(value.real) != "0.0" or math.isnan(value.imag) or str(value.imag) == "-0.0":
            yield "complex number with a real part"
        case str() if re.search("[\ud800-\udfff]", value):
            yield "lone surrogate"
        case Type():
            if isinstance(value, TupleType) or str(value) == "NoneType":
                yield "tuple type as a value"
            yield from of_type(value)
        case list():
            for item in value:
                if isinstance(item, list):
                    yield "list of lists"
                yield from of_literal(item)
            if len({type(item) for item in value if not isinstance(item, Type)}) > 1:
                yield "list of several types"
        case _:
            pass
