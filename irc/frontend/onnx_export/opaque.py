"""Opaque nodes to ``NodeProto``: as they were in the model that they come from."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any, cast

from irc.errors import Error
from irc.frontend.onnx_export.attributes import write_attribute
from irc.ir import Graph
from irc.ir.text.type_parser import parse_type
from irc.ir.types import NONE, Type
from irc.ops.opaque import GRAPHS, NAMES, OMITTED, PROTOS, TYPES, nested_graphs, opaque_operator

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from irc.frontend.onnx_export.graphs import GraphWriter
    from irc.ir import Node


def write_opaque(node: Node, proto: NodeProto, writer: GraphWriter) -> None:
    """Make ``proto``, which is empty, the opaque ``node``. Raises IRC350 if irc's own attributes make no sense."""
    proto.domain, proto.op_type = opaque_operator(node.kind)
    proto.name = writer.names.node(node.name)
    proto.input.extend("" if value.type == NONE else writer.names(value) for value in node.inputs)
    omitted = node.attributes.get(OMITTED, ())
    proto.output.extend("" if i in omitted else writer.names(value) for i, value in enumerate(node.outputs))
    where = node.name or next((f"%{value.name}" for value in node.outputs), node.kind)
    for key, value in node.attributes.items():
        if not isinstance(value, Graph) and key not in (GRAPHS, TYPES, NAMES, PROTOS, OMITTED):
            write_attribute(proto.attribute.add(), key, value, None, where)
    _write_graphs(node, proto, writer, where)
    for text in _texts(node, PROTOS, where):
        attribute = proto.attribute.add()
        try:
            attribute.ParseFromString(b64decode(text, validate=True))
        except (Base64Error, ValueError):
            raise Error("IRC350", f"attribute {PROTOS} holds no message of ONNX", where) from None
        except Exception as error:
            from google.protobuf.message import DecodeError

            if not isinstance(error, DecodeError):
                raise
            raise Error("IRC350", f"attribute {PROTOS} holds no message of ONNX", where) from None


def _write_graphs(node: Node, proto: NodeProto, writer: GraphWriter, where: str) -> None:
    nested = nested_graphs(node)
    if nested is None:
        raise Error("IRC350", f"attribute {GRAPHS} does not fit its graphs and blocks", where)
    types, names = iter(_texts(node, TYPES, where)), iter(_texts(node, NAMES, where))
    attributes: dict[str, Any] = {}
    for field, name, _, body in nested:
        attribute = attributes.get(name)
        if attribute is None:
            attribute = attributes[name] = proto.attribute.add()
            attribute.name, attribute.type = name, attribute.GRAPH if field == "g" else attribute.GRAPHS
        graph: GraphProto = attribute.g if field == "g" else attribute.graphs.add()
        graph.name = body.name if isinstance(body, Graph) else next(names, name)
        block = body.block if isinstance(body, Graph) else body
        declared = [_parsed(next(types, ""), where) for _ in (*block.params, *block.returns)]
        called = [] if isinstance(body, Graph) else [next(names, "") for _ in declared]
        writer.write_nested(body, graph, declared, called)


def _texts(node: Node, key: str, where: str) -> list[str]:
    given: Any = node.attributes.get(key, [])
    if not isinstance(given, list) or not all(isinstance(text, str) for text in cast("list[Any]", given)):
        raise Error("IRC350", f"attribute {key} is no list of texts", where)
    return cast("list[str]", given)


def _parsed(text: str, where: str) -> Type | None:
    try:
        return parse_type(text) if text else None
    except Error as error:
        raise Error("IRC350", f"attribute {TYPES} has {text!r}, which is no type: {error.message}", where) from None
