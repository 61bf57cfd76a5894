"""LayerNormalization as ONNX Runtime has it before opset 17: of operands and scales of different types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.frontend.onnx.blocks import output_names
from irc.frontend.onnx.opsets import Operator, bind
from irc.ir.types import NONE, DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.frontend.onnx.blocks import GraphBuilder, Scope
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value


def normalize(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """The node itself; computed in float32 between casts if its scale is of another type, which the result has then."""
    inputs = builder.inputs(raw, operator, scope)
    found = {value.type.dtype for value in inputs if value.type is not NONE}
    scale = inputs[1].type.dtype
    if not operator.is_lenient or None in found or len(found) == 1 or DType.DOUBLE in found or scale is None:
        return builder.operator(raw, operator, block, scope)
    cast = bind("", "Cast", builder.imports)
    assert isinstance(cast, Operator)

    def in_type(value: Value, dtype: DType, name: str = "") -> Value:
        attributes = {"to": dtype.onnx}
        names = (name,) if name else ()
        return builder.create(
            block, cast.kind, (value,), (TensorType(dtype),), names, attributes, cast.version, raw.name
        ).output

    wide = [value if value.type.dtype in (DType.FLOAT, None) else in_type(value, DType.FLOAT) for value in inputs]
    name, *others = output_names(raw, operator)
    is_wide = scale is DType.FLOAT
    names = [name if is_wide else builder.fresh(), *others]
    types = [TensorType(DType.FLOAT)] * len(names)
    attributes = builder.attributes(raw, operator)
    node = builder.create(block, operator.kind, wide, types, names, attributes, operator.version, raw.name)
    first, *rest = node.outputs
    return [first if is_wide else in_type(first, scale, name), *rest]
