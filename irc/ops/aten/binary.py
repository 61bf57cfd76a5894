# ruff: noqa: E501 - a row is one line
"""Arithmetic on two or three operands, element by element."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family

ROWS = """
    aten::add(Scalar a, Scalar b) -> Scalar
    aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor | pointwise=common
    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor | out=any
    aten::add.float(float a, float b) -> float
    aten::add.float_int(float a, int b) -> float
    aten::add.int(int a, int b) -> int
    aten::add.int_float(int a, float b) -> float
    aten::add.str(str a, str b) -> str
    aten::sub(Scalar a, Scalar b) -> Scalar
    aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor | pointwise=common in-place
    aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor | out=any
    aten::sub.float(float a, float b) -> float
    aten::sub.float_int(float a, int b) -> float
    aten::sub.int(int a, int b) -> int
    aten::sub.int_float(int a, float b) -> float
    aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor | pointwise=common
    aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::mul(Scalar a, Scalar b) -> Scalar
    aten::mul.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common
    aten::mul.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::mul.float(float a, float b) -> float
    aten::mul.float_int(float a, int b) -> float
    aten::mul.int(int a, int b) -> int
    aten::mul.int_float(int a, float b) -> float
    aten::div(Scalar a, Scalar b) -> float
    aten::div.Scalar(Tensor self, Scalar other) -> Tensor | pointwise in-place
    aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
    aten::div.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor | out=any
    aten::div.float(float a, float b) -> float
    aten::div.int(int a, int b) -> float
    aten::floor_divide(Tensor self, Tensor other) -> Tensor | pointwise=common out=any
    aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
    aten::remainder(Scalar a, Scalar b) -> Scalar
    aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common in-place out=any
    aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
    aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::remainder.float(float a, float b) -> float
    aten::remainder.float_int(float a, int b) -> float
    aten::remainder.int(int a, int b) -> int
    aten::remainder.int_float(int a, float b) -> float
    aten::fmod(Scalar a, Scalar b) -> float
    aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common in-place out=any
    aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::fmod.float(float a, float b) -> float
    aten::fmod.float_int(float a, int b) -> float
    aten::fmod.int(int a, int b) -> float
    aten::fmod.int_float(int a, float b) -> float
    aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor | pointwise=common
    aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor | out=any
    aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor | out=any
    aten::pow.float(float a, float b) -> float
    aten::pow.float_int(float a, int b) -> float
    aten::pow.int(int a, int b) -> float
    aten::pow.int_float(int a, float b) -> float
    aten::pow.int_to_int(int a, int b) -> int
    aten::atan2(Tensor self, Tensor other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::atan2.Scalar_Scalar(Scalar a, Scalar b) -> float
    aten::atan2.float(float a, float b) -> float
    aten::atan2.float_int(float a, int b) -> float
    aten::atan2.int(int a, int b) -> float
    aten::atan2.int_float(int a, float b) -> float
    aten::maximum(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=buif out=any
    aten::minimum(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=buif out=any
    aten::fmax(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=buif out=any
    aten::fmin(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=buif out=any
    aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor | pointwise=common takes=fc in-place out=any
    aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor
    aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor | pointwise=common in-place out=any
    aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor | pointwise=common in-place out=any
    aten::copysign(Scalar a, Scalar b) -> float
    aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::copysign.float(float a, float b) -> float
    aten::copysign.float_int(float a, int b) -> float
    aten::copysign.int(int a, int b) -> float
    aten::copysign.int_float(int a, float b) -> float
    aten::hypot(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=f in-place out=any
    aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor | pointwise=float takes-both=buif in-place out=any
    aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor | out=any
    aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
    aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
    aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
    aten::float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
    aten::float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
    aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
    aten::logaddexp(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=fc out=any
    aten::logaddexp2(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=f out=any
    aten::gcd(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=ui in-place out=any
    aten::gcd.int(int a, int b) -> int
    aten::lcm(Tensor self, Tensor other) -> Tensor | pointwise=common takes-both=ui in-place out=any
    aten::heaviside(Tensor self, Tensor values) -> Tensor | pointwise=common takes=buif in-place
    aten::nextafter(Tensor self, Tensor other) -> Tensor | pointwise=common in-place out=any
    aten::ldexp(float x, int i) -> float
    aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor | pointwise
    aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor | pointwise
    aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
    aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
    """

FAMILY = Family("aten", tags.statements(ROWS))
