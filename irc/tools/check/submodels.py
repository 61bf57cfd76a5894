"""Models made of single nodes of another one, which read the values that they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.types import DType
from irc.runtime.values import is_array, is_sequence
from irc.tools.check.peer_faults import nodes_in

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

OWN = ", as it is made"
"""Ends the names of results, since readers of a value are given another one."""


def reads(node: NodeProto) -> list[str]:
    """The names of all values that ``node`` reads, those that its branches and loop bodies capture included."""
    found = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found |= dict.fromkeys(_captured(graph))
    return list(found)


def _captured(graph: GraphProto) -> Iterator[str]:
    made = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    made |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in reads(node) if name not in made)
        made.update(node.output)
    yield from (v.name for v in graph.output if v.name not in made)


def nodes_apart(
    proto: ModelProto,
    nodes: Sequence[NodeProto],
    values: Mapping[str, Any],
    constants: bool = True,
    shapes: bool = False,
) -> ModelProto | None:
    """A model of ``nodes`` of ``proto``, each of which reads ``values``; its outputs are called ``name + OWN``.

    Args:
        proto: the model that the nodes are from.
        nodes: some nodes of its graph.
        values: what they read, by name.
        constants: whether constants of ``proto`` are constants there, too; else they are inputs.
        shapes: whether inputs state their shapes. ONNX Runtime refuses branches that do not fit them, also if these are
            not taken.

    Returns None if one of the values has a type that cannot be told from it, such as an empty list.
    """
    import onnx

    graph = onnx.GraphProto(name="nodes")
    kept = {tensor.name: tensor for tensor in proto.graph.initializer} if constants else {}
    for name in dict.fromkeys(name for node in nodes for name in reads(node)):
        if name in kept:
            graph.initializer.append(kept[name])
            continue
        type = type_of(values[name]) if name in values else None
        if type is None:
            return None
        if not shapes and type.HasField("tensor_type"):
            type.tensor_type.ClearField("shape")
        graph.input.append(onnx.ValueInfoProto(name=name, type=type))
    for node in nodes:
        graph.node.append(node)
        graph.node[-1].output[:] = [name and name + OWN for name in node.output]
        graph.output.extend(onnx.ValueInfoProto(name=name + OWN) for name in node.output if name)
    return _model(proto, graph, proto.opset_import, proto.functions)


class Inner(NamedTuple):
    """What a node runs, as a model of its own.

    Attributes:
        model: the model.
        feeds: its inputs.
        is_whole: whether its outputs are the node's; not of loops, of which it is the first iteration.
    """

    model: ModelProto
    feeds: dict[str, Any]
    is_whole: bool


def inner_model(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner | None:
    """What ``node`` runs on ``values``: a function's body, the branch that an If takes, a loop's first iteration.

    None for other operators, and where the type of a value cannot be told.
    """
    found = (f for f in proto.functions if (f.name, f.domain) == (node.op_type, node.domain))
    function: FunctionProto | None = next(found, None)
    try:
        if function is not None:
            return _body(proto, node, function, values)
        run = _RUNS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        return None if run is None else run(proto, node, values)
    except KeyError:  # a value is not there, or nobody knows its type
        return None


def _body(proto: ModelProto, call: NodeProto, function: FunctionProto, values: Mapping[str, Any]) -> Inner:
    import onnx

    graph = onnx.GraphProto(name=function.name)
    feeds = {own: values[passed] for own, passed in zip(function.input, call.input) if passed}
    graph.input.extend(_infos(feeds))
    attributes = {a.name: a for a in function.attribute_proto} | {a.name: a for a in call.attribute}
    graph.node.extend(_bound(function.node, attributes))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    return Inner(_model(proto, graph, function.opset_import, proto.functions), feeds, True)


def _branch(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner:
    taken = "then_branch" if bool(np.asarray(values[node.input[0]]).reshape(-1)[0]) else "else_branch"
    return _inner(proto, node, taken, {}, values, True)


def _iteration(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner:
    first = [np.array(0), np.array(True), *(values[name] for name in node.input[2:])]
    names = (info.name for info in _attribute(node, "body").g.input)
    return _inner(proto, node, "body", dict(zip(names, first)), values, False)


def _slice(proto: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> Inner | None:
    if any(a.name not in ("body", "num_scan_inputs") for a in node.attribute):
        return None  # along other axes, or backwards
    carried = len(node.input) - _attribute(node, "num_scan_inputs").i
    passed = [values[name] if i < carried else values[name][0] for i, name in enumerate(node.input)]
    names = (info.name for info in _attribute(node, "body").g.input)
    return _inner(proto, node, "body", dict(zip(names, passed)), values, False)


_RUNS = {"If": _branch, "Loop": _iteration, "Scan": _slice}


def _inner(
    proto: ModelProto,
    node: NodeProto,
    name: str,
    passed: Mapping[str, Any],
    values: Mapping[str, Any],
    is_whole: bool,
) -> Inner:
    """The graph in the attribute ``name``, given ``passed`` as its inputs and ``values`` from around it."""
    import onnx

    graph = onnx.GraphProto()
    graph.CopyFrom(_attribute(node, name).g)
    captured = list(_captured(graph))
    del graph.input[:]
    kept = {tensor.name: tensor for tensor in proto.graph.initializer}
    graph.initializer.extend(kept[name] for name in dict.fromkeys(captured) if name in kept)
    feeds = {**{name: values[name] for name in captured if name not in kept}, **passed}
    graph.input.extend(_infos(feeds))
    return Inner(_model(proto, graph, proto.opset_import, proto.functions), feeds, is_whole)


def _attribute(node: NodeProto, name: str) -> AttributeProto:
    return {attribute.name: attribute for attribute in node.attribute}[name]


def _infos(feeds: Mapping[str, Any]) -> Iterator[ValueInfoProto]:
    import onnx

    for name, value in feeds.items():
        type = type_of(value)
        if type is None:
            raise KeyError(name)
        yield onnx.ValueInfoProto(name=name, type=type)


def _bound(nodes: Iterable[NodeProto], attributes: Mapping[str, AttributeProto]) -> Iterator[NodeProto]:
    """Copies of ``nodes`` of a function, with the attributes of a call."""
    import onnx

    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.attribute[:]
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in attributes:
                    copy.attribute.append(attributes[attribute.ref_attr_name])
                    copy.attribute[-1].name = attribute.name
                continue
            copy.attribute.append(attribute)
            for graph in (copy.attribute[-1].g, *copy.attribute[-1].graphs):
                inner = list(_bound(graph.node, attributes))
                if inner:
                    del graph.node[:]
                    graph.node.extend(inner)
        yield copy


def _model(proto: ModelProto, graph: GraphProto, opsets: Any, functions: Any) -> ModelProto:
    import onnx

    return onnx.ModelProto(
        ir_version=max(proto.ir_version, 8),
        graph=graph,
        opset_import=opsets,
        functions=_called(graph, functions),
        producer_name=proto.producer_name,
    )


def _called(graph: GraphProto, functions: Iterable[FunctionProto]) -> list[FunctionProto]:
    """Those of ``functions`` that ``graph`` calls, and what these call."""
    by_name = {(f.domain, f.name): f for f in functions}
    found: dict[tuple[str, str], FunctionProto] = {}
    pending = [graph.node]
    for nodes in pending:  # grows while it is walked
        for node in nodes_in(nodes):
            key = (node.domain, node.op_type)
            if key in by_name and key not in found:
                found[key] = by_name[key]
                pending.append(by_name[key].node)
    return list(found.values())


def type_of(value: Any) -> TypeProto | None:
    """The ONNX type of ``value``; None if it cannot be told."""
    import onnx

    if is_array(value):
        return onnx.helper.make_tensor_type_proto(DType.from_numpy(value.dtype).onnx, value.shape)
    if not is_sequence(value) or not value:
        return None
    elements = [type_of(item) for item in value]
    first = elements[0]
    if first is None or not first.HasField("tensor_type"):
        return None
    first.tensor_type.ClearField("shape")
    return onnx.helper.make_sequence_type_proto(first)
