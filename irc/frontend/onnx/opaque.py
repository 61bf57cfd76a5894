"""Nodes whose operator irc does not know, imported so that they can be written again as they are.

What they consist of is described in `irc.ops.opaque`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.frontend.onnx.attributes import GRAPH, content_field, substitute
from irc.frontend.onnx.checks import text
from irc.frontend.onnx.types import from_proto
from irc.ir.types import ANY, Type, without_shapes
from irc.ops.opaque import GRAPHS, NAMES, OMITTED, PROTOS, RESERVED, TYPES, graph_key

if TYPE_CHECKING:
    from onnx import AttributeProto, TypeProto

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawGraph, RawNode
    from irc.ir import Block, Value

_GRAPHS = 10  # AttributeProto.AttributeType

_EXACT = frozenset({1, 2, 3, 4, 6, 7, 8, 9})
"""Types of attributes whose values the IR holds exactly: numbers, strings, tensors and lists of them."""


def import_opaque(
    builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope
) -> Sequence[Value]:
    """Append a node that irc knows nothing of; its outputs, whose types are unknown unless the model declares them.

    Raises:
        Error: IRC127 if an attribute is malformed; IRC130 if a sparse tensor lies in another file; IRC134 if a nested
            graph's input has a default value.
    """
    inputs = [scope[name] if name else builder.absent() for name in raw.inputs]
    attributes, nested = _attributes(builder, raw, operator)
    omitted = [i for i, name in enumerate(raw.outputs) if not name]
    if omitted:
        attributes[OMITTED] = omitted
    node = builder.create(
        block, operator.kind, inputs, [ANY] * len(raw.outputs), raw.outputs, attributes, operator.version, raw.name
    )
    builder.opaque_depth += 1
    for graph in nested:
        types = [_type(declared, graph) or ANY for _, declared in builder.params(graph)]
        builder.body(graph, node.add_block(), scope, [without_shapes(type) for type in types])
    builder.opaque_depth -= 1
    return node.outputs


def _attributes(builder: GraphBuilder, raw: RawNode, operator: Operator) -> tuple[dict[str, Any], list[RawGraph]]:
    """The node's attributes, and its nested graphs that become blocks because they use values from outside."""
    found: dict[str, Any] = {}
    protos: list[str] = []
    graphs: list[str] = []
    types: list[str] = []
    interfaces: list[str] = []
    blocks: list[RawGraph] = []
    names: set[str] = set()
    reader = builder.importer.attributes
    stem = next(filter(None, raw.outputs), operator.name)
    for proto in substitute(raw.attributes, builder.environment, raw):
        name = text(proto.name, raw)
        if name in names:
            raise Error("IRC127", f"attribute {name!r} is given twice", str(raw))
        names.add(name)
        field = "g" if proto.type == GRAPH or proto.HasField("g") else "graphs"
        if field == "g" or (proto.type == _GRAPHS and proto.graphs):
            for number in range(1 if field == "g" else len(proto.graphs)):
                key = graph_key(field, name, number)
                graph = raw.graphs[key]
                graphs.append(f"{field}:{name}")
                types += _declared(builder, graph, raw)
                if graph.captures:
                    blocks.append(graph)
                    interfaces += [graph.name, *(name for name, _ in (*builder.params(graph), *graph.outputs))]
                else:
                    found[key] = builder.importer.closed_graph(
                        builder, graph, graph.name, raw, builder.opaque_depth + 1
                    )
        elif _is_exact(proto) and not name.startswith(RESERVED):
            found[name] = reader.value(proto, proto.type, f"{stem}.{name}", raw)
        else:
            _check_data(proto, raw)
            protos.append(b64encode(proto.SerializeToString(deterministic=True)).decode())
    if len(found) != len(names) - len(protos) + len(graphs) - len(blocks) - len(set(graphs)):
        raise Error("IRC127", "two attributes have names that irc cannot tell apart", str(raw))
    found |= {
        key: value for key, value in ((GRAPHS, graphs), (TYPES, types), (NAMES, interfaces), (PROTOS, protos)) if value
    }
    return found, blocks


def _declared(builder: GraphBuilder, graph: RawGraph, raw: RawNode) -> list[str]:
    """The declared types of the inputs and outputs of a nested graph, as texts."""
    params = builder.params(graph)
    for name, _ in params:
        if name in graph.initializers or name in graph.sparse:
            raise Error("IRC134", f"{graph.where} must not have a default value for its input {name!r}", str(raw))
    return [str(_type(declared, graph) or "") for _, declared in (*params, *graph.outputs)]


def _type(declared: TypeProto | None, graph: RawGraph) -> Type | None:
    return None if declared is None or declared.WhichOneof("value") is None else from_proto(declared, graph.where)


def _is_exact(proto: AttributeProto) -> bool:
    """Whether the IR's form of an attribute says all that ``proto`` does."""
    contents = {field.name for field, _ in proto.ListFields()} - {"name", "type", "ref_attr_name"}
    if proto.type not in _EXACT or contents != {content_field(proto.type)}:
        return False
    return all(map(_is_text, (proto.s, *proto.strings)))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_data(proto: AttributeProto, raw: RawNode) -> None:
    """Raise IRC130 if a tensor of ``proto``, whose message is kept, has its data in another file."""
    sparse = (proto.sparse_tensor, *proto.sparse_tensors)
    tensors: Iterable[Any] = (t for s in sparse for t in (s.values, s.indices))
    if any(tensor.data_location for tensor in (proto.t, *proto.tensors, *tensors)):
        raise Error("IRC130", f"the data of attribute {proto.name!r} must be in the model's own file", str(raw))
