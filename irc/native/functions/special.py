"""The error function, Gelu, which is made of it, and the gamma function's logarithm with its derivative."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.native.functions.common import (
    at_most,
    coefficients,
    constant_pair,
    exact_product,
    format_of,
    horner,
    magnitude,
    polynomial,
    power_of_two,
    square_root,
    with_sign,
)
from irc.native.functions.exponential import reduced, reduced_pair
from irc.native.functions.logarithmic import log
from irc.native.lanes import Lanes, select


def erf(x: Lanes) -> Lanes:
    """As a polynomial below 1; above as 1 - exp(-x²) times a quotient."""
    size = at_most(magnitude(x), 4.0 if format_of(x).mantissa == 23 else 6.0)
    less_one, exponent = reduced(-(size * size))
    numerator, denominator = coefficients("erfcx", x), coefficients("erfcx_below", x)
    above, below = horner(size, numerator), horner(size, denominator)
    large = 1 - above.fma(less_one, above) * power_of_two(exponent, x) / below
    small = polynomial(x * x, coefficients("erf", x)).fma(x, x)
    return select(magnitude(x) < 1.0, small, with_sign(large, x))


def erfc(x: Lanes) -> Lanes:
    """As 1 - erf(x) next to 0; farther off as exp(-x²) times an approximation, whose rounding errors are kept."""
    form = format_of(x)
    size = magnitude(x)
    small = 1 - polynomial(x * x, coefficients("erf", x)).fma(x, x)
    bounded = at_most(size, 10.2 if form.mantissa == 23 else 27.5)
    square, rest = exact_product(bounded, bounded)
    linear, curved, exponent = reduced_pair(-square, -rest)
    # exp(x²) erfc(x) (1 + 2x) is a polynomial of (x - c) / (x + c).
    ratio = (bounded - _MIDDLE) / (bounded + _MIDDLE)
    first, *others = coefficients("erfc", x)
    terms = horner(ratio, others) * ratio
    top = terms + first
    divisor = bounded.fma(2.0, 1.0)
    quotient = top / divisor
    product, lost = exact_product(quotient, divisor)
    lost = (top - product) - lost + (terms - (top - first)) - quotient * (1 - (divisor - bounded * 2))
    factor = quotient.fma(linear, quotient.fma(curved, lost / divisor)) + quotient
    tail = factor * power_of_two(exponent, x, form.half_range) * 2.0**-form.half_range
    return select(size < 0.65, small, select(x < 0.0, 2 - tail, tail))


_MIDDLE = 2.75
"""Of `erfc`'s approximation, as `benchmarks.native.fit` has it."""


def erfinv(x: Lanes) -> Lanes:
    """The inverse of erf, by quotients of w = -log(1 - x²) below 5, of √w above."""
    size = magnitude(x)
    w = -log((1 - size) * (1 + size))
    near = horner(w, coefficients("erfinv", x)) / horner(w, coefficients("erfinv_below", x))
    root = square_root(w) - 3
    far = horner(root, coefficients("erfinv_tail", x)) / horner(root, coefficients("erfinv_tail_below", x))
    return with_sign(select(size.equals(1.0), math.inf, select(w < 5.0, near, far) * x), x)


def gelu(x: Lanes) -> Lanes:
    """X Φ(x), Φ the normal distribution's function; NaN of -inf.

    Φ(x) is ½ and an odd polynomial below 0.9, where the other form, exp(-x²/2) times a quotient, is less accurate.
    """
    form = format_of(x)
    size = magnitude(x)
    square = x * x
    small = polynomial(square, coefficients("normal", x)).fma(x, 0.5)
    bounded = at_most(size, 14.5 if form.mantissa == 23 else 39.0)  # above, Φ(-x) is 0
    less_one, exponent = reduced(bounded * bounded * -0.5)
    above = horner(bounded, [c * 2.0 ** (-form.half_range - 1) for c in _of_root(coefficients("erfcx", x))])
    below = horner(bounded, _of_root(coefficients("erfcx_below", x)))
    tail = above.fma(less_one, above) * power_of_two(exponent, x, form.half_range) / below
    return x * select(size < 0.9, small, select(x < 0.0, tail, 1 - tail))


def _of_root(factors: Sequence[float]) -> list[float]:
    """The coefficients of the polynomial at x / √2."""
    return [c * 0.5 ** (power / 2) for power, c in enumerate(factors)]


_FAR = 8.0
"""From here on asymptotic series are used; below, quotients."""

_DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)


def lgamma(x: Lanes) -> Lanes:
    """Log(|gamma(x)|), by the one of 1 - x of negative x, and of x + 1 next to 0."""
    size = magnitude(x)
    is_low = size < 0.5
    is_reflected = x <= -0.5
    moved = select(is_reflected, 1 - x, select(is_low, x + 1, x))
    near = (moved - 1) * (moved - 2) * _quotient(moved, "lgamma")
    inverse = 1 / moved
    rest = polynomial(inverse * inverse, coefficients("lgamma_tail", x)) * inverse
    far = (moved - 0.5).fma(log(moved) - 1, rest + (math.log(2 * math.pi) - 1) / 2)
    found = select(moved < _FAR, near, far)

    fraction, sine, _ = _sine_cosine(x)
    found = select(is_reflected, math.log(math.pi) - found, found)
    found = found - log(select(is_reflected, sine, select(is_low, size, x.constant(1.0))))
    is_pole = is_reflected & fraction.equals(0.0) | size.equals(math.inf)
    return select(is_pole, math.inf, found)


def digamma(x: Lanes) -> Lanes:
    """The derivative of `lgamma`, by that of 1 - x of negative x, and of x + 1 below 1."""
    is_negative, is_low = x < 0.0, x < 1.0
    moved = select(is_negative, 1 - x, select(is_low, x + 1, x))
    root = constant_pair(x, _DIGAMMA_ROOT)
    near = (moved - root.high - root.low) * _quotient(moved, "digamma")
    inverse = 1 / moved
    square = inverse * inverse
    far = log(moved) - inverse.fma(0.5, polynomial(square, coefficients("digamma_tail", x)) * square)
    found = select(moved < _FAR, near, far)

    fraction, sine, cosine = _sine_cosine(x)
    signed = select(fraction < 0.0, -sine, sine)
    top = select(is_negative, cosine * math.pi, x.constant(1.0))
    bottom = select(is_negative, signed, x)
    lowered = found - top / bottom
    found = select(is_low, lowered, found)
    return select(is_negative & fraction.equals(0.0), math.nan, found)


def _quotient(x: Lanes, name: str) -> Lanes:
    return polynomial(x, coefficients(name, x)) / polynomial(x, coefficients(f"{name}_below", x))


def _sine_cosine(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(f, |sin(π f)|, cos(π f)), where f is the distance of x to the nearest whole number."""
    size = magnitude(x)
    limit = 2.0 ** (23 if x.bits == 32 else 52)
    whole = select(size < limit, (size + limit) - limit, size)
    fraction = select(x < 0.0, whole - size, size - whole)
    far = magnitude(fraction)
    is_near = far < 0.25
    angle = select(is_near, far, 0.5 - far) * math.pi
    square = angle * angle
    sine = (square * angle).fma(polynomial(square, coefficients("sin", x)), angle)
    cosine = (square * square).fma(polynomial(square, coefficients("cos", x)), square.fma(-0.5, 1.0))
    return fraction, select(is_near, sine, cosine), select(is_near, cosine, sine)
