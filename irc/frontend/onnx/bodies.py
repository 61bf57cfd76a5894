"""Operators that import as what their function body says, with the graphs that they are given in it.

The body depends on the types of the inputs, so onnx makes it for each node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.frontend.onnx.attributes import substitute
from irc.frontend.onnx.opsets import read_imports
from irc.frontend.onnx.resolve import resolve
from irc.frontend.onnx.scan import RawFunction, RawGraph, scan_function
from irc.frontend.onnx.types import to_proto
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value


def expand(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body. Raises IRC131 if types are not known, IRC134 if its graphs do not fit."""
    builder.attributes(raw, operator)
    inputs = builder.inputs(raw, operator, scope)
    for name, graph in raw.graphs.items():
        for capture in graph.captures:
            raise Error("IRC134", f"{graph.where} must not use {capture!r} from outside", str(raw))
        if (len(graph.inputs), len(graph.outputs)) != (1, 1):
            raise Error("IRC134", f"{name} must have one input and one output", str(raw))
    for value in inputs:
        if not isinstance(value.type, TensorType) or value.type.dtype is None:
            raise Error("IRC131", f"the element type of its input %{value.name} is not known", str(raw))
    function = _body(builder, raw, operator, inputs)
    call = replace(raw, attributes=[], graphs={}, target=function)
    return builder.importer.functions.call(builder, call, function, block, scope)


def _body(builder: GraphBuilder, raw: RawNode, operator: Operator, inputs: Sequence[Value]) -> RawFunction:
    from onnx import FunctionProto, NodeProto, defs

    domain = "" if operator.is_standard else raw.domain
    assert operator.version is not None, "operators of the onnx package have versions"
    schema: Any = defs.get_schema(raw.op_type, operator.version, domain)
    node = NodeProto()
    node.CopyFrom(raw.proto)
    del node.attribute[:]
    node.attribute.extend(substitute(raw.attributes, builder.environment, raw))
    types = [to_proto(value.type).SerializeToString() for value in inputs]
    newest = max(v for v in schema.context_dependent_function_opset_versions if v <= builder.imports.get(domain, v))
    try:
        made = schema.get_context_dependent_function_with_opset_version(newest, node.SerializeToString(), types)
    except Exception as error:  # whatever onnx's C++ raises for what it cannot make a body of
        reason = str(error).partition("\n")[0]
        raise Error("IRC134", f"onnx cannot make its function body: {reason}", str(raw)) from None
    proto = FunctionProto.FromString(made)
    function = RawFunction(proto, (domain, raw.op_type, ""), RawGraph(f"the body of {raw}"), {}, {})
    scan_function(proto, function.graph)
    function.imports = {**builder.imports, **read_imports(proto.opset_import, function.graph.where)}
    resolve(function.graph, function.imports, {})
    return function
