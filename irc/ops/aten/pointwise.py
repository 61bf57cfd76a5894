# ruff: noqa: E501 - a row is one line
"""Pointwise operators, also on numbers and strings: functions, arithmetic, selection, softmax."""

from __future__ import annotations

import math

import numpy as np

from irc.ir.types import DType, Shape, TensorType, Type
from irc.ops import Choice, Effects, ScalarSemantics, algebra, sizes
from irc.ops.algebra import (
    Expression,
    at_least,
    at_most,
    cast,
    equal,
    exp,
    is_nan,
    less,
    log,
    maximum,
    minimum,
    rint,
    select,
    trunc,
)
from irc.ops.aten.call import (
    Call,
    TorchFamily,
    as_float,
    element_type,
    floats,
    if_float,
    is_integral,
    like_first,
    like_first_if_float,
    resized,
    shape_together,
    together,
)
from irc.ops.inference import UNKNOWN

FUNCTIONS = """
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
    aten::clamp_{min max}(Tensor self, Scalar {}) -> Tensor | pointwise=common takes=buif in-place
    aten::clamp_{min max}.Tensor(Tensor self, Tensor {}) -> Tensor | out=any
    aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor | pointwise=first-if-float in-place
    aten::angle(Tensor self) -> Tensor | pointwise out=any layout=varies
    aten::{neg exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc ceil floor round lgamma angle}.Scalar(Scalar a) -> Scalar
    aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::{ceil floor}.float(float a) -> int
    aten::round.decimals(Tensor self, *, int decimals) -> Tensor
    aten::angle.complex(complex a) -> float
    aten::{neg exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc round lgamma angle}.float(float a) -> float
    aten::{neg ceil floor}.int(int a) -> int
    aten::log.{float int}_float({} a, float b) -> float
    aten::log.{float int}_int({} a, int b) -> float
    aten::{exp expm1 log log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc round lgamma angle}.int(int a) -> float
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

ACTIVATIONS = """
    aten::relu(Tensor self) -> Tensor | pointwise=first takes=uif in-place
    aten::relu6(Tensor self) -> Tensor | pointwise=first-if-float takes=uif in-place out=none
    aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor | pointwise=first-if-float takes=uif in-place
    aten::{hardsigmoid hardswish mish}(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::selu(Tensor self) -> Tensor | pointwise=first-if-float takes=f in-place out=none
    aten::celu(Tensor self, Scalar alpha=1.) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::gelu(Tensor self, *, str approximate="none") -> Tensor | pointwise=first-if-float takes=f in-place
    aten::silu(Tensor self) -> Tensor | pointwise=first-if-float takes=fc in-place
    aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor | pointwise=first-if-float takes=f
    aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor | pointwise=first-if-float takes=f in-place
    aten::prelu(Tensor self, Tensor weight) -> Tensor | takes=f out=none
    aten::logit(Tensor self, float? eps=None) -> Tensor | pointwise=float takes=buif in-place out=any
    aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor | pointwise=first-if-float takes=uif in-place out=any
    aten::log_sigmoid(Tensor self) -> Tensor | pointwise=first-if-float takes=f layout=varies
    aten::{hardshrink softshrink}(Tensor self, Scalar lambd=0.5) -> Tensor | pointwise=first-if-float takes=f
    aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor | takes=f in-place out=none
    aten::{softmax log_softmax}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
    aten::{_softmax _log_softmax}(Tensor self, int dim, bool half_to_float) -> Tensor | takes=f
    aten::glu(Tensor self, int dim=-1) -> Tensor | takes=f out=any
    """

ARITHMETIC = """
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
    aten::pow.Tensor_{Scalar Tensor}(Tensor self, {} exponent) -> Tensor | out=any
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
    aten::{mul_ floor_divide_}.{Scalar Tensor}(Tensor(a!) self, {} other) -> Tensor(a!)
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
    aten::nextafter(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=f in-place out=any
    aten::ldexp(float x, int i) -> float
    aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor | pointwise
    aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor | pointwise=wider
    aten::float_power.Tensor_{Scalar Tensor}(Tensor self, {} exponent) -> Tensor
    aten::add.t(t(b)[] a, t(c)[] b) -> t(b|c)[]
    aten::add_.t(t(b)[](a!) self, t(c -> b)[] b) -> t(b)[](a!)
    aten::mul.left_t(t(b)[] l, int n) -> t(b)[]
    aten::mul.right_(int n, t(b)[] l) -> t(b)[]
    aten::mul_.t(t[](a!) l, int n) -> t[](a!)
    """

LOGIC = """
    aten::bitwise_not(Tensor self) -> Tensor | pointwise=first in-place
    aten::logical_not(Tensor self) -> Tensor | pointwise=bool in-place out=any
    aten::{isnan isinf}(Tensor self) -> Tensor | pointwise=bool
    aten::isfinite(Tensor self) -> Tensor | pointwise=bool out=none
    aten::{isnan isinf isfinite}.float(float a) -> bool
    aten::{eq ne lt le gt ge}(Scalar a, Scalar b) -> bool
    aten::{eq ne}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=bool in-place out=any
    aten::{lt le gt ge}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=bool takes-both=buif in-place out=any
    aten::equal(Tensor self, Tensor other) -> bool
    aten::{logical_and logical_or logical_xor}(Tensor self, Tensor other) -> Tensor | pointwise=bool in-place out=any
    aten::{bitwise_and bitwise_or bitwise_xor}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common in-place out=any
    aten::{bitwise_and bitwise_or bitwise_xor}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
    aten::{eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor}.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::{eq ne}.{Tensor bool float int str}_list({}[] a, {}[] b) -> bool
    aten::{bitwise_left_shift bitwise_right_shift}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor | pointwise=common in-place
    aten::{bitwise_left_shift bitwise_right_shift}.Tensor(Tensor self, Tensor other) -> Tensor | takes-both=ui out=any
    aten::{bitwise_left_shift bitwise_right_shift}.Tensor_Scalar(Tensor self, Scalar other) -> Tensor | out=any
    aten::{__and__ __or__ __xor__}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common out=none
    aten::{__iand__ __ior__ __ixor__}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!) | out=none
    aten::{__ilshift__ __irshift__}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!) | takes=ui out=none
    aten::{__lshift__ __rshift__}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common takes-both=ui
    aten::{__and__ __or__ __xor__ __lshift__ __rshift__}.Tensor(Tensor self, Tensor other) -> Tensor
    aten::{eq ne __and__ __or__ __xor__}.bool(bool a, bool b) -> bool
    aten::{eq ne}.device(Device a, Device b) -> bool
    aten::{eq ne}.enum(AnyEnumType a, AnyEnumType b) -> bool
    aten::{eq ne lt le gt ge}.{float int str}({} a, {} b) -> bool
    aten::{eq ne lt le gt ge}.float_int(float a, int b) -> bool
    aten::{eq ne lt le gt ge}.int_float(int a, float b) -> bool
    aten::{__and__ __or__ __xor__ __lshift__ __rshift__}.int(int a, int b) -> int
    aten::where(Tensor condition) -> Tensor[]
    aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
    aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
    aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
    aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor | pointwise=common
    aten::masked_fill.{Scalar Tensor}(Tensor self, Tensor mask, {} value) -> Tensor | pointwise in-place
    aten::masked_select(Tensor self, Tensor mask) -> Tensor
    aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor | in-place layout=like-first
    aten::fill.{Scalar Tensor}(Tensor self, {} value) -> Tensor | in-place layout=like-first
    aten::zero_(Tensor(a!) self) -> Tensor(a!)
    aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
    aten::{__iand__ __ior__ __ixor__ __ilshift__ __irshift__ copy_}.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::copy_.{float int}(Tensor(a!) self, {} other) -> Tensor(a!)
    """

FAMILY = TorchFamily(FUNCTIONS + ACTIVATIONS + ARITHMETIC + LOGIC)
FAMILY.each("copy_ fill_ zero_", overwrites=True)
FAMILY.primitives(
    "abs=absolute acos acosh asin asinh atan atanh clamp_max=at_most clamp_min=at_least cos cosh digamma erf erfc erfinv "
    "exp exp2 expm1 i0 lgamma log log10 log1p log2 neg=negative reciprocal sin sinh special_i0e=i0e special_i1=i1 "
    "special_i1e=i1e sqrt tan tanh"
)
FAMILY.add(ScalarSemantics("aten::sigmoid", algebra.sigmoid, ulp=4.0), ScalarSemantics("aten::clamp", algebra.clip))


FAMILY.unary("rsqrt", lambda x: algebra.reciprocal(algebra.sqrt(x)), ulp=2.0)
FAMILY.unary("square", lambda x: x * x)
FAMILY.unary("frac", lambda x: x - trunc(x))


@FAMILY.semantics("aten::sign")
@FAMILY.semantics("aten::sgn")
def sgn(x: Expression) -> Expression:
    """-1, 0 or 1; 0 of NaN; of complex numbers, one of size 1 or 0 in the same direction."""
    if x.is_complex:
        size = abs(x)
        return x / cast(select(equal(size, 0), 1, size), x.dtype)
    if x.is_float:
        return algebra.sign(select(is_nan(x), 0, x))
    return algebra.sign(x) if x.is_integer else x


FAMILY.unary("ceil", lambda x: algebra.ceil(x) if x.is_float else x)
FAMILY.unary("floor", lambda x: algebra.floor(x) if x.is_float else x)
FAMILY.unary("trunc", lambda x: trunc(x) if x.is_float else x)


@FAMILY.semantics("aten::round")
def rounded(x: Expression, *, decimals: int | None = None) -> Expression:
    """Round to decimals by a power of ten, which loses what the type cannot hold."""
    if not x.is_float or not decimals:
        return rint(x) if x.is_float else x
    scale = 10.0 ** abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


FAMILY.unary("deg2rad", lambda x: x * (math.pi / 180))
FAMILY.unary("rad2deg", lambda x: x * (180 / math.pi))


@FAMILY.semantics("aten::angle")
def angle(x: Expression) -> Expression:
    """0 or pi, and NaN, of real numbers."""
    return select(is_nan(x), x, cast(less(x, 0), x.dtype) * math.pi)


FAMILY.unary("signbit", lambda x: algebra.signbit(x) if x.is_float else less(x, 0), result=None)


# Integers never are: none is below itself.
FAMILY.unary("isposinf", lambda x: equal(x, math.inf) if x.is_float else less(x, x), result=None)
FAMILY.unary("isneginf", lambda x: equal(x, -math.inf) if x.is_float else less(x, x), result=None)


@FAMILY.semantics("aten::sinc", ulp=8.0, scale=0.25)
def sinc(x: Expression) -> Expression:
    """sin(pi x) / (pi x); 1 of 0."""
    angle = select(equal(x, 0), 1e-20, x) * math.pi
    return algebra.sin(angle) / angle


@FAMILY.semantics("aten::special_entr", ulp=4.0)
def entropy(x: Expression) -> Expression:
    """-x log(x), in double precision; 0 of 0, -inf below."""
    y = cast(x, algebra.DOUBLE)
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


# -- shapes -------------------------------------------------------------------

FAMILY.shape("angle")(shape_together)
FAMILY.shape("conj_physical")(like_first)
FAMILY.shape("fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine")(like_first_if_float)


@FAMILY.shape("abs", "square")
def magnitude(c: Call) -> Type:
    x = c.tensor(0)
    # The absolute values of complex numbers are real; squares of truth values are integers.
    return TensorType(x.dtype if x.dtype is not None and (x.dtype.is_integer or x.dtype.is_float) else None, x.shape)


FAMILY.shape("polygamma")(lambda c: TensorType(as_float(c.tensor("self").dtype), c.tensor("self").shape))


# -- activation functions, softmax ---------------------------------------------


FAMILY.each("rrelu rrelu_", effects=Effects.RANDOM, random_switch="training")
FAMILY.add(
    ScalarSemantics(
        "aten::gelu",
        Choice("approximate", {"none": algebra.gelu, "tanh": algebra.gelu_tanh}, "none"),
        ulp=4.0,
        scale=0.25,
    ),
    ScalarSemantics("aten::mish", algebra.mish, ulp=8.0),
    ScalarSemantics("aten::silu", algebra.silu, ulp=8.0, scale=1e-3),
)


FAMILY.unary("relu", lambda x: at_least(x, 0))


@FAMILY.semantics("aten::relu6")
def relu6(x: Expression) -> Expression:
    return hardtanh(x, min_val=0, max_val=6)


@FAMILY.semantics("aten::hardtanh")
def hardtanh(x: Expression, *, min_val: float = -1, max_val: float = 1) -> Expression:
    return at_most(at_least(x, min_val), max_val)


@FAMILY.semantics("aten::leaky_relu")
def leaky_relu(x: Expression, *, negative_slope: float = 0.01) -> Expression:
    scaled = x * negative_slope
    if 0 < negative_slope <= 1:  # then one comparison with slope x selects the right one
        return maximum(x, scaled)
    return select(x > 0, x, scaled)


FAMILY.binary("prelu", lambda x, weight: select(x > 0, x, x * weight))


@FAMILY.semantics("aten::elu", ulp=4.0)
def elu(x: Expression, *, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expression:
    return select(x >= 0, x * scale, algebra.expm1(at_most(x, 0) * input_scale) * (alpha * scale))


FAMILY.unary("celu", lambda x, *, alpha=1.0: elu(x, alpha=alpha, input_scale=1 / alpha), ulp=4.0)


@FAMILY.semantics("aten::selu", ulp=4.0)
def selu(x: Expression) -> Expression:
    return elu(x, alpha=1.6732632423543772848170429916717, scale=1.0507009873554804934193349852946)


@FAMILY.semantics("aten::softplus", ulp=8.0)
def softplus(x: Expression, *, beta: float = 1, threshold: float = 20) -> Expression:
    scaled = x * beta
    return select(scaled > threshold, x, algebra.log1p(exp(minimum(scaled, threshold))) / beta)


FAMILY.unary("hardsigmoid", lambda x: minimum(maximum(x + 3, 0), 6) / 6, ulp=2.0, scale=0.25)


@FAMILY.semantics("aten::hardswish", ulp=2.0, scale=0.25)
def hardswish(x: Expression) -> Expression:
    return x * minimum(maximum(x + 3, 0), 6) / 6


@FAMILY.semantics("aten::logit", ulp=8.0, scale=0.25)
def logit(x: Expression, *, eps: float | None = None) -> Expression:
    """log(x / (1 - x)) of x clamped to eps and 1 - eps; by the lower bound first, should it be larger."""
    if eps is not None:
        x = select(x < eps, eps, select(x > 1 - eps, 1 - eps, x))
    return log(x / (1 - x))


@FAMILY.semantics("aten::log_sigmoid", ulp=4.0)
def log_sigmoid(x: Expression) -> Expression:
    return minimum(x, 0) - algebra.log1p(exp(-abs(x)))


FAMILY.binary("hardshrink", lambda x, lambd: select(abs(x) <= lambd, 0, x))


FAMILY.unary("softshrink", lambda x, *, lambd=0.5: algebra.copysign(maximum(abs(x) - lambd, 0), x))


FAMILY.unary("threshold", lambda x, *, threshold=0.0, value=0.0: select(x <= threshold, value, x))


@FAMILY.semantics("aten::glu", ulp=8.0, scale=1e-3)
def glu(value: Expression, gate: Expression) -> Expression:
    """Of the halves of an operand along one axis."""
    return value / (exp(-gate) + 1)


# -- shapes -------------------------------------------------------------------

FAMILY.shape("prelu", "rrelu", "_softmax", "_log_softmax")(like_first_if_float)


@FAMILY.shape("softmax", "log_softmax")
def softmax(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    return TensorType(if_float(x.dtype) if given is None else element_type(given), x.shape)


@FAMILY.reshapes("glu")
def halved(c: Call, x: Shape) -> Shape | None:
    at = c.axis(c.arg("dim"), len(x))
    if at is None or not x:
        return None
    size = x[at]
    return resized(x, at, size // 2 if isinstance(size, int) else None)


# -- arithmetic ----------------------------------------------------------------


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
    return algebra.divide(x, y) if x.is_integer else trunc(x / y)


FAMILY.add(
    ScalarSemantics(
        "aten::div",
        Choice("rounding_mode", {None: algebra.divide, "floor": algebra.floor_divide, "trunc": truncated_quotient}),
        ulp=1.0,
    )
)


@FAMILY.semantics("aten::remainder")
def with_sign_of_divisor(x: Expression, y: Expression) -> Expression:
    """A remainder of 0 has the dividend's sign, as torch computes it."""
    if x.is_integer:
        return algebra.remainder(x, y)
    rest = algebra.truncated_remainder(x, y)
    return select(algebra.logical_and(algebra.not_equal(rest, 0), algebra.logical_xor(y < 0, rest < 0)), rest + y, rest)


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
    zero = algebra.logical_and(equal(x, 0), algebra.logical_not(is_nan(y)))
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
    known = found.dtype is not None and (is_integral(found.dtype) or found.dtype.is_float)
    return TensorType(DType.DOUBLE if known else None, found.shape)


# -- comparisons, truth values, bits, and selection by them --------------------


FAMILY.each("where", size=sizes.nonzero)
FAMILY.each("masked_select", size=sizes.broadcast)
FAMILY.primitives(
    "bitwise_and __and__=bitwise_and bitwise_or __or__=bitwise_or bitwise_xor __xor__=bitwise_xor bitwise_not "
    "bitwise_left_shift=shift_left __lshift__=shift_left bitwise_right_shift=shift_right __rshift__=shift_right"
)
FAMILY.primitives(
    "logical_and logical_not logical_or logical_xor isfinite=is_finite isinf=is_infinite isnan=is_nan "
    "eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal",
    result=None,
)
FAMILY.primitives("where=select", result=1)


@FAMILY.semantics("aten::masked_fill")
def masked_fill(x: Expression, mask: Expression, value: Expression) -> Expression:
    return select(mask, value, x)


# -- shapes -------------------------------------------------------------------

FAMILY.shape("fill")(like_first)


@FAMILY.shape("masked_fill", "masked_scatter")
def masked(c: Call) -> Type:
    return TensorType(c.tensor("self").dtype, c.broadcast([c.tensor("self").shape, c.tensor("mask").shape]))


FAMILY.shape("masked_select")(lambda c: TensorType(c.tensor(0).dtype, (None,)))
