"""Functions of one operand, and conversions."""

from __future__ import annotations

from irc.ops import algebra
from irc.ops.operator import Family, Operator

FAMILY = Family()
FAMILY.add(
    Operator("onnx::Acos", algebra.acos),
    Operator("onnx::Acosh", algebra.acosh),
    Operator("onnx::Asin", algebra.asin),
    Operator("onnx::Asinh", algebra.asinh),
    Operator("onnx::Atan", algebra.atan),
    Operator("onnx::Atanh", algebra.atanh),
    Operator("onnx::Ceil", algebra.ceil),
    Operator("onnx::Cos", algebra.cos),
    Operator("onnx::Cosh", algebra.cosh),
    Operator("onnx::Exp", algebra.exp),
    Operator("onnx::Floor", algebra.floor),
    Operator("onnx::Log", algebra.log),
    Operator("onnx::Round", algebra.rint),
    Operator("onnx::Sin", algebra.sin),
    Operator("onnx::Sinh", algebra.sinh),
    Operator("onnx::Sqrt", algebra.sqrt),
    Operator("onnx::Tan", algebra.tan),
    Operator("onnx::Tanh", algebra.tanh),
)


@FAMILY.operator("onnx::Cast", result=None)
def to_type(x: algebra.Expression, *, to: algebra.AnyDType = algebra.SINGLE) -> algebra.Expression:
    """``to`` is given as a NumPy dtype."""
    return algebra.cast(x, to)
