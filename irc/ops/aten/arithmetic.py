"""Arithmetic on two or three operands."""

from __future__ import annotations

import math

from irc.ops import algebra
from irc.ops.algebra import (
    Expression,
    divide,
    equal,
    floor_divide,
    is_nan,
    log,
    logical_and,
    logical_not,
    logical_xor,
    not_equal,
    power,
    remainder,
    select,
    trunc,
    truncated_remainder,
)
from irc.ops.record import Family
from irc.ops.scalar import Choice, ScalarSemantics

FAMILY = Family("aten")
FAMILY.add(
    *(
        ScalarSemantics(f"aten::{name}", algebra.PRIMITIVES[name])
        for name in ("maximum minimum fmax fmin atan2 copysign hypot gcd lcm nextafter floor_divide").split()
    ),
    ScalarSemantics("aten::float_power", power),
    ScalarSemantics("aten::fmod", truncated_remainder),
    ScalarSemantics("aten::logaddexp", algebra.logaddexp, scale=1.0),
    ScalarSemantics("aten::logaddexp2", algebra.logaddexp2, scale=1.0),
    ScalarSemantics("aten::mul", algebra.multiply),
    ScalarSemantics("aten::pow", power),
)


@FAMILY.semantics("aten::add", ulp=1.0, scale=math.inf)
def added(x: Expression, y: Expression, alpha: Expression | None = None) -> Expression:
    return x + (y if alpha is None else y * alpha)


@FAMILY.semantics("aten::sub", ulp=1.0, scale=math.inf)
def subtracted(x: Expression, y: Expression, alpha: Expression | None = None) -> Expression:
    return x - (y if alpha is None else y * alpha)


@FAMILY.semantics("aten::rsub", ulp=1.0, scale=math.inf)
def subtracted_from(x: Expression, y: Expression, alpha: Expression | None = None) -> Expression:
    return subtracted(y, x, alpha)


def truncated_quotient(x: Expression, y: Expression) -> Expression:
    """Rounded to zero."""
    return divide(x, y) if x.is_integer else trunc(x / y)


FAMILY.add(
    ScalarSemantics(
        "aten::div",
        Choice("rounding_mode", {None: divide, "floor": floor_divide, "trunc": truncated_quotient}),
        ulp=1.0,
    )
)


@FAMILY.semantics("aten::remainder")
def with_sign_of_divisor(x: Expression, y: Expression) -> Expression:
    """A remainder of 0 has the dividend's sign, as torch computes it."""
    if x.is_integer:
        return remainder(x, y)
    rest = truncated_remainder(x, y)
    return select(logical_and(not_equal(rest, 0), logical_xor(y < 0, rest < 0)), rest + y, rest)


@FAMILY.semantics("aten::lerp", ulp=2.0, scale=math.inf)
def lerp(x: Expression, end: Expression, weight: Expression) -> Expression:
    """``x + weight (end - x)``, from the nearer end, so that both ends are reached exactly."""
    near = abs(weight) < 0.5
    return select(near, x, end) + select(near, weight, weight - 1) * (end - x)


@FAMILY.semantics("aten::addcmul", ulp=2.0, scale=math.inf)
def add_product(x: Expression, y: Expression, z: Expression, value: Expression | None = None) -> Expression:
    return x + (y if value is None else y * value) * z


@FAMILY.semantics("aten::addcdiv", ulp=2.0, scale=math.inf)
def add_quotient(x: Expression, y: Expression, z: Expression, value: Expression | None = None) -> Expression:
    return x + (y if value is None else y * value) / z


@FAMILY.semantics("aten::xlogy", ulp=8.0)
def xlogy(x: Expression, y: Expression) -> Expression:
    """``x log(y)``; 0 where x is 0, unless y is NaN."""
    zero = logical_and(equal(x, 0), logical_not(is_nan(y)))
    return select(zero, 0, x) * select(zero, 0, log(y))


@FAMILY.semantics("aten::heaviside")
def heaviside(x: Expression, values: Expression) -> Expression:
    """0 below 0 and for NaN, 1 above, and ``values`` at it."""
    return select(equal(x, 0), values, algebra.cast(x > 0, x.dtype))
