"""The error function, and Gelu, which is made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irc.native.functions.common import (
    LOG2_E,
    at_most,
    coefficients,
    exact_product,
    format_of,
    horner,
    magnitude,
    polynomial,
    power_of_two,
    rounded,
    with_sign,
)
from irc.native.functions.exponential import exp_of_rest, reduced, reduced_pair
from irc.native.lanes import Lanes, select
from irc.ops.algebra import SINGLE


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
    """1 - erf(x) near 0; farther out exp(-x²) times an approximation, with compensated rounding."""
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


def gelu(x: Lanes) -> Lanes:
    """X Φ(x), Φ the normal distribution's function; NaN of -inf.

    Φ(x) is ½ and an odd polynomial below 0.9, where the other form, exp(-x²/2) times a quotient, is less accurate.
    """
    if x.dtype == SINGLE and x.emitter.has_fma:
        return _single_gelu(x)
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


def _single_gelu(x: Lanes) -> Lanes:
    """The same of float32, without a division.

    Φ(-|x|) is ½ exp(|x| s), where s is |x| times a polynomial, less √(2/π).
    """
    size = at_most(magnitude(x), 14.2)  # above, Φ(-x) is 0
    log = size * horner(size - 6.0, coefficients("log_normal", x)).fma(size, -math.sqrt(2 / math.pi))
    whole, exponent = rounded(log, LOG2_E)
    rest = whole.fma(-math.log(2), log)  # near enough: Gelu may be (3 + 2x²) ulp off
    tail = exp_of_rest(rest) * power_of_two(exponent, x, 63) * 2.0**-64
    return x * select(x < 0.0, tail, 1 - tail)


def _of_root(factors: Sequence[float]) -> list[float]:
    """The coefficients of the polynomial at x / √2."""
    return [c * 0.5 ** (power / 2) for power, c in enumerate(factors)]
