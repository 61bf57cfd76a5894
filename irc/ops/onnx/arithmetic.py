"""Arithmetic on one, two or any number of operands."""

from __future__ import annotations

from irc.ops.algebra import (
    Expression,
    absolute,
    add,
    at_least,
    at_most,
    divide,
    maximum,
    minimum,
    multiply,
    negative,
    power,
    reciprocal,
    remainder,
    sign,
    subtract,
    truncated_remainder,
)
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics

FAMILY = Family("onnx")
_LARGEST = 3.4028234663852886e38  # of float32

FAMILY.add(
    ScalarSemantics("onnx::Abs", absolute),
    ScalarSemantics("onnx::Max", maximum, variadic=True),
    ScalarSemantics("onnx::Min", minimum, variadic=True),
    ScalarSemantics("onnx::Mod", Choice("fmod", {0: remainder, 1: truncated_remainder}, 0)),
    ScalarSemantics("onnx::Neg", negative),
    ScalarSemantics("onnx::Reciprocal", reciprocal),
    ScalarSemantics("onnx::Sign", sign),
    ScalarSemantics("onnx::Sum", add, variadic=True),
)
FAMILY.add_broadcasting_since(
    7,
    ScalarSemantics("onnx::Add", add),
    ScalarSemantics("onnx::Div", divide),
    ScalarSemantics("onnx::Mul", multiply),
    ScalarSemantics("onnx::Pow", power),
    ScalarSemantics("onnx::Sub", subtract),
)


@FAMILY.semantics("onnx::Mean", variadic=True, ulp=2.0)
def mean(*operands: Expression) -> Expression:
    total = operands[0]
    for x in operands[1:]:
        total = total + x
    return total / len(operands)


@FAMILY.semantics("onnx::Clip", since=11)
def clip(x: Expression, low: Expression | None = None, high: Expression | None = None) -> Expression:
    """Between bounds, of which the upper one wins."""
    found = x if low is None else at_least(x, low)
    return found if high is None else at_most(found, high)


@FAMILY.semantics("onnx::Clip", since=6)
def clip_to_attributes(x: Expression, *, min: float = -_LARGEST, max: float = _LARGEST) -> Expression:
    return at_most(at_least(x, min), max)


@FAMILY.semantics("onnx::Clip", since=1)
def clip_to_given_attributes(x: Expression, *, min: float | None = None, max: float | None = None) -> Expression:
    found = x if min is None else at_least(x, min)
    return found if max is None else at_most(found, max)
