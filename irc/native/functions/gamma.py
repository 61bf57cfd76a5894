"""The logarithm of the gamma function, and its derivative."""

from __future__ import annotations

import math

from irc.native.functions.common import coefficients, constant_pair, magnitude, polynomial
from irc.native.functions.logarithmic import log
from irc.native.lanes import Lanes, select

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
