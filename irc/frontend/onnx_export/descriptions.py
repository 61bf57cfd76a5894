"""Metadata of the IR as what an ONNX model says of its graphs, nodes and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from irc.ir.metadata import DENOTATION, DOC_STRING, NOT_PROPERTIES, QUANTIZATION, QUANTIZATION_TENSOR

if TYPE_CHECKING:
    from onnx import GraphProto, TypeProto, ValueInfoProto


def describe(proto: Any, metadata: Mapping[str, str]) -> None:
    """Write the properties and the doc string in ``metadata`` into the proto of a graph, function, node or tensor."""
    for key, value in metadata.items():
        if not key.startswith(NOT_PROPERTIES):
            entry = proto.metadata_props.add()
            entry.key, entry.value = key, value
    if DOC_STRING in metadata:
        proto.doc_string = metadata[DOC_STRING]


def describe_value(proto: ValueInfoProto, metadata: Mapping[str, str]) -> None:
    """As `describe`, with the denotations of the value's type and its dimensions, where these are written."""
    if not metadata:
        return
    describe(proto, metadata)
    for key, denotation in metadata.items():
        part = _part(proto.type, key[len(DENOTATION) :]) if key.startswith(DENOTATION) else None
        if part is not None:
            part.denotation = denotation


def _part(proto: TypeProto, path: str) -> Any:
    """The part of a type that ``path`` leads to: the type itself, an element's, or a dimension; None if it has none."""
    part: Any = proto
    for step in path.split(".")[1:]:
        kind = part.WhichOneof("value")  # of a dimension: a number or a name
        if kind in ("sequence_type", "optional_type") and step == "element":
            part = getattr(part, kind).elem_type
        elif kind == "tensor_type" and step.isdecimal() and int(step) < len(part.tensor_type.shape.dim):
            part = part.tensor_type.shape.dim[int(step)]
        else:
            return None
    return part


def annotate(proto: GraphProto, name: str, metadata: Mapping[str, str], written: Callable[[str], str | None]) -> None:
    """Add to ``proto`` the quantization annotation of the value that is called ``name``.

    Args:
        proto: the graph.
        name: of the value.
        metadata: of the value.
        written: what a value is called in the model, or None if it is not in it: then no parameter is.
    """
    found = {key.removeprefix(QUANTIZATION): text for key, text in metadata.items() if key.startswith(QUANTIZATION)}
    for key, text in metadata.items():
        if key.startswith(QUANTIZATION_TENSOR) and (parameter := written(text)):
            found[key.removeprefix(QUANTIZATION_TENSOR)] = parameter
    if not found:
        return
    annotation = proto.quantization_annotation.add()
    annotation.tensor_name = name
    for key, parameter in found.items():
        entry = annotation.quant_parameter_tensor_names.add()
        entry.key, entry.value = key, parameter
