# ruff: noqa: E501 - a row is one line
"""Functions of one tensor."""

from __future__ import annotations

import math

import numpy as np

from irc.ir.types import TensorType, Type
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
from irc.ops.aten.call import Call, TorchFamily
from irc.ops.aten.promotion import as_float, category, like_first, like_first_if_float, shape_together
from irc.ops.scalar import ScalarSemantics

ROWS = """
    aten::abs(Tensor self) -> Tensor | pointwise takes=uifc in-place=uif
    aten::neg(Tensor self) -> Tensor | pointwise=first in-place
    aten::neg.Scalar(Scalar a) -> Scalar
    aten::neg.float(float a) -> float
    aten::neg.int(int a) -> int
    aten::exp(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::exp.Scalar(Scalar a) -> Scalar
    aten::exp.float(float a) -> float
    aten::exp.int(int a) -> float
    aten::exp2(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::expm1(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::expm1.Scalar(Scalar a) -> Scalar
    aten::expm1.float(float a) -> float
    aten::expm1.int(int a) -> float
    aten::log(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::log.Scalar(Scalar a) -> Scalar
    aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::log.float(float a) -> float
    aten::log.float_float(float a, float b) -> float
    aten::log.float_int(float a, int b) -> float
    aten::log.int(int a) -> float
    aten::log.int_float(int a, float b) -> float
    aten::log.int_int(int a, int b) -> float
    aten::log2(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::log10(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::log10.Scalar(Scalar a) -> Scalar
    aten::log10.float(float a) -> float
    aten::log10.int(int a) -> float
    aten::log1p(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::log1p.Scalar(Scalar a) -> Scalar
    aten::log1p.float(float a) -> float
    aten::log1p.int(int a) -> float
    aten::sqrt(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::sqrt.Scalar(Scalar a) -> Scalar
    aten::sqrt.float(float a) -> float
    aten::sqrt.int(int a) -> float
    aten::rsqrt(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::square(Tensor self) -> Tensor | pointwise in-place out=any
    aten::reciprocal(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::sin(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::sin.Scalar(Scalar a) -> Scalar
    aten::sin.float(float a) -> float
    aten::sin.int(int a) -> float
    aten::cos(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::cos.Scalar(Scalar a) -> Scalar
    aten::cos.float(float a) -> float
    aten::cos.int(int a) -> float
    aten::tan(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::tan.Scalar(Scalar a) -> Scalar
    aten::tan.float(float a) -> float
    aten::tan.int(int a) -> float
    aten::asin(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::asin.Scalar(Scalar a) -> Scalar
    aten::asin.float(float a) -> float
    aten::asin.int(int a) -> float
    aten::acos(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::acos.Scalar(Scalar a) -> Scalar
    aten::acos.float(float a) -> float
    aten::acos.int(int a) -> float
    aten::atan(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::atan.Scalar(Scalar a) -> Scalar
    aten::atan.float(float a) -> float
    aten::atan.int(int a) -> float
    aten::sinh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::sinh.Scalar(Scalar a) -> Scalar
    aten::sinh.float(float a) -> float
    aten::sinh.int(int a) -> float
    aten::cosh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::cosh.Scalar(Scalar a) -> Scalar
    aten::cosh.float(float a) -> float
    aten::cosh.int(int a) -> float
    aten::tanh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::tanh.Scalar(Scalar a) -> Scalar
    aten::tanh.float(float a) -> float
    aten::tanh.int(int a) -> float
    aten::asinh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::asinh.Scalar(Scalar a) -> Scalar
    aten::asinh.float(float a) -> float
    aten::asinh.int(int a) -> float
    aten::acosh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::acosh.Scalar(Scalar a) -> Scalar
    aten::acosh.float(float a) -> float
    aten::acosh.int(int a) -> float
    aten::atanh(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::atanh.Scalar(Scalar a) -> Scalar
    aten::atanh.float(float a) -> float
    aten::atanh.int(int a) -> float
    aten::sigmoid(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::erf(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::erf.Scalar(Scalar a) -> Scalar
    aten::erf.float(float a) -> float
    aten::erf.int(int a) -> float
    aten::erfc(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::erfc.Scalar(Scalar a) -> Scalar
    aten::erfc.float(float a) -> float
    aten::erfc.int(int a) -> float
    aten::erfinv(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::ceil(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::ceil.Scalar(Scalar a) -> Scalar
    aten::ceil.float(float a) -> int
    aten::ceil.int(int a) -> int
    aten::floor(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::floor.Scalar(Scalar a) -> Scalar
    aten::floor.float(float a) -> int
    aten::floor.int(int a) -> int
    aten::round(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::round.Scalar(Scalar a) -> Scalar
    aten::round.decimals(Tensor self, *, int decimals) -> Tensor
    aten::round.float(float a) -> float
    aten::round.int(int a) -> float
    aten::trunc(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::frac(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::sign(Tensor self) -> Tensor | pointwise=first takes=buif in-place
    aten::sgn(Tensor self) -> Tensor | pointwise=first in-place
    aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor | out=any
    aten::clamp_min(Tensor self, Scalar min) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor | out=any
    aten::clamp_max(Tensor self, Scalar max) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor | out=any
    aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor | pointwise=first-if-float in-place
    aten::lgamma(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::lgamma.Scalar(Scalar a) -> Scalar
    aten::lgamma.float(float a) -> float
    aten::lgamma.int(int a) -> float
    aten::digamma(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::angle(Tensor self) -> Tensor | pointwise out=any layout=varies
    aten::angle.Scalar(Scalar a) -> Scalar
    aten::angle.complex(complex a) -> float
    aten::angle.float(float a) -> float
    aten::angle.int(int a) -> float
    aten::rad2deg(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::deg2rad(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::signbit(Tensor self) -> Tensor | pointwise=bool takes=buif
    aten::isposinf(Tensor self) -> Tensor | pointwise=bool takes=buif
    aten::isneginf(Tensor self) -> Tensor | pointwise=bool takes=buif
    aten::isreal(Tensor self) -> Tensor | pointwise=bool out=none
    aten::sinc(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::i0(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::special_entr(Tensor self) -> Tensor | pointwise=float takes=buif out=any
    aten::special_i0e(Tensor self) -> Tensor | pointwise=float out=any
    aten::special_i1(Tensor self) -> Tensor | pointwise=float out=any
    aten::special_i1e(Tensor self) -> Tensor | pointwise=float out=any
    aten::polygamma(int n, Tensor self) -> Tensor | out=any
    aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)
    aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor | out=none
    aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor
    aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor | out=none
    aten::conj_physical(Tensor(a) self) -> Tensor(a)
    aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.add(
    *(
        ScalarSemantics(f"aten::{name}", algebra.PRIMITIVES[name])
        for name in (
            "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
            "reciprocal erfc erfinv lgamma digamma i0"
        ).split()
    ),
    *(ScalarSemantics(f"aten::special_{name}", algebra.PRIMITIVES[name]) for name in ("i0e", "i1", "i1e")),
    ScalarSemantics("aten::abs", algebra.absolute),
    ScalarSemantics("aten::erf", functions.erf),
    ScalarSemantics("aten::neg", algebra.negative),
    ScalarSemantics("aten::sigmoid", functions.sigmoid, ulp=4.0),
)


@FAMILY.semantics("aten::rsqrt", ulp=2.0)
def rsqrt(x: Expression) -> Expression:
    return reciprocal(sqrt(x))


@FAMILY.semantics("aten::square")
def square(x: Expression) -> Expression:
    return x * x


@FAMILY.semantics("aten::frac")
def frac(x: Expression) -> Expression:
    return x - trunc(x)


@FAMILY.semantics("aten::sign")
@FAMILY.semantics("aten::sgn")
def sgn(x: Expression) -> Expression:
    """-1, 0 or 1; 0 of NaN; of complex numbers, one of size 1 or 0 in the same direction."""
    if x.is_complex:
        size = abs(x)
        return x / cast(select(equal(size, 0), 1, size), x.dtype)
    if x.is_float:
        return sign(select(is_nan(x), 0, x))
    return sign(x) if x.is_integer else x


@FAMILY.semantics("aten::ceil")
def ceiling(x: Expression) -> Expression:
    return ceil(x) if x.is_float else x


@FAMILY.semantics("aten::floor")
def floored(x: Expression) -> Expression:
    return floor(x) if x.is_float else x


@FAMILY.semantics("aten::trunc")
def truncated(x: Expression) -> Expression:
    return trunc(x) if x.is_float else x


@FAMILY.semantics("aten::round")
def rounded(x: Expression, *, decimals: int | None = None) -> Expression:
    """To so many decimals by a power of ten, which loses what the type cannot hold."""
    if not x.is_float or not decimals:
        return rint(x) if x.is_float else x
    scale = 10.0 ** abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


@FAMILY.semantics("aten::deg2rad")
def deg2rad(x: Expression) -> Expression:
    return x * (math.pi / 180)


@FAMILY.semantics("aten::rad2deg")
def rad2deg(x: Expression) -> Expression:
    return x * (180 / math.pi)


@FAMILY.semantics("aten::angle")
def angle(x: Expression) -> Expression:
    """0 or pi, and NaN, of real numbers."""
    return select(is_nan(x), x, cast(less(x, 0), x.dtype) * math.pi)


@FAMILY.semantics("aten::signbit", result=None)
def is_negative(x: Expression) -> Expression:
    return signbit(x) if x.is_float else less(x, 0)


@FAMILY.semantics("aten::isposinf", result=None)
def is_positive_infinity(x: Expression) -> Expression:
    return equal(x, math.inf) if x.is_float else less(x, x)  # never


@FAMILY.semantics("aten::isneginf", result=None)
def is_negative_infinity(x: Expression) -> Expression:
    return equal(x, -math.inf) if x.is_float else less(x, x)


@FAMILY.semantics("aten::sinc", ulp=8.0, scale=0.25)
def sinc(x: Expression) -> Expression:
    """sin(pi x) / (pi x); 1 of 0."""
    angle = select(equal(x, 0), 1e-20, x) * math.pi
    return sin(angle) / angle


@FAMILY.semantics("aten::special_entr", ulp=4.0)
def entropy(x: Expression) -> Expression:
    """-x log(x), in double precision; 0 of 0, -inf below."""
    y = cast(x, DOUBLE)
    found = select(y > 0, -y * log(select(y > 0, y, 1)), select(equal(y, 0), 0, select(y < 0, -math.inf, y)))
    return cast(found, x.dtype)


@FAMILY.semantics("aten::nan_to_num")
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


@FAMILY.semantics("aten::clamp")
def clamp(x: Expression, low: Expression | None = None, high: Expression | None = None) -> Expression:
    """Between bounds, of which the upper one wins."""
    found = x if low is None else at_least(x, low)
    return found if high is None else at_most(found, high)


FAMILY.add(ScalarSemantics("aten::clamp_min", at_least), ScalarSemantics("aten::clamp_max", at_most))


# -- shapes -------------------------------------------------------------------

FAMILY.shape("angle")(shape_together)
FAMILY.shape("conj_physical")(like_first)
FAMILY.shape("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")(like_first_if_float)


@FAMILY.shape("abs", "square")
def magnitude(c: Call) -> Type:
    x = c.tensor(0)
    # The absolute values of complex numbers are real; squares of truth values are integers.
    return TensorType(x.dtype if x.dtype is not None and category(x.dtype) in (1, 2) else None, x.shape)


@FAMILY.shape("polygamma")
def polygamma(c: Call) -> Type:
    return TensorType(as_float(c.tensor("self").dtype), c.tensor("self").shape)
