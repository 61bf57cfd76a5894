"""Elementwise functions that NumPy has no single ufunc for.

Each takes ``(x, out)``: float32 or float64 arrays of one shape and type, where
``out`` may be ``x`` itself, and writes its result to ``out``. Those with
parameters are made by a factory. Constants are 0-d float32 arrays: with them a
ufunc call on a small array takes half the time that it takes with Python
numbers, and ONNX's attributes are float32 anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.runtime.kernels.support import Array

Function = Callable[[Array, Array], Any]


def constant(value: float) -> Array:
    """``value`` as a 0-d float32 array."""
    return np.array(value, np.float32)


ZERO, HALF, ONE = constant(0), constant(0.5), constant(1)


def sigmoid(x: Array, out: Array) -> None:
    """1 / (1 + exp(-x)); exp overflows to infinity for very negative x, which gives the right 0.

    Neither tanh, which takes half the time, as its error is large relative to results next to 0 (whose logarithm models
    take), nor exp2, which in every third process takes four times as long (docs/performance.md).
    """
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, ONE, out)
    np.divide(ONE, out, out)  # half of reciprocal's time


def softplus(x: Array, out: Array) -> None:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which cannot overflow."""
    tail = np.empty_like(x)
    np.absolute(x, tail)
    np.negative(tail, tail)
    np.exp(tail, tail)
    np.log1p(tail, tail)
    np.maximum(x, ZERO, out=out)
    np.add(out, tail, out)


def softsign(x: Array, out: Array) -> None:
    """Softsign: x / (1 + |x|)."""
    divisor = np.empty_like(x)
    np.absolute(x, divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, out)


def mish(x: Array, out: Array) -> None:
    """Mish: x tanh(softplus(x))."""
    gate = np.empty_like(x)
    softplus(x, gate)
    np.tanh(gate, gate)
    np.multiply(x, gate, out)


def leaky_relu(alpha: float) -> Function:
    """Leaky relu: x where x >= 0, else alpha x."""
    slope = constant(alpha)
    if 0 < alpha < np.inf:  # then one comparison of x with alpha x selects the right one
        select = np.maximum if alpha <= 1 else np.minimum

        def monotonic(x: Array, out: Array) -> None:
            select(x, np.multiply(x, slope), out=out)

        return monotonic

    def general(x: Array, out: Array) -> None:
        prelu(x, slope, out)

    return general


def prelu(x: Array, slope: Array, out: Array) -> None:
    """Parametric relu: x where x >= 0, else slope x, which need not be a number where x >= 0."""
    below = np.less(x, ZERO)
    scaled = np.multiply(x, slope)
    np.copyto(out, x)
    np.copyto(out, scaled, where=below)


def elu(alpha: float) -> Function:
    """Exponential linear unit: x where x >= 0, else alpha (exp(x) - 1)."""
    return scaled_elu(alpha, 1.0)


def scaled_elu(alpha: float, gamma: float, stretch: float = 1.0) -> Function:
    """The family of Elu, Selu and Celu: gamma x where x >= 0, else gamma alpha (exp(x / stretch) - 1)."""
    negative_scale, positive_scale, divisor = constant(gamma * alpha), constant(gamma), constant(stretch)

    def function(x: Array, out: Array) -> None:
        negative = np.empty_like(x)
        np.minimum(x, ZERO, out=negative)
        if stretch != 1:
            np.divide(negative, divisor, negative)
        np.expm1(negative, negative)
        np.multiply(negative, negative_scale, negative)
        np.maximum(x, ZERO, out=out)
        if gamma != 1:
            np.multiply(out, positive_scale, out)
        np.add(out, negative, out)

    return function


def celu(alpha: float) -> Function:
    """Continuously differentiable Elu: max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    return scaled_elu(alpha, 1.0, alpha)


def hard_sigmoid(alpha: float, beta: float) -> Function:
    """Hard sigmoid: max(0, min(1, alpha x + beta))."""
    slope, offset = constant(alpha), constant(beta)

    def function(x: Array, out: Array) -> None:
        np.multiply(x, slope, out)
        np.add(out, offset, out)
        np.minimum(out, ONE, out=out)
        np.maximum(out, ZERO, out=out)

    return function


def hard_swish() -> Function:
    """Hard swish: x hard_sigmoid(x) with alpha = 1/6, beta = 1/2."""
    gate_of = hard_sigmoid(1 / 6, 0.5)

    def function(x: Array, out: Array) -> None:
        gate = np.empty_like(x)
        gate_of(x, gate)
        np.multiply(x, gate, out)

    return function


def swish(alpha: float) -> Function:
    """Swish: x sigmoid(alpha x)."""
    scale = constant(alpha)

    def function(x: Array, out: Array) -> None:
        gate = np.empty_like(x)
        np.multiply(x, scale, gate)
        sigmoid(gate, gate)
        np.multiply(x, gate, out)

    return function


def thresholded_relu(alpha: float) -> Function:
    """Thresholded relu: x where x > alpha, else 0."""
    threshold = constant(alpha)

    def function(x: Array, out: Array) -> None:
        np.copyto(out, np.where(x > threshold, x, ZERO))

    return function


def shrink(lambd: float, bias: float) -> Function:
    """Shrink: x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    upper, lower, offset = constant(lambd), constant(-lambd), constant(bias)

    def function(x: Array, out: Array) -> None:
        above, below = x > upper, x < lower
        np.copyto(out, np.where(below, x + offset, np.where(above, x - offset, ZERO)))

    return function


def _by_type(value: float) -> dict[str, Array]:
    return {"f": np.array(value, np.float32), "d": np.array(value, np.float64)}


_ROOT_OF_HALF, _CUBE, _SLOPE = _by_type(math.sqrt(0.5)), _by_type(0.044715), _by_type(math.sqrt(2 / math.pi))


def gelu(x: Array, out: Array) -> None:
    """Gelu: x Φ(x), Φ the normal distribution's function: x (1 + erf(x / √2)) / 2."""
    gate = np.empty_like(x)
    np.multiply(x, _ROOT_OF_HALF[x.dtype.char], gate)
    erf(gate, gate)
    _half_gate(x, gate, out)


def gelu_tanh(x: Array, out: Array) -> None:
    """Gelu's approximation x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2."""
    gate = np.empty_like(x)
    np.multiply(x, x, gate)
    np.multiply(gate, _CUBE[x.dtype.char], gate)
    np.add(gate, ONE, gate)
    np.multiply(gate, x, gate)
    np.multiply(gate, _SLOPE[x.dtype.char], gate)
    np.tanh(gate, gate)
    _half_gate(x, gate, out)


def _half_gate(x: Array, gate: Array, out: Array) -> None:
    np.add(gate, ONE, gate)
    np.multiply(gate, HALF, gate)
    np.multiply(x, gate, out)


def _coefficients(dtype: type[np.floating[Any]], *values: float) -> list[Array]:
    return [np.array(v, dtype) for v in values]


# erf in double precision: W. J. Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23 (1969); up to 0.46875 x P(x²)/Q(x²), above 1 - exp(-x²) P(x)/Q(x).
# fmt: off
_SMALL_P = _coefficients(
    np.float64,
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = _coefficients(
    np.float64,
    1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3,
)
_LARGE_P = _coefficients(
    np.float64,
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
    1.23033935479799725e3,
)
_LARGE_Q = _coefficients(
    np.float64,
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)
# erf in single precision: the rational function that Eigen and XLA use, x P(x²)/Q(x²) on [-4, 4].
_SINGLE_P = _coefficients(
    np.float32,
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)
_SINGLE_Q = _coefficients(
    np.float32,
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)
# fmt: on
_FOUR = constant(4)


def erf(x: Array, out: Array) -> None:
    """The error function, to 8 ulp in float32 and 5 ulp in float64."""
    if x.dtype == np.float32:
        _erf_single(x, out)
    else:
        _erf_double(x, out)


def _erf_single(x: Array, out: Array) -> None:
    square, ratio, divisor = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    np.minimum(x, _FOUR, out=out)
    np.maximum(out, -_FOUR, out=out)
    np.multiply(out, out, square)
    _polynomial(square, _SINGLE_P, ratio)
    _polynomial(square, _SINGLE_Q, divisor)
    np.divide(ratio, divisor, ratio)
    np.multiply(out, ratio, out)
    np.minimum(out, ONE, out=out)
    np.maximum(out, -ONE, out=out)


def _erf_double(x: Array, out: Array) -> None:
    size, square, small, tail, divisor = (np.empty_like(x) for _ in range(5))
    np.multiply(x, x, square)
    _polynomial(square, _SMALL_P, small)
    _polynomial(square, _SMALL_Q, divisor)
    np.divide(small, divisor, small)
    np.multiply(small, x, small)
    np.absolute(x, size)
    near = size <= 0.46875
    np.minimum(size, 6.0, out=size)  # erf(6) is 1 to double precision
    _polynomial(size, _LARGE_P, tail)
    _polynomial(size, _LARGE_Q, divisor)
    np.divide(tail, divisor, tail)
    np.multiply(size, size, square)
    np.negative(square, square)
    np.exp(square, square)
    np.multiply(tail, square, tail)
    np.subtract(ONE, tail, tail)
    np.copysign(tail, x, tail)
    np.copyto(out, np.where(near, small, tail))


def _polynomial(x: Array, coefficients: Sequence[Array], out: Array) -> None:
    """The polynomial with these coefficients, highest power first, at ``x`` (Horner's rule)."""
    np.multiply(x, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, x, out)
    np.add(out, coefficients[-1], out)
