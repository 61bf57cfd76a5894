"""Functions that operators of several standards compute."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.ops.algebra import (
    SINGLE,
    Expression,
    at_least,
    at_most,
    copysign,
    exp,
    log1p,
    minimum,
    primitive,
    reciprocal,
    select,
    tanh,
)
from irc.ops.scalar import single

# erf in double precision: W. J. Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23 (1969); up to 0.46875 x P(x²)/Q(x²), above 1 - exp(-x²) P(x)/Q(x).
# fmt: off
_SMALL_P = (
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = (
    1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3,
)
_LARGE_P = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
    1.23033935479799725e3,
)
_LARGE_Q = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)
# erf in single precision: tanh(x P(x²)), where P approximates artanh(erf(x)) / x. Fitted by Lawson's iteration (least
# squares, reweighted) for the least relative error of erf on [0, 4]. Beyond, P stays positive: tanh is 1 as it should.
_SINGLE = tuple(map(single, (
    1.41880328781613e-7, -5.668975385369043e-6, 8.76403957493384e-5, -6.19792692219511e-4,
    -1.918218746171669e-4, 1.027690521998242e-1, 1.1283792746246855e0,
)))
# fmt: on

# Of -2z for `gelu`, where z = u P(u²) for u = x / √2: as a polynomial of x², without the factor x.
_GATE = tuple(-math.sqrt(2) * c / 2**i for i, c in zip(range(6, -1, -1), _SINGLE, strict=True))


def _erf(x: Expression) -> Expression:
    square = x * x
    if x.dtype == SINGLE:
        return tanh(x * _polynomial(square, _SINGLE))
    size = abs(x)
    small = _polynomial(square, _SMALL_P) / _polynomial(square, _SMALL_Q) * x
    bounded = minimum(size, 6.0)  # erf(6) is 1 to double precision
    tail = _polynomial(bounded, _LARGE_P) / _polynomial(bounded, _LARGE_Q) * exp(-(bounded * bounded))
    return select(size <= 0.46875, small, copysign(1 - tail, x))


erf = primitive("erf", 1, "The error function; -0 of -0.", ulp=5.0, expansion=_erf)


def gelu(x: Expression) -> Expression:
    """X Φ(x), Φ the normal distribution's function: x (1 + erf(x / √2)) / 2.

    In single precision as x / (1 + exp(-2z)), by the polynomial of `erf`, as (1 + tanh(z)) / 2 is that: the sum would
    cancel for x below -4.
    """
    if x.dtype != SINGLE:
        return x * ((erf(x * math.sqrt(0.5)) + 1) * 0.5)
    return x / (exp(x * _polynomial(x * x, _GATE)) + 1)


def gelu_tanh(x: Expression) -> Expression:
    """X (1 + tanh(z)) / 2, where z = √(2/π) (x + 0.044715 x³), as x / (1 + exp(-2z))."""
    linear, cubic = -math.sqrt(8 / math.pi), -math.sqrt(8 / math.pi) * 0.044715
    return x / (exp((x * x * cubic + linear) * x) + 1)


def _polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """The polynomial with these coefficients, highest power first, at ``x`` (Horner's rule)."""
    found = x * coefficients[0]
    for c in coefficients[1:-1]:
        found = (found + c) * x
    return found + coefficients[-1]


def sigmoid(x: Expression) -> Expression:
    """1 / (1 + exp(-x)); exp overflows to infinity for very negative x, which gives the right 0.

    Neither tanh, which takes half the time, as its error is large relative to results next to 0 (whose logarithm models
    take), nor exp2, which in every third process takes four times as long (benchmarks/measured/running.md).
    """
    divisor = exp(-x) + 1
    return reciprocal(divisor) if x.is_complex else 1 / divisor  # of floats, NumPy's division takes half of its time


def silu(x: Expression) -> Expression:
    """X sigmoid(x), as x / (1 + exp(-x)), for which holds what `sigmoid` says."""
    return x / (exp(-x) + 1)


def softplus(x: Expression) -> Expression:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which cannot overflow."""
    return at_least(x, 0) + log1p(exp(-abs(x)))


def mish(x: Expression) -> Expression:
    """X tanh(softplus(x))."""
    return x * tanh(softplus(x))


def clip(x: Expression, low: Expression | float | None = None, high: Expression | float | None = None) -> Expression:
    """Between bounds, of which the upper one wins."""
    found = x if low is None else at_least(x, low)
    return found if high is None else at_most(found, high)
