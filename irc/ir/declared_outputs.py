"""What a model declares of its outputs and other values: for users and other tools, but not computed with.

It may be wrong. There is one exception: a scan output of a loop without iterations has no rows to take a shape from,
and has the declared one (`irc.ir.loops`), as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irc.ir.metadata import DECLARED_TYPE
from irc.ir.text.type_parser import parse_type
from irc.ir.types import ANY, TensorType, Type, merged
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.ir.graph import Graph, Module

OUTPUT_TYPE = "output_types."
"""Key of the metadata that keep the type which a model declares of an output, the output's name apart."""


def declared_type(value: Value, metadata: Mapping[str, str]) -> Type | None:
    """The declared type of an output of the main graph, or None."""
    text = metadata.get(f"{OUTPUT_TYPE}{value.name}")
    return None if text is None else parse_type(text)


def change_declared(metadata: dict[str, str], change: Callable[[Type], Type]) -> None:
    """Replace every declared output type by ``change(type)``."""
    declared = {key: parse_type(text) for key, text in metadata.items() if key.startswith(OUTPUT_TYPE)}
    metadata.update((key, str(change(type))) for key, type in declared.items())


def change_declared_type(value: Value, change: Callable[[Type], Type]) -> None:
    """Replace the type that the model declares of ``value``, if any, by ``change(type)``."""
    if value.metadata and (text := value.metadata.get(DECLARED_TYPE)) is not None:
        value.metadata = {**value.metadata, DECLARED_TYPE: str(change(parse_type(text)))}


def told_type(value: Value) -> Type:
    """The type of ``value``; for an output of the main graph, completed by what its module declares."""
    module = value.graph.module
    if module is None or not value.graph.is_main or value not in value.graph.outputs:
        return value.type
    return completed(value.type, declared_type(value, module.metadata))


def declared_beyond(graph: Graph) -> dict[Value, str]:
    """Outputs of ``graph`` -> the types that the module declares of them, where these say more than their own types."""
    module = graph.module
    if module is None or not graph.is_main or not module.metadata:
        return {}
    said = {value: module.metadata.get(f"{OUTPUT_TYPE}{value.name}") for value in graph.outputs}
    return {value: text for value, text in said.items() if text is not None and told_type(value) != value.type}


def take_declared(module: Module) -> None:
    """Let ``module`` declare the types of outputs that are metadata of these: text has them there."""
    for value in module.main.outputs:
        text = value.metadata.get(DECLARED_TYPE)
        if text is not None and completed(value.type, parse_type(text)) != value.type:
            module.metadata[f"{OUTPUT_TYPE}{value.name}"] = text
            value.metadata = {key: said for key, said in value.metadata.items() if key != DECLARED_TYPE}


def completed(type: Type, declared: Type | None) -> Type:
    """``type``, with sizes and their names filled in from ``declared`` where ``type`` has none (Any has nothing)."""
    if declared is None:
        return type
    return declared if type is ANY else merged(type, declared, _completed)


def _completed(type: TensorType, declared: TensorType) -> TensorType:
    shape = declared.shape if type.shape is None else type.shape
    if shape is None or declared.shape is None or len(shape) != len(declared.shape):
        return type
    sizes = [said if known is None else known for known, said in zip(shape, declared.shape, strict=True)]
    return TensorType(type.dtype or declared.dtype, tuple(sizes))
