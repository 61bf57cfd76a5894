"""Operators that are imported as their function bodies, so that passes can optimise inside them.

The specification defines these operators by others, which irc has kernels for
and can optimise and fuse. For some of them the body depends on the node: its types,
attributes, inputs and outputs. Then onnx makes the body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irc.errors import Error, comes_from_outside
from irc.frontend.onnx.attention import bind_own, cast_values, use_operator
from irc.frontend.onnx.attributes import substitute
from irc.frontend.onnx.blocks import output_names
from irc.frontend.onnx.opsets import read_imports
from irc.frontend.onnx.resolve import resolve
from irc.frontend.onnx.scan import RawFunction, RawGraph, scan_function
from irc.frontend.onnx.types import to_proto
from irc.ir.types import NONE, DType, TensorType, without_shapes
from irc.ops.onnx_defs import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import FunctionProto

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value
    from irc.ir.types import Type

_ATTENTION, _CROP_OR_PAD = "onnx::Attention", "onnx::CenterCropPad"


def expand(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """A call of the node's function body; the node itself if onnx makes no body, or none while types are unknown.

    Raises:
        Error: IRC131 if a type is unknown that the node, which has graphs, needs; IRC134 if its graphs do not fit.
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
        for value in (v for v in inputs if _is_unknown(v.type)):
            raise Error("IRC131", f"the element type of its input %{value.name} is not known", str(raw))
        raise Error("IRC134", "onnx makes no function body for these attributes and types", str(raw))
    outputs = [name for name in output_names(raw, operator) if name]
    attributes = [a for a in raw.attributes if a.name not in raw.graphs]
    call = replace(raw, inputs=raw.inputs[: len(inputs)], outputs=outputs, attributes=attributes, graphs={})
    types = [without_shapes(v.type) for v in inputs]
    made = dict(zip(outputs, builder.importer.functions.call(builder, call, function, block, scope, types)))
    return [made[name] if name else builder.absent() for name in raw.outputs]


def _is_unknown(type: Type) -> bool:
    return type is not NONE and type.dtype is None


def _body(builder: GraphBuilder, raw: RawNode, operator: Operator, inputs: Sequence[Value]) -> RawFunction | None:
    """The node's function body, with only the outputs that the node has; None if there is no body."""
    assert operator.version is not None, "operators of the onnx package have versions"
    domain = "" if operator.is_standard else raw.domain
    schema = find(operator.kind, operator.version)
    of_node = schema.has_context_dependent_function
    versions = schema.context_dependent_function_opset_versions if of_node else schema.function_opset_versions
    version = max((v for v in versions if v <= builder.imports.get(domain, v)), default=min(versions))
    types = [without_shapes(value.type) for value in inputs]
    taken = _taken(operator.kind, types)
    proto = _of_node(builder, raw, schema, version, taken) if of_node else _of_operator(schema, version)
    if not proto.node:
        return None
    _cast_inputs(proto, types, taken)
    wanted = [name for name, own in zip(proto.output, raw.outputs) if own]
    if operator.kind == _ATTENTION:
        use_operator(proto, types, builder.attributes(raw, operator, plain=True), wanted)
        if types[2] != types[0]:
            cast_values(proto)
    del proto.output[:]
    proto.output.extend(wanted)
    attributes = {name: a.default_value if a.default_value.name else None for name, a in schema.attributes.items()}
    function = RawFunction(proto, (domain, raw.op_type, ""), RawGraph(f"the body of {raw}"), {}, attributes)
    scan_function(proto, function.graph)
    function.imports = {**builder.imports, **read_imports(proto.opset_import, function.graph.where)}
    if operator.kind == _ATTENTION:  # others may have the node's graphs, in which the model's operators are meant
        bind_own(function.graph)
    resolve(function.graph, function.imports, {}, builder.importer.refuse_unknown)
    return function


def _taken(kind: str, types: Sequence[Type]) -> list[Type]:
    """The input types that the body is right for: the operator takes more types than onnx's body does.

    Attention's body masks by -inf in the type of the mask it is given, and integer types have no -inf;
    CenterCropPad's computes with the target sizes and with int64.
    """
    taken = list(types)
    if kind == _ATTENTION and len(types) > 3 and _is_integer(types[3]):
        taken[3] = types[0]
    elif kind == _CROP_OR_PAD and len(types) > 1 and _is_integer(types[1]):
        taken[1] = TensorType(DType.INT64)
    return taken


def _is_integer(type: Type) -> bool:
    return type.dtype is not None and type.dtype.is_integer


def _cast_inputs(proto: FunctionProto, given: Sequence[Type], taken: Sequence[Type]) -> None:
    """Make ``proto``, whose body takes inputs of the types ``taken``, accept the types ``given`` by casts."""
    from onnx import NodeProto, helper

    for i, (have, want) in enumerate(zip(given, taken, strict=True)):
        if have != want and want.dtype is not None:
            name = proto.input[i]
            proto.input[i] = f"{name}_given"
            cast: NodeProto = helper.make_node("Cast", [proto.input[i]], [name], to=want.dtype.onnx)
            proto.node.insert(0, cast)


def _of_operator(schema: Any, version: int) -> FunctionProto:
    """The body that all nodes share."""
    from onnx import FunctionProto

    return FunctionProto.FromString(schema.get_function_with_opset_version(version))


def _of_node(builder: GraphBuilder, raw: RawNode, schema: Any, version: int, types: Sequence[Type]) -> FunctionProto:
    """The body for this node: empty where onnx makes none."""
    from onnx import FunctionProto, NodeProto

    if any(map(_is_unknown, types)):
        return FunctionProto()
    node = NodeProto(op_type=raw.op_type, domain=raw.proto.domain)
    node.input.extend("" if type is NONE else f"x{i}" for i, type in enumerate(types))
    node.output.extend(raw.outputs)
    node.attribute.extend(substitute(raw.attributes, builder.environment, raw))
    protos = [b"" if type is NONE else to_proto(type).SerializeToString() for type in types]
    try:
        made = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), protos)
    except Exception as error:  # whatever onnx's C++ raises for what it cannot make a body of
        if comes_from_outside(error):
            raise
        reason = str(error).partition("\n")[0]
        raise Error("IRC134", f"onnx cannot make its function body: {reason}", str(raw)) from None
    return FunctionProto.FromString(made)
