"""Conversions to integers with scales, and back."""

from __future__ import annotations

from irc.ir.types import DType, TensorType, Type
from irc.ops.inference import NodeTypes
from irc.ops.record import Family

FAMILY = Family("onnx")
FAMILY.each("DequantizeLinear DynamicQuantizeLinear QuantizeLinear", value_operands=(), kernel="quantize")


@FAMILY.shape("QuantizeLinear")
def quantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = c.dtype(2) if c.has(2) else DType.from_onnx(given) if given else DType.UINT8
    return TensorType(dtype, c.shape(0))


@FAMILY.shape("DequantizeLinear")
def dequantize(c: NodeTypes) -> Type:
    given = c.attr("output_dtype", 0)
    dtype = DType.from_onnx(given) if given else c.dtype(1) if c.version >= 19 else DType.FLOAT
    return TensorType(dtype, c.shape(0))


@FAMILY.shape("DynamicQuantizeLinear")
def dynamic_quantize(c: NodeTypes) -> list[Type]:
    return [TensorType(DType.UINT8, c.shape(0)), TensorType(DType.FLOAT, ()), TensorType(DType.UINT8, ())]
