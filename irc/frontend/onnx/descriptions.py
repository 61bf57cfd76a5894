"""What a model says of its graphs, nodes and values beside what they compute, as metadata of the IR."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from irc.frontend.onnx.checks import Place, text
from irc.ir.metadata import (
    DECLARED_TYPE,
    DENOTATION,
    DOC_STRING,
    GRAPH_NAME,
    NOT_PROPERTIES,
    QUANTIZATION,
    QUANTIZATION_TENSOR,
    SOURCE,
    frozen,
)
from irc.ir.types import without_shapes

if TYPE_CHECKING:
    from onnx import GraphProto, TypeProto

    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Node, Value
    from irc.ir.types import Type


def said_of(proto: Any, where: Place) -> dict[str, str]:
    """The metadata in the ``metadata_props`` and the ``doc_string`` of a proto."""
    found = {text(entry.key, where): text(entry.value, where) for entry in proto.metadata_props}
    found = {key: value for key, value in found.items() if not key.startswith(NOT_PROPERTIES)}
    if proto.doc_string:
        found[DOC_STRING] = text(proto.doc_string, where)
    return found


def said_of_graph(proto: GraphProto, where: Place, usual_name: str) -> dict[str, str]:
    """The metadata of a nested graph, with its name unless that is ``usual_name``."""
    found = said_of(proto, where)
    if proto.name and proto.name != usual_name:
        found[GRAPH_NAME] = text(proto.name, where)
    return found


def said_of_values(proto: Any, where: Place) -> dict[str, dict[str, str]]:
    """The metadata of the values that a graph or function describes, by name, without those of which nothing is said.

    Of a value that is an input or output and an initializer, too, that is what all of these say.
    """
    found: dict[str, dict[str, str]] = {}

    def add(name: str, said: dict[str, str]) -> None:
        if said:
            found.setdefault(text(name, where), {}).update(said)

    for tensor in getattr(proto, "initializer", ()):
        if tensor.doc_string or tensor.metadata_props:
            add(tensor.name, said_of(tensor, where))
    for info in _value_infos(proto):
        said = said_of(info, where) if info.doc_string or info.metadata_props else {}
        said.update(_denotations(info.type, where))
        add(info.name, said)
    annotations = getattr(proto, "quantization_annotation", ())
    names = set(_names(proto)) if annotations else set[str]()
    for annotation in annotations:
        parameters = [(entry.value in names, entry) for entry in annotation.quant_parameter_tensor_names]
        said = {
            (QUANTIZATION_TENSOR if is_value else QUANTIZATION) + text(entry.key, where): text(entry.value, where)
            for is_value, entry in parameters
        }
        add(annotation.tensor_name, said)
    return found


def _names(proto: GraphProto) -> Iterator[str]:
    """The names of all values that a graph defines."""
    yield from (value.name for values in (proto.input, proto.initializer) for value in values)
    yield from (name for node in proto.node for name in node.output)


def _value_infos(proto: Any) -> Iterator[Any]:
    yield from proto.value_info
    for values in (proto.input, proto.output):
        yield from (value for value in values if not isinstance(value, str))  # functions only name theirs


def _denotations(proto: TypeProto, where: Place) -> Iterator[tuple[str, str]]:
    """The denotations in a type, by their keys as metadata."""
    key = DENOTATION
    while True:
        if proto.denotation:
            yield key, text(proto.denotation, where)
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            for axis, dim in enumerate(proto.tensor_type.shape.dim):
                if dim.denotation:
                    yield f"{key}.{axis}", text(dim.denotation, where)
        if kind not in ("sequence_type", "optional_type"):
            return
        proto, key = getattr(proto, kind).elem_type, f"{key}.element"


def describe_declared(value: Value, type: Type) -> None:
    """Remember the type that the model declares of ``value``, if it has shapes, which nothing is computed with."""
    if type not in (value.type, without_shapes(type)):
        value.metadata = {**value.metadata, DECLARED_TYPE: str(type)}


def describe_values(values: dict[str, Value], block: Block, said: dict[str, dict[str, str]]) -> None:
    """Give those of ``values`` that are defined in ``block`` the metadata that the model has of them."""
    for name, metadata in said.items():
        value = values.get(name)
        if value is not None and value.block is block:
            value.metadata = {**value.metadata, **metadata}


def describe_nodes(raw: RawNode, nodes: Iterable[Node]) -> None:
    """Give ``nodes``, which a node of the model has become, its metadata; several of them, its name as their source."""
    said = said_of(raw.proto, raw) if raw.proto.doc_string or raw.proto.metadata_props else {}
    nodes = list(nodes)
    if len(nodes) > 1:
        name = raw.name or next(filter(None, raw.outputs), "")
        said = {SOURCE: name, **said} if name else said
    if said:
        metadata = frozen(said)
        for node in nodes:
            node.metadata = metadata
