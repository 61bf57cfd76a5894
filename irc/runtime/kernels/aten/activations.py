"""Activation functions with parameters, which are Python numbers and known only when the operator runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.aten import activations
from irc.runtime.kernels.aten.element_types import as_float, element_of, is_integral, result_type
from irc.runtime.kernels.aten.pointwise import Computation, Compute, computed, of_parameters, register, run
from irc.runtime.kernels.aten.random import uniform
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.support import Array, axis_in


def _hardtanh(x: Array, low: Any = -1, high: Any = 1) -> Computation:
    if x.dtype.kind == "u" and min(low, high) < 0:
        raise Error(
            "IRC423", f"hardtanh's limits, {low} and {high}, must not be negative for elements of {x.dtype.name}"
        )
    return Computation(computed("hardtanh", element_of(low, x.dtype), element_of(high, x.dtype)), (x,), x.dtype)


def _random_slopes(
    lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Compute:
    """One slope for all negative numbers, the mean; in training one for each, drawn evenly between the bounds."""
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


_log_sigmoid = of_expression(activations.log_sigmoid, 1)


@aten("log_sigmoid")
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


@aten("rrelu")
def _random_relu(x: Array, *parameters: Any) -> Array:
    return np.asarray(run(_with_slopes(x, *parameters)), order="C")


@aten("rrelu_")
def _random_relu_in_place(x: Array, *parameters: Any) -> Array:
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
