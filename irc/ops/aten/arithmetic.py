# ruff: noqa: E501 - a row is one line
"""Arithmetic on two or three operands: tensors element by element, numbers, and lists and strings."""

from __future__ import annotations

import math

from irc.ir.types import DType, TensorType, Type
from irc.ops import algebra, sizes
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
    remainder,
    select,
    trunc,
    truncated_remainder,
)
from irc.ops.aten.call import Call, TorchFamily
from irc.ops.aten.promotion import category, floats, if_float, shape_together, together
from irc.ops.inference import UNKNOWN
from irc.ops.scalar import Choice, ScalarSemantics

ROWS = """
    aten::{add sub mul remainder}(Scalar a, Scalar b) -> Scalar
    aten::{add rsub}.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor | pointwise=common
    aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor | pointwise=common in-place
    aten::{add sub}.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor | out=any
    aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::mul.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common
    aten::{div fmod copysign}(Scalar a, Scalar b) -> float
    aten::div.Scalar(Tensor self, Scalar other) -> Tensor | pointwise in-place
    aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
    aten::floor_divide(Tensor self, Tensor other) -> Tensor | pointwise=common out=any
    aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
    aten::{remainder fmod}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common in-place out=any
    aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
    aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor | pointwise=common
    aten::atan2(Tensor self, Tensor other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::{pow atan2}.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor | out=any
    aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor | out=any
    aten::{maximum minimum fmax fmin}(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=buif out=any
    aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor | pointwise=common takes=fc in-place out=any
    aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor
    aten::{addcmul addcdiv}(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor | pointwise=common in-place out=any
    aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::hypot(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=f in-place out=any
    aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor | out=any
    aten::{mul div remainder fmod copysign xlogy}.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor | out=any
    aten::{add sub mul div remainder fmod pow atan2 copysign}.float(float a, float b) -> float
    aten::{add sub mul remainder fmod pow atan2 copysign}.float_int(float a, int b) -> float
    aten::{div fmod pow atan2 copysign}.int(int a, int b) -> float
    aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    aten::{mul_ floor_divide_}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
    aten::{mul_ floor_divide_}.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::{pow_ float_power_}.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
    aten::{float_power_ pow_}.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
    aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::logaddexp(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=fc out=any
    aten::logaddexp2(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=f out=any
    aten::{gcd lcm}(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=ui in-place out=any
    aten::{add sub mul remainder gcd}.int(int a, int b) -> int
    aten::{add sub mul remainder fmod pow atan2 copysign}.int_float(int a, float b) -> float
    aten::add.str(str a, str b) -> str
    aten::pow.int_to_int(int a, int b) -> int
    aten::heaviside(Tensor self, Tensor values) -> Tensor | pointwise=common takes=buif in-place
    aten::nextafter(Tensor self, Tensor other) -> Tensor | pointwise=common in-place out=any
    aten::ldexp(float x, int i) -> float
    aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor | pointwise
    aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor | pointwise=wider
    aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
    aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
    aten::add.t(t(b)[] a, t(c)[] b) -> t(b|c)[]
    aten::add_.t(t(b)[](a!) self, t(c -> b)[] b) -> t(b)[](a!)
    aten::mul.left_t(t(b)[] l, int n) -> t(b)[]
    aten::mul.right_(int n, t(b)[] l) -> t(b)[]
    aten::mul_.t(t[](a!) l, int n) -> t[](a!)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("add div mul sub", reads_first=True)
FAMILY.each("add add_", size=sizes.concatenated)
FAMILY.each("mul mul_", size=sizes.repeated)
FAMILY.primitives(
    "atan2 copysign float_power=power floor_divide fmax fmin fmod=truncated_remainder gcd hypot lcm maximum"
)
FAMILY.primitives("minimum mul=multiply nextafter pow=power")
FAMILY.primitives("logaddexp logaddexp2", scale=1.0)


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


# -- shapes -------------------------------------------------------------------

FAMILY.shape("ldexp")(shape_together)


@FAMILY.shape("div")
def division(c: Call) -> Type | tuple[Type, ...]:
    rounding = c.arg("rounding_mode")
    if c.is_number() or rounding is None:
        return floats(c)
    found = together(c)
    return TensorType(if_float(found.dtype) if rounding is UNKNOWN else found.dtype, found.shape)


@FAMILY.shape("float_power")
def float_power(c: Call) -> Type:
    found = together(c)
    known = found.dtype is not None and category(found.dtype) < 3
    return TensorType(DType.DOUBLE if known else None, found.shape)
