"""What a model declares of its outputs and other values: for users and other tools, but not computed with.

It may be wrong. There is one exception: a scan output of a loop without iterations has no rows to take a shape from,
and has the declared one (`irc.ir.ops.loops`), as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from irc.ir.metadata import DECLARED_TYPE
from irc.ir.text.type_parser import parse_type
from irc.ir.types import ANY, TensorType, Type, merged
from irc.ir.value import Value

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
