"""Operators that import as what their function body says, so that passes see into them.

The specification defines these operators by others, which irc has kernels for
and can optimise and fuse. Of some the body depends on the node: its types,
attributes, and which inputs and outputs it has. onnx makes it then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.frontend.onnx.attributes import substitute
from irc.frontend.onnx.blocks import output_names
from irc.frontend.onnx.opsets import read_imports
from irc.frontend.onnx.resolve import resolve
from irc.frontend.onnx.scan import RawFunction, RawGraph, scan_function
from irc.frontend.onnx.types import generalize, to_proto
from irc.ir.types import NONE, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import FunctionProto

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value

EXPANDED = (
    "ai.onnx.preview::FlexAttention",
    "onnx::Attention",
    "onnx::BlackmanWindow",
    "onnx::CenterCropPad",
    "onnx::HammingWindow",
    "onnx::HannWindow",
    "onnx::LinearAttention",
    "onnx::NegativeLogLikelihoodLoss",
    "onnx::SoftmaxCrossEntropyLoss",
)
"""Operators with function bodies that irc has no kernels for."""


def expand(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body; the node itself where onnx makes none, or not for types not yet known.

    Raises:
        Error: IRC131 if types must be known, as the node has graphs; IRC134 if those do not fit.
    """
    builder.attributes(raw, operator)
    inputs = builder.inputs(raw, operator, scope)
    for name, graph in raw.graphs.items():
        for capture in graph.captures:
            raise Error("IRC134", f"{graph.where} must not use {capture!r} from outside", str(raw))
        if (len(graph.inputs), len(graph.outputs)) != (1, 1):
            raise Error("IRC134", f"{name} must have one input and one output", str(raw))
    function = _body(builder, raw, operator, inputs)
    if function is None:
        if not raw.graphs:
            return builder.operator(raw, operator, block, scope)
        for value in filter(_is_unknown, inputs):
            raise Error("IRC131", f"the element type of its input %{value.name} is not known", str(raw))
        raise Error("IRC134", "onnx makes no function body for these attributes and types", str(raw))
    outputs = [name for name in output_names(raw, operator) if name]
    attributes = [a for a in raw.attributes if a.name not in raw.graphs]
    call = replace(raw, inputs=raw.inputs[: len(inputs)], outputs=outputs, attributes=attributes, graphs={})
    types = [generalize(v.type) for v in inputs]
    made = dict(zip(outputs, builder.importer.functions.call(builder, call, function, block, scope, types)))
    return [made[name] if name else builder.absent() for name in raw.outputs]


def _is_unknown(value: Value) -> bool:
    return value.type is not NONE and not (isinstance(value.type, TensorType) and value.type.dtype is not None)


def _body(builder: GraphBuilder, raw: RawNode, operator: Operator, inputs: Sequence[Value]) -> RawFunction | None:
    """The node's function body, with those of its outputs that the node has; None if there is none."""
    from onnx import defs

    assert operator.version is not None, "operators of the onnx package have versions"
    domain = "" if operator.is_standard else raw.domain
    schema: Any = defs.get_schema(raw.op_type, operator.version, domain)
    of_node = schema.has_context_dependent_function
    versions = schema.context_dependent_function_opset_versions if of_node else schema.function_opset_versions
    version = max((v for v in versions if v <= builder.imports.get(domain, v)), default=min(versions))
    proto = _of_node(builder, raw, schema, version, inputs) if of_node else _of_operator(schema, version)
    if not proto.node:
        return None
    wanted = [name for name, own in zip(proto.output, raw.outputs) if own]
    del proto.output[:]
    proto.output.extend(wanted)
    attributes = {name: a.default_value if a.default_value.name else None for name, a in schema.attributes.items()}
    function = RawFunction(proto, (domain, raw.op_type, ""), RawGraph(f"the body of {raw}"), {}, attributes)
    scan_function(proto, function.graph)
    function.imports = {**builder.imports, **read_imports(proto.opset_import, function.graph.where)}
    resolve(function.graph, function.imports, {})
    return function


def _of_operator(schema: Any, version: int) -> FunctionProto:
    """The body that all nodes share."""
    from onnx import FunctionProto

    return FunctionProto.FromString(schema.get_function_with_opset_version(version))


def _of_node(builder: GraphBuilder, raw: RawNode, schema: Any, version: int, inputs: Sequence[Value]) -> FunctionProto:
    """The body for this node: empty where onnx makes none."""
    from onnx import FunctionProto, NodeProto

    if any(map(_is_unknown, inputs)):
        return FunctionProto()
    node = NodeProto(op_type=raw.op_type, domain=raw.proto.domain)
    node.input.extend("" if value.type is NONE else f"x{i}" for i, value in enumerate(inputs))
    node.output.extend(raw.outputs)
    node.attribute.extend(substitute(raw.attributes, builder.environment, raw))
    types = [b"" if v.type is NONE else to_proto(generalize(v.type)).SerializeToString() for v in inputs]
    try:
        made = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    except Exception as error:  # whatever onnx's C++ raises for what it cannot make a body of
        reason = str(error).partition("\n")[0]
        raise Error("IRC134", f"onnx cannot make its function body: {reason}", str(raw)) from None
    return FunctionProto.FromString(made)
