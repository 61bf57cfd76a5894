"""Rules of the operators that put lists, tuples and dictionaries together and take them apart.

The alias analysis relies on the types of their results: a result declared as a number has no memory.
"""

from __future__ import annotations

from irc.ir import types
from irc.ir.constants import constant_value
from irc.ir.node import Node
from irc.ir.types import DictType, ListType, OptionalType, PrimType, TensorType, TupleType, Type
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.forms import Form, counts, gives, has, require
from irc.ir.verify.type_relation import accepts


def _list_construct(node: Node) -> None:
    has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, ListType):
        raise node_error("IRC214", f"prim::ListConstruct makes a list, not {of_type}", node, output=0)
    for i, value in enumerate(node.inputs):
        if value.type != of_type.elem and not accepts(of_type.elem, value.type):
            message = f"%{value.name} : {value.type} cannot be an element of {of_type}"
            raise node_error("IRC214", message, node, input=i)


def _tuple_construct(node: Node) -> None:
    has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, TupleType):
        raise node_error("IRC214", f"prim::TupleConstruct makes a tuple, not {of_type}", node, output=0)
    has(node, inputs=len(of_type.elems))
    for i, (value, elem) in enumerate(zip(node.inputs, of_type.elems, strict=True)):
        if not accepts(elem, value.type):
            raise node_error("IRC214", f"%{value.name} : {value.type} cannot be a {elem}", node, input=i)


def _dict_construct(node: Node) -> None:
    has(node, outputs=1)
    of_type = node.outputs[0].type
    if not isinstance(of_type, DictType):
        raise node_error("IRC214", f"prim::DictConstruct makes a dictionary, not {of_type}", node, output=0)
    require(node, len(node.inputs) % 2 == 0, "prim::DictConstruct takes keys and values by turns")
    for i, value in enumerate(node.inputs):
        if not accepts(of_type.inner[i % 2], value.type):
            what = ("key", "value")[i % 2]
            message = f"%{value.name} : {value.type} cannot be a {what} of {of_type}"
            raise node_error("IRC214", message, node, input=i)


def _list_unpack(node: Node) -> None:
    has(node, inputs=1)
    held = _held(node, ListType)
    if held is not None:
        gives(node, held * len(node.outputs))


def _tuple_unpack(node: Node) -> None:
    has(node, inputs=1)
    held = _held(node, TupleType)
    if held is not None:
        has(node, outputs=len(held))
        gives(node, held)


def _tuple_index(node: Node) -> None:
    has(node, inputs=2, outputs=1)
    index = node.inputs[1]
    if not accepts(types.INT, index.type):
        raise node_error("IRC214", f"%{index.name} must be int, not {index.type}", node, input=1)
    held, at = _held(node, TupleType), constant_value(index)
    if held is None:
        return
    if isinstance(at, int) and -len(held) <= at < len(held):
        gives(node, [held[at]])
        return
    output = node.outputs[0]
    if held and not any(accepts(output.type, elem) for elem in held):
        message = f"no element of {node.inputs[0].type} can become %{output.name} : {output.type}"
        raise node_error("IRC214", message, node, output=0)


def _tuple_slice(node: Node) -> None:
    has(node, inputs=1, outputs=1)
    bounds = [node.attributes.get(key) for key in ("beg", "end")]
    if not all(bound is None or isinstance(bound, int) for bound in bounds):
        raise node_error("IRC215", "beg and end must be whole numbers", node)
    held = _held(node, TupleType)
    if held is not None:
        gives(node, [TupleType(held[slice(*bounds)])])


def _constant_chunk(node: Node) -> None:
    has(node, inputs=1)
    if not accepts(types.TENSOR, node.inputs[0].type):
        raise node_error("IRC214", f"a tensor is wanted, not {node.inputs[0].type}", node, input=0)
    gives(node, [types.TENSOR] * len(node.outputs))


def _held(node: Node, container: type[Type]) -> tuple[Type, ...] | None:
    """The types of what the first input, a ``container``, holds; None if its type leaves that open (else IRC214)."""
    value = node.inputs[0]
    found = value.type.elem if isinstance(value.type, OptionalType) else value.type
    if isinstance(found, container):
        return found.inner
    is_other = isinstance(found, PrimType) and not found.name.startswith("Any")
    if is_other or isinstance(found, TensorType | ListType | TupleType | DictType):
        message = f"{node.kind} takes a {_NAMES[container]}, not %{value.name} : {value.type}"
        raise node_error("IRC214", message, node, input=0)
    return None


_NAMES: dict[type[Type], str] = {ListType: "list", TupleType: "tuple"}

FORMS: dict[str, Form] = {
    "prim::ListConstruct": _list_construct,
    "prim::TupleConstruct": _tuple_construct,
    "prim::DictConstruct": _dict_construct,
    "prim::ListUnpack": _list_unpack,
    "prim::TupleUnpack": _tuple_unpack,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ConstantChunk": _constant_chunk,
    "prim::CreateObject": counts(0, 1),
}
