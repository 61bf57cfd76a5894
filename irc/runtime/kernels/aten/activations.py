"""Activation functions with parameters, which are Python numbers and known only when the operator runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels import numerics
from irc.runtime.kernels.aten.element_types import as_float, element_of, is_integral, result_type
from irc.runtime.kernels.aten.pointwise import Computation, of_one, of_parameters, register, run
from irc.runtime.kernels.aten.random import uniform
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.numerics import Function
from irc.runtime.kernels.pointwise import of_function
from irc.runtime.kernels.support import Array, axis_in


def _relu(x: Array, out: Array | None = None) -> Any:
    return numerics.at_least(x, np.zeros((), x.dtype), out)


def _between(low: Any, high: Any) -> Callable[..., Any]:
    def compute(x: Array, out: Array | None = None) -> Any:
        return numerics.at_most(numerics.at_least(x, np.array(low, x.dtype)), np.array(high, x.dtype), out)

    return compute


def _hardtanh(x: Array, low: Any = -1, high: Any = 1) -> Computation:
    if x.dtype.kind == "u" and min(low, high) < 0:
        raise Error(
            "IRC423", f"hardtanh's limits, {low} and {high}, must not be negative for elements of {x.dtype.name}"
        )
    return Computation(_between(element_of(low, x.dtype), element_of(high, x.dtype)), (x,), x.dtype)


def _leaky_relu(slope: float = 0.01) -> Function:
    select = np.maximum if 0 < slope <= 1 else None  # one comparison with slope x then selects the right one

    def function(x: Array, out: Array) -> None:
        scaled = np.multiply(x, x.dtype.type(slope))
        if select is not None:
            select(x, scaled, out=out)
        else:
            np.copyto(out, np.where(x > 0, x, scaled))

    return function


def _random_slopes(
    lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Function:
    """One slope for all negative numbers, the mean; in training one for each, drawn evenly between the bounds."""
    if not lower <= upper or (math.isinf(upper - lower) and not training):
        raise Error("IRC424", f"rrelu cannot draw slopes between {lower} and {upper}")
    if not training:
        return _leaky_relu((lower + upper) / 2)

    def function(x: Array, out: Array) -> None:
        slopes = (lower + (upper - lower) * uniform(x.shape)).astype(x.dtype)
        np.copyto(out, np.where(x > 0, x, x * slopes))

    return function


def _elu(alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Function:
    def function(x: Array, out: Array) -> None:
        real = x.dtype.type
        negative: Array = np.expm1(numerics.at_most(x, np.zeros((), x.dtype)) * real(input_scale)) * real(alpha * scale)
        np.copyto(out, np.where(x >= 0, x * real(scale), negative))

    return function


def _celu(alpha: float = 1.0) -> Function:
    if alpha == 0:
        raise Error("IRC424", "celu's alpha must not be 0")
    return _elu(alpha, 1, 1 / alpha)


def _selu() -> Function:
    return _elu(1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _softplus(beta: float = 1, threshold: float = 20) -> Function:
    def function(x: Array, out: Array) -> None:
        scaled = x * x.dtype.type(beta)
        smooth = np.log1p(np.exp(np.minimum(scaled, x.dtype.type(threshold)))) / x.dtype.type(beta)
        np.copyto(out, np.where(scaled > threshold, x, smooth))

    return function


def _hardsigmoid(x: Array, out: Array) -> None:
    real = x.dtype.type
    np.divide(np.minimum(np.maximum(x + real(3), real(0)), real(6)), real(6), out=out)


def _hardswish(x: Array, out: Array) -> None:
    real = x.dtype.type
    np.divide(x * np.minimum(np.maximum(x + real(3), real(0)), real(6)), real(6), out=out)


def _gated(x: Array, out: Array | None = None) -> Any:
    return np.divide(x, 1 + np.exp(-x), out=out)


_gated_floats = of_function(_gated)


def _silu(x: Array) -> Computation:
    return Computation(_gated if x.dtype.kind == "c" else _gated_floats, (x,), as_float(x.dtype))


def _gelu(approximate: str = "none") -> Function:
    functions = {"none": numerics.gelu, "tanh": numerics.gelu_tanh}
    if approximate not in functions:
        raise Error("IRC423", f"gelu's approximate is {approximate!r}; it must be 'none' or 'tanh'")
    return functions[approximate]


def _logit(eps: float | None = None) -> Function:
    def function(x: Array, out: Array) -> None:
        inner = x
        if eps is not None:  # by the lower bound first, which np.clip does not do where it is the larger one
            low, high = x.dtype.type(eps), x.dtype.type(1 - eps)
            inner = np.where(x < low, low, np.where(x > high, high, x))
        np.log(inner / (1 - inner), out=out)

    return function


def _log_sigmoid(x: Array, out: Array) -> None:
    np.subtract(np.minimum(x, x.dtype.type(0)), np.log1p(np.exp(-np.abs(x))), out=out)


_log_sigmoid_floats = of_function(_log_sigmoid)


@aten("log_sigmoid")
def log_sigmoid(x: Array, *, out: Array | None = None) -> Array:
    """``log(sigmoid(x))``, which lies in order, however ``x`` lies."""
    return _log_sigmoid_floats(x, out)


def _hardshrink(x: Array, limit: Any = 0.5) -> Computation:
    def compute(a: Array, bound: Array, out: Array | None = None) -> Any:
        return np.positive(np.where(np.abs(a) <= bound, a.dtype.type(0), a), out=out)

    return Computation(compute, (x, limit), as_float(x.dtype))


def _softshrink(limit: Any = 0.5) -> Function:
    def function(x: Array, out: Array) -> None:
        if not 0 <= limit < math.inf:
            raise Error("IRC424", f"softshrink moves numbers towards 0 by {limit}: it must be finite, not negative")
        np.copyto(out, np.copysign(np.maximum(np.abs(x) - x.dtype.type(limit), x.dtype.type(0)), x))

    return function


def _threshold(x: Array, limit: Any, value: Any) -> Computation:
    if is_integral(x.dtype):
        limit = element_of(limit, x.dtype)
    value = element_of(value, x.dtype)

    def compute(a: Array, out: Array | None = None) -> Any:
        return np.positive(np.where(a <= limit, value.astype(a.dtype), a), out=out)

    return Computation(compute, (x,), x.dtype)


def _prelu(x: Array, weight: Array) -> Computation:
    """The slope is one for all, or one a channel."""
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or (weight.size != 1 and (weight.size != channels or not x.ndim)):
        raise Error("IRC421", f"{channels} channels need one slope, or as many, not {list(weight.shape)}")
    slope = weight.reshape(()) if weight.size == 1 else weight.reshape(-1, *(1,) * (x.ndim - 2))

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        return np.positive(np.where(a > 0, a, a * b), out=out)

    return Computation(compute, (x, slope), result_type(x, weight))


def _glu(x: Array, dim: int = -1) -> Computation:
    """The first half along a dimension, gated by the sigmoid of the second."""
    axis = axis_in(dim, x.ndim)
    if x.shape[axis] % 2:
        raise Error("IRC421", f"glu halves dimension {dim}, whose size is {x.shape[axis]}")
    value, gate = np.split(x, 2, axis)

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        return np.divide(a, 1 + np.exp(-b), out=out)

    return Computation(compute, (value, gate), as_float(x.dtype))


_with_slopes = of_parameters(_random_slopes)


@aten("rrelu")
def _random_relu(x: Array, *parameters: Any) -> Array:
    return np.asarray(run(_with_slopes(x, *parameters)), order="C")


@aten("rrelu_")
def _random_relu_in_place(x: Array, *parameters: Any) -> Array:
    return run(_with_slopes(x, *parameters), into=x)


register("relu", of_one(_relu))
register("relu6", of_one(_between(0, 6)))
register("hardtanh", _hardtanh)
register("threshold", _threshold)
for _name, _make in (
    ("leaky_relu", _leaky_relu),
    ("elu", _elu),
    ("celu", _celu),
    ("selu", _selu),
    ("gelu", _gelu),
    ("logit", _logit),
    ("mish", lambda: numerics.mish),
    ("hardsigmoid", lambda: _hardsigmoid),
    ("hardswish", lambda: _hardswish),
):
    register(_name, of_parameters(_make))
for _name, _make in (("softplus", _softplus), ("softshrink", _softshrink)):
    register(_name, of_parameters(_make))
register("hardshrink", _hardshrink)
register("silu", _silu)
register("prelu", _prelu)
register("glu", _glu)
