"""Arithmetic on one, two or any number of operands."""

from __future__ import annotations

from functools import reduce

from irc.ir.polynomials import is_size, minus, plus, quotient, surely_differ, times
from irc.ir.types import Dim, Type
from irc.ops.algebra import Expression, at_least, at_most, remainder, truncated_remainder
from irc.ops.inference import NodeTypes
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics
from irc.ops.shape_rules import broadcast_as, contents_by, same_as_first

FAMILY = Family("onnx")
_LARGEST = 3.4028234663852886e38  # of float32

FAMILY.primitives("Abs=absolute Neg=negative Reciprocal Sign")
FAMILY.primitives("Add Div=divide Mul=multiply Pow=power Sub=subtract", since=7)
FAMILY.primitives("Max=maximum Min=minimum Sum=add", variadic=True)
FAMILY.add(ScalarSemantics("onnx::Mod", Choice("fmod", {0: remainder, 1: truncated_remainder}, 0)))
FAMILY.each("Add Mul", commutative=True)
FAMILY.each("Div Sub", reads_first=True)
FAMILY.each("Clip", shape=same_as_first, shaped_like_first=True)


@FAMILY.shape("Pow")
def power_type(c: NodeTypes) -> Type:
    """The exponent may be of another type."""
    return broadcast_as(c, c.dtype(0))


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


# -- contents --------------------------------------------------------------------


def _quotient(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        # ONNX integer division truncates toward zero.
        return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient(a, b) if surely_differ(b, 0) else None


def _negated(a: Dim) -> Dim:
    return times(a, -1)


def _smallest(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(b, a)) else b if is_size(minus(a, b)) else None, sizes)


def _largest(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(a, b)) else b if is_size(minus(b, a)) else None, sizes)


FAMILY.each("Add", contents=contents_by(plus))
FAMILY.each("Sub", contents=contents_by(minus))
FAMILY.each("Mul", contents=contents_by(times))
FAMILY.each("Div", contents=contents_by(_quotient))
FAMILY.each("Neg", contents=contents_by(_negated))
FAMILY.each("Min", contents=contents_by(_smallest, oldest=1))
FAMILY.each("Max", contents=contents_by(_largest, oldest=1))
