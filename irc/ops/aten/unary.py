# ruff: noqa: E501 - a row is one line
"""Functions of one tensor."""

from __future__ import annotations

import math

import numpy as np

from irc.ir.types import TensorType, Type
from irc.ops import functions
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
    aten::{neg sgn}(Tensor self) -> Tensor | pointwise=first in-place
    aten::{exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid sinc}(Tensor self) -> Tensor | pointwise=float in-place out=any
    aten::square(Tensor self) -> Tensor | pointwise in-place out=any
    aten::{erf erfc erfinv lgamma digamma rad2deg deg2rad i0}(Tensor self) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::{ceil floor round trunc}(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::frac(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::sign(Tensor self) -> Tensor | pointwise=first takes=buif in-place
    aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor | out=any
    aten::clamp_min(Tensor self, Scalar min) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor | out=any
    aten::clamp_max(Tensor self, Scalar max) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor | out=any
    aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor | pointwise=first-if-float in-place
    aten::angle(Tensor self) -> Tensor | pointwise out=any layout=varies
    aten::{neg exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc ceil floor round lgamma angle}.Scalar(Scalar a) -> Scalar
    aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::{ceil floor}.float(float a) -> int
    aten::round.decimals(Tensor self, *, int decimals) -> Tensor
    aten::angle.complex(complex a) -> float
    aten::{neg exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc round lgamma angle}.float(float a) -> float
    aten::{neg ceil floor}.int(int a) -> int
    aten::log.float_float(float a, float b) -> float
    aten::log.float_int(float a, int b) -> float
    aten::{exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc round lgamma angle}.int(int a) -> float
    aten::log.int_float(int a, float b) -> float
    aten::log.int_int(int a, int b) -> float
    aten::{signbit isposinf isneginf}(Tensor self) -> Tensor | pointwise=bool takes=buif
    aten::isreal(Tensor self) -> Tensor | pointwise=bool out=none
    aten::special_entr(Tensor self) -> Tensor | pointwise=float takes=buif out=any
    aten::{special_i0e special_i1 special_i1e}(Tensor self) -> Tensor | pointwise=float out=any
    aten::polygamma(int n, Tensor self) -> Tensor | out=any
    aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)
    aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor | out=none
    aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor
    aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor | out=none
    aten::conj_physical(Tensor(a) self) -> Tensor(a)
    aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.primitives(
    "abs=absolute acos acosh asin asinh atan atanh clamp_max=at_most clamp_min=at_least cos cosh digamma erf erfc erfinv "
    "exp exp2 expm1 i0 lgamma log log10 log1p log2 neg=negative reciprocal sin sinh special_i0e=i0e special_i1=i1 "
    "special_i1e=i1e sqrt tan tanh"
)
FAMILY.add(ScalarSemantics("aten::sigmoid", functions.sigmoid, ulp=4.0))


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
