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
    format_of,
    horner,
    magnitude,
    ordered_sum,
    renormalized,
    where_any,
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
    is_usual = (x > 0.0) & (x < math.inf) & (magnitude(y) < math.inf)
    return where_any(~is_usual, found, lambda: _with_limits(x, y, found))


def _with_limits(x: Lanes, y: Lanes, found: Lanes) -> Lanes:
    """The power of x to y, where ``found`` is that of |x|, if it is finite and not 0."""
    size, height = magnitude(x), magnitude(y)
    is_limit = size.equals(0.0) | size.equals(math.inf) | height.equals(math.inf)
    limit = select((size > 1.0) ^ (y < 0.0), x.constant(math.inf), x.constant(0.0))
    found = select(is_limit, limit, found)
    is_whole = _is_whole(y)
    is_odd = is_whole & ~_is_whole(y * 0.5)
    found = select((x.bits_as_integers() < 0) & is_odd, -found, found)
    is_wrong = (x < 0.0) & (size < math.inf) & ~is_whole  # no whole power of a negative number
    found = select(is_wrong | x.is_nan() | y.is_nan(), math.nan, found)
    is_one = y.equals(0.0) | x.equals(1.0) | (x.equals(-1.0) & height.equals(math.inf))
    return select(is_one, 1.0, found)


def _log2(x: Lanes) -> Pair:
    """log2 of positive x: by s = f / (2 + f), where x = 2^k (1 + f), as 2 atanh(s) / log(2)."""
    fraction, exponent, start = split(x)
    whole = to_float(exponent, x.dtype) + start
    divisor = fraction + 2
    inverse = 1 / divisor
    ratio = fraction * inverse
    product, rest = exact_product(ratio, divisor)
    lost = fraction - (divisor - 2)
    s = Pair(ratio, ((fraction - product) - rest - ratio * lost) * inverse)
    square = s * s
    third = constant_pair(x, _THIRD)
    tail = horner(square.high, coefficients("log2", x)) * square.high
    factor = renormalized(third.high, tail + third.low)
    terms = s * constant_pair(x, _FACTOR) + s * square * factor
    high, low = ordered_sum(whole, terms.high)
    return renormalized(high, low + terms.low)


def _is_whole(x: Lanes) -> Lanes:
    """Whether x is a whole number, or infinite."""
    size, limit = magnitude(x), 2.0 ** format_of(x).mantissa
    return (size >= limit) | ((size + limit) - limit).equals(size)
