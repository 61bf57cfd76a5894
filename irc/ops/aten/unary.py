"""Functions of one tensor."""

from __future__ import annotations

import math

import numpy as np

from irc.ops import algebra, functions
from irc.ops.algebra import (
    DOUBLE,
    Expression,
    at_least,
    at_most,
    cast,
    ceil,
    equal,
    floor,
    is_nan,
    less,
    log,
    reciprocal,
    rint,
    select,
    sign,
    signbit,
    sin,
    sqrt,
    trunc,
)
from irc.ops.operator import Family, Operator

FAMILY = Family()
FAMILY.add(
    *(
        Operator(f"aten::{name}", algebra.PRIMITIVES[name])
        for name in (
            "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
            "reciprocal erfc erfinv lgamma digamma i0 bitwise_not"
        ).split()
    ),
    *(Operator(f"aten::special_{name}", algebra.PRIMITIVES[name]) for name in ("i0e", "i1", "i1e")),
    Operator("aten::abs", algebra.absolute),
    Operator("aten::erf", functions.erf),
    Operator("aten::isfinite", algebra.is_finite, result=None),
    Operator("aten::isinf", algebra.is_infinite, result=None),
    Operator("aten::isnan", algebra.is_nan, result=None),
    Operator("aten::logical_not", algebra.logical_not, result=None),
    Operator("aten::neg", algebra.negative),
    Operator("aten::sigmoid", functions.sigmoid, ulp=4.0),
)


@FAMILY.operator("aten::rsqrt", ulp=2.0)
def rsqrt(x: Expression) -> Expression:
    return reciprocal(sqrt(x))


@FAMILY.operator("aten::square")
def square(x: Expression) -> Expression:
    return x * x


@FAMILY.operator("aten::frac")
def frac(x: Expression) -> Expression:
    return x - trunc(x)


@FAMILY.operator("aten::sign")
@FAMILY.operator("aten::sgn")
def sgn(x: Expression) -> Expression:
    """-1, 0 or 1; 0 of NaN; of complex numbers, one of size 1 or 0 in the same direction."""
    if x.is_complex:
        size = abs(x)
        return x / cast(select(equal(size, 0), 1, size), x.dtype)
    if x.is_float:
        return sign(select(is_nan(x), 0, x))
    return sign(x) if x.is_integer else x


@FAMILY.operator("aten::ceil")
def ceiling(x: Expression) -> Expression:
    return ceil(x) if x.is_float else x


@FAMILY.operator("aten::floor")
def floored(x: Expression) -> Expression:
    return floor(x) if x.is_float else x


@FAMILY.operator("aten::trunc")
def truncated(x: Expression) -> Expression:
    return trunc(x) if x.is_float else x


@FAMILY.operator("aten::round")
def rounded(x: Expression, *, decimals: int | None = None) -> Expression:
    """To so many decimals by a power of ten, which loses what the type cannot hold."""
    if not x.is_float or not decimals:
        return rint(x) if x.is_float else x
    scale = 10.0 ** abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


@FAMILY.operator("aten::deg2rad")
def deg2rad(x: Expression) -> Expression:
    return x * (math.pi / 180)


@FAMILY.operator("aten::rad2deg")
def rad2deg(x: Expression) -> Expression:
    return x * (180 / math.pi)


@FAMILY.operator("aten::angle")
def angle(x: Expression) -> Expression:
    """0 or pi, and NaN, of real numbers."""
    return select(is_nan(x), x, cast(less(x, 0), x.dtype) * math.pi)


@FAMILY.operator("aten::signbit", result=None)
def is_negative(x: Expression) -> Expression:
    return signbit(x) if x.is_float else less(x, 0)


@FAMILY.operator("aten::isposinf", result=None)
def is_positive_infinity(x: Expression) -> Expression:
    return equal(x, math.inf) if x.is_float else less(x, x)  # never


@FAMILY.operator("aten::isneginf", result=None)
def is_negative_infinity(x: Expression) -> Expression:
    return equal(x, -math.inf) if x.is_float else less(x, x)


@FAMILY.operator("aten::sinc", ulp=8.0, scale=0.25)
def sinc(x: Expression) -> Expression:
    """sin(pi x) / (pi x); 1 of 0."""
    angle = select(equal(x, 0), 1e-20, x) * math.pi
    return sin(angle) / angle


@FAMILY.operator("aten::special_entr", ulp=4.0)
def entropy(x: Expression) -> Expression:
    """-x log(x), in double precision; 0 of 0, -inf below."""
    y = cast(x, DOUBLE)
    found = select(y > 0, -y * log(select(y > 0, y, 1)), select(equal(y, 0), 0, select(y < 0, -math.inf, y)))
    return cast(found, x.dtype)


@FAMILY.operator("aten::nan_to_num")
def nan_to_num(
    x: Expression, *, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Expression:
    """Numbers in place of what is not finite, by default 0 and the largest ones of the type of ``x``."""
    if not x.is_float:
        return x
    limits = np.finfo(x.dtype)
    high, low = (float(limits.max) if posinf is None else posinf), (float(limits.min) if neginf is None else neginf)
    number = select(is_nan(x), nan or 0.0, x)
    return select(equal(x, math.inf), high, select(equal(x, -math.inf), low, number))


@FAMILY.operator("aten::clamp")
def clamp(x: Expression, low: Expression | None = None, high: Expression | None = None) -> Expression:
    """Between bounds, of which the upper one wins."""
    found = x if low is None else at_least(x, low)
    return found if high is None else at_most(found, high)


FAMILY.add(Operator("aten::clamp_min", at_least), Operator("aten::clamp_max", at_most))
