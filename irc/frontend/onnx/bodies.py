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

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value

EXPANDED = (
    "ai.onnx.preview::FlexAttention",
    "onnx::AffineGrid",
    "onnx::Attention",
    "onnx::BlackmanWindow",
    "onnx::CausalConvWithState",
    "onnx::CenterCropPad",
    "onnx::HammingWindow",
    "onnx::HannWindow",
    "onnx::LinearAttention",
    "onnx::NegativeLogLikelihoodLoss",
    "onnx::RotaryEmbedding",
    "onnx::SoftmaxCrossEntropyLoss",
)
"""Operators with function bodies that irc has no kernels for."""


def expand(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body, or the node itself where types that decide on the body are not known.

    Raises:
        Error: IRC131 if types must be known, as the node has graphs; IRC134 if those do not fit, or if there is no
            body for the node.
    """
    builder.attributes(raw, operator)
    inputs = builder.inputs(raw, operator, scope)
    for name, graph in raw.graphs.items():
        for capture in graph.captures:
            raise Error("IRC134", f"{graph.where} must not use {capture!r} from outside", str(raw))
        if (len(graph.inputs), len(graph.outputs)) != (1, 1):
            raise Error("IRC134", f"{name} must have one input and one output", str(raw))
    schema = _schema(raw, operator)
    if not schema.has_function:
        for value in inputs:
            if value.type is NONE or (isinstance(value.type, TensorType) and value.type.dtype is not None):
                continue
            if not raw.graphs:
                return builder.operator(raw, operator, block, scope)
            raise Error("IRC131", f"the element type of its input %{value.name} is not known", str(raw))
    outputs = [name for name in output_names(raw, operator) if name]
    function = _body(builder, raw, operator, schema, inputs)
    is_template = schema.has_function
    attributes = raw.attributes if is_template else []
    call = replace(raw, inputs=raw.inputs[: len(inputs)], outputs=outputs, attributes=attributes, graphs={})
    types = [generalize(v.type) for v in inputs]
    made = dict(zip(outputs, builder.importer.functions.call(builder, call, function, block, scope, types)))
    return [made[name] if name else builder.absent() for name in raw.outputs]


def _schema(raw: RawNode, operator: Operator) -> Any:
    from onnx import defs

    assert operator.version is not None, "operators of the onnx package have versions"
    return defs.get_schema(raw.op_type, operator.version, "" if operator.is_standard else raw.domain)


def _body(
    builder: GraphBuilder, raw: RawNode, operator: Operator, schema: Any, inputs: Sequence[Value]
) -> RawFunction:
    """The node's function body, with those of its outputs that the node has."""
    from onnx import FunctionProto

    domain = "" if operator.is_standard else raw.domain
    imported = builder.imports.get(domain, operator.version)
    made = _template(schema, imported) if schema.has_function else _made(builder, raw, schema, imported, inputs)
    proto = FunctionProto.FromString(made)
    wanted = [name for name, own in zip(proto.output, raw.outputs) if own]
    del proto.output[:]
    proto.output.extend(wanted)
    attributes = {name: a.default_value if a.default_value.name else None for name, a in schema.attributes.items()}
    function = RawFunction(proto, (domain, raw.op_type, ""), RawGraph(f"the body of {raw}"), {}, attributes)
    scan_function(proto, function.graph)
    function.imports = {**builder.imports, **read_imports(proto.opset_import, function.graph.where)}
    resolve(function.graph, function.imports, {})
    return function


def _template(schema: Any, imported: int) -> bytes:
    """The body that all nodes share."""
    return schema.get_function_with_opset_version(_newest(schema.function_opset_versions, imported))


def _made(builder: GraphBuilder, raw: RawNode, schema: Any, imported: int, inputs: Sequence[Value]) -> bytes:
    """The body for this node."""
    from onnx import NodeProto

    node = NodeProto(op_type=raw.op_type, domain=raw.proto.domain)
    node.input.extend("" if value.type is NONE else f"x{i}" for i, value in enumerate(inputs))
    node.output.extend(raw.outputs)
    node.attribute.extend(substitute(raw.attributes, builder.environment, raw))
    types = [b"" if v.type is NONE else to_proto(generalize(v.type)).SerializeToString() for v in inputs]
    newest = _newest(schema.context_dependent_function_opset_versions, imported)
    try:
        return schema.get_context_dependent_function_with_opset_version(newest, node.SerializeToString(), types)
    except Exception as error:  # whatever onnx's C++ raises for what it cannot make a body of
        reason = str(error).partition("\n")[0]
        raise Error("IRC134", f"onnx cannot make its function body: {reason}", str(raw)) from None


def _newest(versions: Sequence[int], imported: int) -> int:
    """The newest opset whose operators a body is written in, of those that the model imports."""
    return max((v for v in versions if v <= imported), default=min(versions))
