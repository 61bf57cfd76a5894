"""Types that a node's outputs start with: those in the operator's schema, without shapes.

Shape inference makes them exact later. What matters here is that the kind of
every value (tensor, list, optional) is right from the start, because it
decides which values may share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.types import INT, STR, TENSOR, DictType, DType, ListType, OptionalType, TensorType, Type, without_shapes

if TYPE_CHECKING:
    from irc.frontend.onnx.opsets import Operator

Rule = Callable[[Sequence[Type], dict[str, Any]], Type]


def _optional(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    return OptionalType(without_shapes(inputs[0] if inputs else attributes.get("type", TENSOR)))


def _optional_get_element(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    (type,) = inputs  # from version 18 on it may also be no optional, and is the result then
    return without_shapes(type.elem if isinstance(type, OptionalType) else type)


def _sequence_at(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    return without_shapes(inputs[0].elem) if isinstance(inputs[0], ListType) else TENSOR


def _split_to_sequence(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    return ListType(without_shapes(inputs[0]))


def _sequence_empty(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    return ListType(TensorType(DType.from_onnx(attributes.get("dtype", DType.FLOAT.onnx))))


def _zip_map(inputs: Sequence[Type], attributes: dict[str, Any]) -> Type:
    key = INT if attributes.get("classlabels_int64s") else STR
    return ListType(DictType(key, TensorType(DType.FLOAT)))


_RULES: dict[str, Rule] = {
    "ai.onnx.ml::ZipMap": _zip_map,
    "onnx::Optional": _optional,
    "onnx::OptionalGetElement": _optional_get_element,
    "onnx::SequenceAt": _sequence_at,
    "onnx::SequenceConstruct": lambda inputs, attributes: ListType(without_shapes(inputs[0])),
    "onnx::SequenceEmpty": _sequence_empty,
    "onnx::SplitToSequence": _split_to_sequence,
}
"""Operators whose schemas relate an output's type to an input's, or to attributes, only in words."""


def output_types(operator: Operator, inputs: Sequence[Type], attributes: dict[str, Any], count: int) -> list[Type]:
    """The types of the first ``count`` outputs of a node with inputs of these types."""
    rule = _RULES.get(operator.kind)
    if rule is not None:
        return [rule(inputs, attributes)] * count
    last = len(operator.outputs) - 1
    found: list[Type] = []
    for number in range(count):
        output = operator.outputs[min(number, last)]
        type = output.fallback
        for position in output.like:
            # An absent input has no type to share, and one of unknown element type says too little.
            if position < len(inputs) and _says_something(inputs[position]):
                type = without_shapes(inputs[position])
                break
        found.append(type)
    return found


def _says_something(type: Type) -> bool:
    return type.dtype is not None if isinstance(type, TensorType) else isinstance(type, (ListType, OptionalType))
