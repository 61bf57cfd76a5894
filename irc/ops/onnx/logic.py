"""Comparisons, truth values, bits, and selection by them."""

from __future__ import annotations

import math

from irc.ops.algebra import (
    Expression,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    is_infinite,
    is_nan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    select,
    shift_left,
    shift_right,
)
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics

FAMILY = Family("onnx")
FAMILY.add(
    ScalarSemantics("onnx::BitShift", Choice("direction", {"LEFT": shift_left, "RIGHT": shift_right})),
    ScalarSemantics("onnx::BitwiseAnd", bitwise_and),
    ScalarSemantics("onnx::BitwiseNot", bitwise_not),
    ScalarSemantics("onnx::BitwiseOr", bitwise_or),
    ScalarSemantics("onnx::BitwiseXor", bitwise_xor),
    ScalarSemantics("onnx::GreaterOrEqual", greater_equal, result=None),
    ScalarSemantics("onnx::IsNaN", is_nan, result=None),
    ScalarSemantics("onnx::LessOrEqual", less_equal, result=None),
    ScalarSemantics("onnx::Not", logical_not),
    ScalarSemantics("onnx::Where", select, result=1),
)
FAMILY.add_broadcasting_since(
    7,
    ScalarSemantics("onnx::And", logical_and),
    ScalarSemantics("onnx::Equal", equal, result=None),
    ScalarSemantics("onnx::Greater", greater, result=None),
    ScalarSemantics("onnx::Less", less, result=None),
    ScalarSemantics("onnx::Or", logical_or),
    ScalarSemantics("onnx::Xor", logical_xor),
)


@FAMILY.semantics("onnx::IsInf", result=None)
def is_inf(x: Expression, *, detect_positive: int = 1, detect_negative: int = 1) -> Expression:
    if detect_positive and detect_negative:
        return is_infinite(x)
    if not detect_positive and not detect_negative:
        return less(x, x)  # never
    return equal(x, math.inf if detect_positive else -math.inf)
