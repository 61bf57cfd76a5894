"""Parts of ONNX files, cut node by node: names, types, doc strings and metadata stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from irc.frontend.onnx.files import Source
from irc.frontend.onnx.tensors import TensorReader
from irc.frontend.onnx.types import to_proto
from irc.frontend.onnx_export.model import nodes_in
from irc.frontend.onnx_export.tensors import Weights
from irc.ir.types import Type

_INPUTS_OF_WEIGHTS = 4
"""Before this IR version, each initializer is an input, too."""


def part_of(source: Source, inputs: Mapping[str, Type], outputs: Mapping[str, Type], weights: Weights) -> ModelProto:
    """The part of a model that computes ``outputs`` from ``inputs``, values of its main graph, by name.

    Args:
        source: the model, which irc can import.
        inputs: what the part is given, with types for those that the model declares none of.
        outputs: what it returns, likewise.
        weights: takes the weights that do not lie in the message.
    """
    whole, part = source.model, ModelProto()
    part.CopyFrom(_without(whole))
    graph = whole.graph
    nodes, needed = _needed(graph, inputs, outputs)
    kept = needed.union(inputs, outputs)
    part.graph.node.extend(nodes)
    # An input that is an initializer, too, has that as its default value.
    defaults = inputs.keys() & {value.name for value in graph.input}
    _add_weights(source, part, needed - inputs.keys() | defaults, weights)
    declared = {value.name: value for values in (graph.value_info, graph.input, graph.output) for value in values}
    for names, into in ((inputs, part.graph.input), (outputs, part.graph.output)):
        into.extend(_described(name, type, declared) for name, type in names.items())
    if whole.ir_version < _INPUTS_OF_WEIGHTS:
        held = {tensor.name for tensor in part.graph.initializer}
        part.graph.input.extend(v for v in graph.input if v.name in held and v.name not in inputs)
    made = {name for node in nodes for name in node.output} - inputs.keys() - outputs.keys()
    part.graph.value_info.extend(value for value in graph.value_info if value.name in made)
    part.graph.quantization_annotation.extend(a for a in graph.quantization_annotation if a.tensor_name in kept)
    part.functions.extend(called(nodes, whole.functions))
    return part


def _without(model: ModelProto) -> ModelProto:
    """``model`` without what a part has less of."""
    about = ModelProto()
    for field, value in model.ListFields():
        if field.name not in ("graph", "functions", "training_info"):
            _copy(about, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name in ("name", "doc_string", "metadata_props"):
            _copy(about.graph, field.name, value)
    return about


def _copy(proto: Any, name: str, value: Any) -> None:
    if isinstance(value, str | int):
        setattr(proto, name, value)
    else:
        getattr(proto, name).extend(value)


def _needed(graph: GraphProto, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[list[NodeProto], set[str]]:
    """The nodes that compute ``outputs`` from ``inputs``, in order, and the names of all that they read."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    stop, found = set(inputs), set[int]()
    pending, needed = list(outputs), set[str]()
    while pending:
        name = pending.pop()
        if name in needed:
            continue
        needed.add(name)
        maker = makers.get(name)
        if name not in stop and maker is not None and maker not in found:
            found.add(maker)
            pending.extend(reads(graph.node[maker]))
    return [graph.node[i] for i in sorted(found)], needed


def reads(node: NodeProto) -> list[str]:
    """The names of all values that ``node`` reads, including captures of its branches and bodies."""
    found = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found |= dict.fromkeys(captured(graph))
    return list(found)


def captured(graph: GraphProto) -> Iterator[str]:
    """The names that ``graph`` reads from around it."""
    made = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    made |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        yield from (name for name in reads(node) if name not in made)
        made.update(node.output)
    yield from (v.name for v in graph.output if v.name not in made)


def _add_weights(source: Source, part: ModelProto, names: set[str], weights: Weights) -> None:
    """Give ``part`` the initializers of these names: those that lie in files through ``weights``."""
    reader = TensorReader(source.folder)
    for number, tensor in enumerate(source.model.graph.initializer):
        if tensor.name not in names:
            continue
        proto = part.graph.initializer.add()
        region = source.regions.get(number)
        if region is None and tensor.data_location != TensorProto.EXTERNAL:
            proto.CopyFrom(tensor)
            continue
        weights.add(reader.dense(tensor, f"initializer {tensor.name!r}", region), proto, tensor.name)
        if tensor.doc_string:
            proto.doc_string = tensor.doc_string
        proto.metadata_props.extend(tensor.metadata_props)
    part.graph.sparse_initializer.extend(s for s in source.model.graph.sparse_initializer if s.values.name in names)


def _described(name: str, type: Type, declared: Mapping[str, ValueInfoProto]) -> ValueInfoProto:
    """A value as the model declares it, if it does, else as a value of ``type``."""
    found = declared.get(name)
    if found is not None and found.HasField("type"):
        return found
    return ValueInfoProto(name=name, type=to_proto(type))


def called(nodes: Iterable[NodeProto], functions: Iterable[FunctionProto]) -> list[FunctionProto]:
    """Those of ``functions`` that ``nodes`` call, and those that these call."""
    known = {(f.domain, f.name, f.overload): f for f in functions}
    found: dict[tuple[str, str, str], None] = {}
    pending = list(nodes_in(nodes))
    for node in pending:  # grows while it is walked
        key = (node.domain, node.op_type, node.overload)
        if key in known and key not in found:
            found[key] = None
            pending.extend(nodes_in(known[key].node))
    return [function for key, function in known.items() if key in found]
