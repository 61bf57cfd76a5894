"""Functions of one operand, and conversions."""

from __future__ import annotations

from irc.ops import algebra
from irc.ops.record import Family
from irc.ops.scalar import ScalarSemantics

FAMILY = Family("onnx")
FAMILY.add(
    ScalarSemantics("onnx::Acos", algebra.acos),
    ScalarSemantics("onnx::Acosh", algebra.acosh),
    ScalarSemantics("onnx::Asin", algebra.asin),
    ScalarSemantics("onnx::Asinh", algebra.asinh),
    ScalarSemantics("onnx::Atan", algebra.atan),
    ScalarSemantics("onnx::Atanh", algebra.atanh),
    ScalarSemantics("onnx::Ceil", algebra.ceil),
    ScalarSemantics("onnx::Cos", algebra.cos),
    ScalarSemantics("onnx::Cosh", algebra.cosh),
    ScalarSemantics("onnx::Exp", algebra.exp),
    ScalarSemantics("onnx::Floor", algebra.floor),
    ScalarSemantics("onnx::Log", algebra.log),
    ScalarSemantics("onnx::Round", algebra.rint),
    ScalarSemantics("onnx::Sin", algebra.sin),
    ScalarSemantics("onnx::Sinh", algebra.sinh),
    ScalarSemantics("onnx::Sqrt", algebra.sqrt),
    ScalarSemantics("onnx::Tan", algebra.tan),
    ScalarSemantics("onnx::Tanh", algebra.tanh),
)


@FAMILY.semantics("onnx::Cast", result=None)
def to_type(x: algebra.Expression, *, to: algebra.AnyDType = algebra.SINGLE) -> algebra.Expression:
    """``to`` is given as a NumPy dtype."""
    return algebra.cast(x, to)
