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
from irc.ops.operator import Choice, Family, Operator

FAMILY = Family()
FAMILY.add(
    Operator("onnx::BitShift", Choice("direction", {"LEFT": shift_left, "RIGHT": shift_right})),
    Operator("onnx::BitwiseAnd", bitwise_and),
    Operator("onnx::BitwiseNot", bitwise_not),
    Operator("onnx::BitwiseOr", bitwise_or),
    Operator("onnx::BitwiseXor", bitwise_xor),
    Operator("onnx::GreaterOrEqual", greater_equal, result=None),
    Operator("onnx::IsNaN", is_nan, result=None),
    Operator("onnx::LessOrEqual", less_equal, result=None),
    Operator("onnx::Not", logical_not),
    Operator("onnx::Where", select, result=1),
)
FAMILY.add_broadcasting_since(
    7,
    Operator("onnx::And", logical_and),
    Operator("onnx::Equal", equal, result=None),
    Operator("onnx::Greater", greater, result=None),
    Operator("onnx::Less", less, result=None),
    Operator("onnx::Or", logical_or),
    Operator("onnx::Xor", logical_xor),
)


@FAMILY.operator("onnx::IsInf", result=None)
def is_inf(x: Expression, *, detect_positive: int = 1, detect_negative: int = 1) -> Expression:
    if detect_positive and detect_negative:
        return is_infinite(x)
    if not detect_positive and not detect_negative:
        return less(x, x)  # never
    return equal(x, math.inf if detect_positive else -math.inf)
