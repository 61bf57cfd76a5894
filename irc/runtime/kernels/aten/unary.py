"""Functions of one tensor or number, element by element, activations with parameters among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.aten import pointwise
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import wrapped
from irc.runtime.kernels.aten.creation import uniform
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    FLOAT32,
    INT64,
    as_float,
    check_kind,
    element_of,
    is_floating,
    is_integral,
    result_type,
    wide,
)
from irc.runtime.kernels.aten.pointwise import (
    Computation,
    Compute,
    computed,
    of_one,
    of_parameters,
    on_numbers,
    register,
    run,
)
from irc.runtime.kernels.aten.registering import aten, one, two
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.special import polygamma, safely
from irc.runtime.kernels.support import AnyDType, Array, axis_in, shapes_of
from irc.runtime.values import is_array


def _square(x: Array) -> Computation:
    return Computation(computed("square"), (x,), INT64 if x.dtype == BOOL else x.dtype)


def _magnitude(x: Array) -> Computation:
    real = x.real.dtype if x.dtype.kind == "c" else None
    return Computation(np.absolute, (x,), x.dtype, real)


def _round(x: Array, decimals: int | None = None) -> Computation:
    if decimals is not None and is_integral(x.dtype):
        raise Error("IRC423", f"round to decimals is of floating-point numbers, not of {x.dtype.name}")
    return Computation(computed("round", decimals), (x,), x.dtype)


def _log_python(x: Any, base: Any = None) -> float:
    found = on_numbers(np.log)(x)
    return found if base is None else on_numbers(np.divide)(found, on_numbers(np.log)(base))


def _whole(rounding: np.ufunc) -> Kernel:
    def run(x: Any) -> int:
        value = float(rounding(np.float64(x)))
        if not math.isfinite(value) or wrapped(int(value)) != value:
            raise Error("IRC423", f"{value!r} does not fit into an integer of 64 bits")
        return int(value)

    return run


def _log_of_successor(x: Array, out: Array | None = None) -> Any:
    """log(1 + x); of complex numbers near 0 without the digits that 1 + x loses."""
    if x.dtype.kind != "c":
        return np.log1p(x, out=out)
    real, imaginary = x.real, x.imag
    near = np.log1p(real * (2 + real) + imaginary * imaginary) / 2
    length = np.where(np.abs(x) < 0.5, near, np.log(np.hypot(1 + real, imaginary)))
    found = np.empty(x.shape, x.dtype) if out is None else out
    angle = np.arctan2(imaginary, 1 + real)
    found.real, found.imag = length, angle
    return found


_ON_NUMBERS = ("exp exp2 expm1 log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh").split()
for _name in _ON_NUMBERS:
    register(_name, python=on_numbers(computed(_name)))
register("log", python=_log_python)
register("log1p", of_one(_log_of_successor), python=on_numbers(np.log1p))
for _name in (
    "sigmoid rsqrt reciprocal deg2rad rad2deg signbit isposinf isneginf sinc i0 special_entr special_i0e special_i1 "
    "special_i1e sign sgn frac trunc erfinv digamma bitwise_not relu relu6"
).split():
    register(_name)


def _angle(x: Array) -> Computation:
    """0 or pi, and not-a-number, of real numbers."""
    if x.dtype.kind == "c":
        return Computation(np.angle, (np.asarray(x, order="C"),), x.dtype, x.real.dtype)

    return Computation(computed("angle"), (x,), as_float(x.dtype))


def _is_real(x: Array, out: Array | None = None) -> Any:
    return np.equal(x.imag, 0, out=out)


def frexp(x: Any) -> tuple[Any, Any]:
    """Mantissa, from 0.5 to below 1, and exponent, of a number or of each element."""
    if not is_array(x):
        return math.frexp(x)
    if not is_floating(x.dtype):
        raise Error("IRC423", f"frexp takes apart floating-point numbers, not elements of type {x.dtype.name}")
    mantissa, exponent = np.frexp(x.astype(wide(x.dtype)))
    return layout.like(np.asarray(mantissa).astype(x.dtype), x), layout.like(np.asarray(exponent, np.int32), x)


register("angle", _angle, python=one(lambda x: float(np.angle(x))))
register("isreal", of_one(_is_real))
register("neg", python=one(lambda x: wrapped(-x)))
register("abs", _magnitude, python=one(lambda x: wrapped(abs(x))))
register("square", _square)
register("ceil", python=_whole(np.ceil))
register("floor", python=_whole(np.floor))
register("round", _round, python=on_numbers(np.rint))

register("erf", python=math.erf)
register("erfc", python=math.erfc)
register("lgamma", python=safely(math.lgamma))


def _derivative(x: Array, n: int) -> Computation:
    if n < 0:
        raise Error("IRC424", f"polygamma takes derivatives from the 0th on, not the {n}th")
    return of_parameters(polygamma)(x, n)


aten("polygamma")(two(lambda n, x: run(_derivative(x, n))))
aten("polygamma_")(two(lambda x, n: run(_derivative(x, n), into=x)))
register("logical_not", of_one(np.logical_not))
for _name, _ufunc in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
    register(_name, python=on_numbers(_ufunc, bool))


def _clamp(x: Array, low: Any = None, high: Any = None) -> Computation:
    """Between bounds that are numbers or tensors; the upper one wins."""
    given = [b for b in (low, high) if b is not None]
    if not given:
        raise Error("IRC424", "clamp needs a lower or an upper bound, or both")
    dtype = result_type(x, *given)
    check_kind("clamp", dtype)
    if dtype == BOOL and low is not None and high is not None:  # else the larger or smaller of both
        raise Error("IRC423", "clamp is not defined on bools; convert them")
    given = [b if is_array(b) else element_of(b, dtype) for b in given]  # which refuses numbers that do not fit

    if low is None:
        return Computation(_AT_MOST, (x, *given), dtype)
    return Computation(_AT_LEAST if high is None else _CLAMPED, (x, *given), dtype)


_AT_LEAST, _AT_MOST, _CLAMPED = computed("clamp_min"), computed("clamp_max"), computed("clamp")


def _nan_to_num(x: Array, nan: Any = None, above: Any = None, below: Any = None) -> Computation:
    """Numbers in place of what is not finite, by default 0 and the largest ones there are."""
    if is_integral(x.dtype):
        return Computation(computed("nan_to_num"), (x,), x.dtype)
    limits = np.finfo(x.dtype) if x.dtype.kind != "V" else _small_limits(x.dtype)
    high = float(limits.max) if above is None else above
    low = float(limits.min) if below is None else below

    def compute(a: Array, out: Array | None = None) -> Any:
        """What the record says, of complex numbers too, in half of the time: few elements are not finite."""
        return np.positive(np.nan_to_num(a, nan=nan or 0.0, posinf=high, neginf=low), out=out)

    return Computation(compute, (x,), x.dtype)


def _small_limits(dtype: AnyDType) -> Any:
    import ml_dtypes  # slow to import, needed only for its own types

    limits: Any = ml_dtypes.finfo
    return limits(dtype)


register("clamp", _clamp)
register("clamp_min", _clamp)
register("clamp_max", two(lambda x, high: _clamp(x, None, high)))
register("nan_to_num", _nan_to_num)


# -- activation functions with parameters --------------------------------------


def _hardtanh(x: Array, low: Any = -1, high: Any = 1) -> Computation:
    if x.dtype.kind == "u" and min(low, high) < 0:
        raise Error("IRC423", f"hardtanh's limits, {low} and {high}, must not be negative for {x.dtype.name}")
    return Computation(computed("hardtanh", element_of(low, x.dtype), element_of(high, x.dtype)), (x,), x.dtype)


def _random_slopes(
    lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Compute:
    """The mean slope for negative numbers; in training one each, drawn evenly between the bounds."""
    if not lower <= upper or (math.isinf(upper - lower) and not training):
        raise Error("IRC424", f"rrelu cannot draw slopes between {lower} and {upper}")
    if not training:
        return computed("leaky_relu", (lower + upper) / 2)

    def function(x: Array, out: Array) -> None:
        slopes = (lower + (upper - lower) * uniform(x.shape)).astype(x.dtype)
        np.copyto(out, np.where(x > 0, x, x * slopes))

    return function


def _celu(x: Array, alpha: float = 1.0) -> Computation:
    if alpha == 0:
        raise Error("IRC424", "celu's alpha must not be 0")
    return Computation(computed("celu", alpha), (x,), x.dtype)


def _gelu(x: Array, approximate: str = "none") -> Computation:
    try:
        compute = computed("gelu", approximate)
    except Error as error:
        raise Error("IRC423", error.message) from None
    return Computation(compute, (x,), x.dtype)


_log_sigmoid = of_expression(pointwise.log_sigmoid, 1)


def log_sigmoid(x: Array, *, out: Array | None = None) -> Array:
    """``log(sigmoid(x))``, which lies in order, however ``x`` lies."""
    return _log_sigmoid(x, out)


def _hardshrink(x: Array, limit: Any = 0.5) -> Computation:
    return Computation(computed("hardshrink"), (x, limit), as_float(x.dtype))


def _softshrink(x: Array, limit: Any = 0.5) -> Computation:
    if not 0 <= limit < math.inf:
        raise Error("IRC424", f"softshrink moves numbers towards 0 by {limit}: it must be finite, not negative")
    return Computation(computed("softshrink", limit), (x,), x.dtype)


def _threshold(x: Array, limit: Any, value: Any) -> Computation:
    if is_integral(x.dtype):
        limit = element_of(limit, x.dtype)
    value = element_of(value, x.dtype)

    return Computation(computed("threshold", limit, value), (x,), x.dtype)


def _prelu(x: Array, weight: Array) -> Computation:
    """The slope is one for all, or one a channel."""
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or (weight.size != 1 and (weight.size != channels or not x.ndim)):
        raise Error("IRC421", f"{channels} channels need one slope, or as many, not {list(weight.shape)}")
    slope = weight.reshape(()) if weight.size == 1 else weight.reshape(-1, *(1,) * (x.ndim - 2))

    return Computation(computed("prelu"), (x, slope), result_type(x, weight))


def _glu(x: Array, dim: int = -1) -> Computation:
    """The first half along a dimension, gated by the sigmoid of the second."""
    axis = axis_in(dim, x.ndim)
    if x.shape[axis] % 2:
        raise Error("IRC421", f"glu halves dimension {dim}, whose size is {x.shape[axis]}")
    value, gate = np.split(x, 2, axis)

    return Computation(computed("glu"), (value, gate), as_float(x.dtype))


_with_slopes = of_parameters(_random_slopes)


def rrelu(x: Array, *parameters: Any) -> Array:
    return np.asarray(run(_with_slopes(x, *parameters)), order="C")


def rrelu_(x: Array, *parameters: Any) -> Array:
    return run(_with_slopes(x, *parameters), into=x)


for _name in ("elu hardsigmoid hardswish leaky_relu logit mish selu silu softplus").split():
    register(_name)
register("celu", _celu)
register("gelu", _gelu)
register("glu", _glu)
register("hardshrink", _hardshrink)
register("hardtanh", _hardtanh)
register("prelu", _prelu)
register("softshrink", _softshrink)
register("threshold", _threshold)


def _rounded(x: Array, scale: Any, zero: Any, low: int, high: int, within: AnyDType = FLOAT32) -> Array:
    check_kind("hardswish", x.dtype)
    if low > high:
        raise Error("IRC424", f"integers from {low} to {high}: there are none")
    factor, offset = np.asarray(scale, FLOAT32), np.asarray(zero, FLOAT32)
    places = np.rint(x.astype(within, copy=False) * (1 / factor)) + offset
    whole = np.where(np.isnan(places), low, np.clip(places, low, high))
    return layout.like(np.asarray((whole - offset).astype(within, copy=False) * factor).astype(x.dtype, copy=False), x)


def fake_quantize_per_tensor_affine(x: Array, scale: Any, zero_point: Any, low: int, high: int) -> Array:
    """With a single scale and zero point: numbers, or tensors of one element."""
    if is_array(scale):
        return _rounded(x, scale.reshape(()), zero_point.reshape(()), low, high)
    if not low <= zero_point <= high:
        raise Error("IRC424", f"the zero point {zero_point} is not between {low} and {high}")
    return _rounded(x, scale, zero_point, low, high)


def fake_quantize_per_channel_affine(
    x: Array, scale: Array, zero_point: Array, axis: int, low: int, high: int
) -> Array:
    """With a scale and a zero point for each index along ``axis``."""
    if not 0 <= axis < x.ndim:
        raise Error("IRC420", f"there is no dimension {axis} of {x.ndim}")
    if scale.ndim != 1 or zero_point.ndim != 1 or not scale.size == zero_point.size == x.shape[axis]:
        shapes = shapes_of(scale, zero_point)
        raise Error("IRC421", f"scales and zero points of shapes {shapes} do not fit {list(x.shape)} along {axis}")
    if zero_point.size and not low <= zero_point.min() <= zero_point.max() <= high:
        raise Error("IRC424", f"a zero point is not between {low} and {high}")
    column = [-1 if i == axis else 1 for i in range(x.ndim)]
    return _rounded(x, scale.reshape(column), zero_point.reshape(column), low, high, wide(x.dtype))
