"""Powers: 2^(y log2(x)), the logarithm as a sum of two numbers."""

from __future__ import annotations

import math

from irc.native.functions.common import (
    Pair,
    at_least,
    at_most,
    coefficients,
    constant_pair,
    exact_product,
    exact_sum,
    format_of,
    horner,
    magnitude,
    renormalized,
)
from irc.native.functions.exponential import reduced2, scaled
from irc.native.functions.logarithmic import split
from irc.native.lanes import Lanes, select, to_float

# 2 / log(2) and a third of it.
_FACTOR, _THIRD = (2.8853900817779268, 4.0710547481862066e-17), (0.9617966939259756, 5.0577616648125907e-17)


def power(x: Lanes, y: Lanes) -> Lanes:
    """The power of x to y, as IEEE 754's pow."""
    form = format_of(x)
    size = magnitude(x)
    logarithm = _log2(size)
    high, low = exact_product(y, logarithm.high)
    low = y.fma(logarithm.low, low)
    is_beyond = magnitude(high) > 2.0 * (form.bias + form.mantissa)
    low = select(is_beyond, 0.0, low)
    high = at_least(at_most(high, form.bias + 2.0), -form.bias - form.mantissa - 2.0)
    less_one, exponent = reduced2(high, low)
    found = scaled(less_one, exponent, high < -form.half_range)

    # Signs: of negative numbers there are powers of whole numbers only; odd ones are negative.
    is_negative = x.bits_as_integers() < 0
    is_whole = _is_whole(y)
    is_odd = is_whole & ~_is_whole(y * 0.5)
    found = select(is_negative & is_odd, -found, found)
    is_wrong = (x < 0.0) & (size < math.inf) & ~is_whole
    found = select(is_wrong, math.nan, found)
    is_one = y.equals(0.0) | x.equals(1.0) | (x.equals(-1.0) & magnitude(y).equals(math.inf))
    return select(is_one, 1.0, found)


def _log2(x: Lanes) -> Pair:
    """log2 of x that is not negative: by s = f / (2 + f), where x = 2^k (1 + f), as 2 atanh(s) / log(2)."""
    fraction, exponent, start = split(x)
    whole = to_float(exponent, x.dtype) + start
    divisor = fraction + 2
    lost = fraction - (divisor - 2)
    ratio = fraction / divisor
    product, rest = exact_product(ratio, divisor)
    s = Pair(ratio, (((fraction - product) - rest) - ratio * lost) / divisor)
    square = s * s
    third = constant_pair(x, _THIRD)
    tail = horner(square.high, coefficients("log2", x)) * square.high
    factor = renormalized(third.high, tail + third.low)
    terms = s * constant_pair(x, _FACTOR) + s * square * factor
    high, low = exact_sum(whole, terms.high)
    found = renormalized(high, low + terms.low)
    limit = select(x.equals(0.0), -math.inf, x)  # infinity and NaN are their own
    is_usual = (x > 0.0) & (x < math.inf)
    return Pair(select(is_usual, found.high, limit), select(is_usual, found.low, 0.0))


def _is_whole(x: Lanes) -> Lanes:
    """Whether x is a whole number, or infinite."""
    size, limit = magnitude(x), 2.0 ** format_of(x).mantissa
    return (size >= limit) | ((size + limit) - limit).equals(size)
