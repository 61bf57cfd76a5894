"""Comparisons, truth values, bits, and selection by them."""

from __future__ import annotations

import math

from irc.ir.polynomials import is_positive, is_size, minus, surely_differ
from irc.ir.types import Dim, TensorType, Type
from irc.ops.algebra import Expression, equal, is_infinite, less, shift_left, shift_right
from irc.ops.inference import Contents, NodeTypes, dims_array, elementwise
from irc.ops.record import Family, Movement
from irc.ops.scalar import Choice, ScalarSemantics
from irc.ops.shape_rules import compare, contents_by

FAMILY = Family("onnx")
FAMILY.add(ScalarSemantics("onnx::BitShift", Choice("direction", {"LEFT": shift_left, "RIGHT": shift_right})))
FAMILY.primitives("BitwiseAnd=bitwise_and BitwiseNot=bitwise_not BitwiseOr=bitwise_or BitwiseXor=bitwise_xor")
FAMILY.primitives("And=logical_and Or=logical_or Xor=logical_xor", since=7)
FAMILY.primitives("Equal Greater Less", since=7, result=None)
FAMILY.primitives("GreaterOrEqual=greater_equal IsNaN=is_nan LessOrEqual=less_equal", result=None)
FAMILY.primitives("Not=logical_not")
FAMILY.primitives("Where=select", result=1)
FAMILY.each("And Or Xor", shape=compare)
FAMILY.each("And BitwiseAnd BitwiseOr BitwiseXor Equal Or Xor", commutative=True)
FAMILY.each("BitShift", attributes={"direction": ("LEFT", "RIGHT")})
FAMILY.each("Where", movement=Movement.GATHERED)


@FAMILY.shape("Where")
def where(c: NodeTypes) -> Type:
    return TensorType(c.dtype(1) or c.dtype(2), c.broadcast([c.shape(0), c.shape(1), c.shape(2)]))


@FAMILY.contents("Where")
def where_contents(c: NodeTypes) -> Contents | None:
    parts = [c.contents_of(i) for i in range(3)]
    if all(part is None for part in parts[1:]):
        return None
    return elementwise(_choose, *[dims_array(None) if part is None else part for part in parts])


def _choose(condition: Dim, a: Dim, b: Dim) -> Dim:
    return a if a == b else None if condition is None else a if condition else b


@FAMILY.semantics("onnx::IsInf", result=None)
def is_inf(x: Expression, *, detect_positive: int = 1, detect_negative: int = 1) -> Expression:
    if detect_positive and detect_negative:
        return is_infinite(x)
    if not detect_positive and not detect_negative:
        return less(x, x)  # never
    return equal(x, math.inf if detect_positive else -math.inf)


# -- contents --------------------------------------------------------------------


def _equal(a: Dim, b: Dim) -> Dim:
    if a is None or b is None:
        return None
    # A size is never negative, so it is no -1 (the idiom Where(Equal(shape, -1), ...)).
    return True if a == b else False if surely_differ(a, b) else None


def _less(a: Dim, b: Dim) -> Dim:
    return True if is_positive(minus(b, a)) else False if is_size(minus(a, b)) else None


def _at_most(a: Dim, b: Dim) -> Dim:
    return True if is_size(minus(b, a)) else False if is_positive(minus(a, b)) else None


def _more(a: Dim, b: Dim) -> Dim:
    return _less(b, a)


def _at_least(a: Dim, b: Dim) -> Dim:
    return _at_most(b, a)


def _not(a: Dim) -> Dim:
    return None if a is None else not a


FAMILY.each("Equal", contents=contents_by(_equal))
FAMILY.each("Less", contents=contents_by(_less))
FAMILY.each("LessOrEqual", contents=contents_by(_at_most))
FAMILY.each("Greater", contents=contents_by(_more))
FAMILY.each("GreaterOrEqual", contents=contents_by(_at_least))
FAMILY.each("Not", contents=contents_by(_not, oldest=1))
