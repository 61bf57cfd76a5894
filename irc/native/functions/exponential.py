"""exp and what is made of it: exponentials, powers, tanh, and the gates of neural networks."""

from __future__ import annotations

import math

from irc.native.functions.common import (
    LOG2_E,
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
    polynomial,
    power_of_two,
    renormalized,
    rounded,
    where_any,
    with_sign,
)
from irc.native.functions.logarithmic import log1p_of_fraction, split
from irc.native.lanes import Lanes, select, to_float
from irc.ops.algebra import SINGLE


def _rest(x: Lanes, rest_of_x: Lanes | None = None) -> tuple[Lanes, Lanes]:
    """(r, k), where x = k log(2) + r, |r| is at most log(2)/2 and k is as `rounded` gives it."""
    whole, exponent = rounded(x, LOG2_E)
    high, low = format_of(x).log_2
    exact = whole.fma(-high, x)
    return whole.fma(-low, exact) if rest_of_x is None else exact + whole.fma(-low, rest_of_x), exponent


def reduced(x: Lanes, rest_of_x: Lanes | None = None) -> tuple[Lanes, Lanes]:
    """exp(x) as (exp(r) - 1, k): see `_rest`."""
    rest, exponent = _rest(x, rest_of_x)
    return (rest * rest).fma(polynomial(rest, coefficients("exp", x)), rest), exponent


def reduced_pair(x: Lanes, rest_of_x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """The same, exp(r) - 1 as a sum of two numbers: r rounded, and the rest."""
    whole, exponent = rounded(x, LOG2_E)
    high, low = format_of(x).log_2
    exact = whole.fma(-high, x)
    small = whole.fma(-low, rest_of_x)
    rest = exact + small
    return rest, (rest * rest).fma(polynomial(rest, coefficients("exp", x)), small - (rest - exact)), exponent


def scaled(less_one: Lanes, exponent: Lanes, is_low: Lanes, offset: int = 0) -> Lanes:
    """(1 + less_one) 2^(k + offset), where ``is_low`` says whether k + offset is less than -half_range."""
    form = format_of(less_one)
    # Twice a power, as 2^128 is none of float32; where results are denormal the other factor is the small one.
    factor = select(is_low, less_one.constant(2.0 ** (1 - form.half_range)), less_one.constant(2.0))
    power = exponent + (2 * form.one + (offset << form.mantissa)) - factor.bits_as_integers()
    return (less_one + 1) * power.bitcast(less_one.dtype) * factor


def exp(x: Lanes) -> Lanes:
    """The exponential: 0 and infinity where it is beyond the range, denormal next to 0."""
    form = format_of(x)
    x = at_least(at_most(x, form.exp_high), form.exp_low)
    return scaled(*reduced(x), x < -form.half_range * math.log(2))


def reduced2(x: Lanes, rest_of_x: Lanes | None = None) -> tuple[Lanes, Lanes]:
    """2^x as (2^r - 1, k), where x = k + r, |r| is at most ½ and k is as `rounded` gives it."""
    whole, exponent = rounded(x, 1.0)
    rest = x - whole
    if rest_of_x is not None:
        rest = rest + rest_of_x
    return rest * polynomial(rest, coefficients("exp2", x)), exponent


def exp2(x: Lanes) -> Lanes:
    """2 to the power x."""
    form = format_of(x)
    x = at_least(at_most(x, form.bias + 1.5), -form.bias - form.mantissa - 0.5)
    return scaled(*reduced2(x), x < -form.half_range)


def expm1(x: Lanes) -> Lanes:
    """exp(x) - 1."""
    form = format_of(x)
    bounded = at_least(at_most(x, form.exp_high), -0.75 * (form.mantissa + 2))  # below, the result is -1
    less_one, exponent = reduced(bounded)
    half = power_of_two(exponent, x, -1)  # 2^128 is none of float32
    found = less_one.fma(half, half - 0.5) * 2
    return select(magnitude(x) < 4 * form.least, x, found)


def exp_of_negative(x: Lanes) -> Lanes:
    """exp(x) of x that is at most 0, or little more; NaN of NaN."""
    form = format_of(x)
    less_one, exponent = reduced(at_least(x, form.exp_low))
    return (less_one + 1) * power_of_two(exponent, x, form.half_range) * 2.0**-form.half_range


def _gate(numerator: Lanes | None, x: Lanes, rest_of_x: Lanes | None = None) -> Lanes:
    """``numerator / (1 + exp(-x))``, or 1 over that."""
    if x.dtype != SINGLE or not x.emitter.has_fma:
        return _gate_of_any(numerator, x, rest_of_x)
    # Where nothing overflows and log(2), rounded, is near enough: a sixth less time over long arrays.
    whole, exponent = rounded(-x, LOG2_E)
    exponential = exp_of_rest(whole.fma(-math.log(2), -x))
    divisor = exponential.fma(power_of_two(exponent, x), 1.0)
    found = (1.0 if numerator is None else numerator) / divisor
    is_far = ~(magnitude(x - _USUAL[0]) < _USUAL[1])
    # Of other lanes, nothing depends on their neighbours.
    return where_any(is_far, [found], lambda: [select(is_far, _gate_of_any(numerator, x, rest_of_x), found)])[0]


_USUAL = 28.0, 44.0
"""The middle of a range of float32, and how far away from it gates are computed by fewer operations.

Just below the range they would be up to 3.2 ulp off.
"""


def exp_of_rest(rest: Lanes) -> Lanes:
    """Exp of at most log(2)/2 as one chain of operations: the order with the fewest of them."""
    return horner(rest, (1.0, 1.0, *coefficients("exp", rest)))


def _gate_of_any(numerator: Lanes | None, x: Lanes, rest_of_x: Lanes | None) -> Lanes:
    """The same of any number: numerator and divisor are scaled so that results may be denormal."""
    form = format_of(x)
    # Below, the power is infinite, so that any finite numerator gives 0, and an infinite one NaN. Above, 1 is added to
    # less than half an ulp.
    limit = -(form.half_range + form.bias + 1) * math.log(2) * (1 + 2.0**-14)
    x = at_least(at_most(x, (form.bias - form.half_range - 1) * math.log(2)), limit)
    rest, exponent = _rest(-x, rest_of_x)
    exponential = exp_of_rest(rest)
    scale = x.constant(2.0**-form.half_range)
    if numerator is not None:  # scaled it may be denormal itself
        scale = select(x < -form.half_range * math.log(2), scale, 1.0)
    divisor = exponential.fma((exponent + scale.bits_as_integers()).bitcast(x.dtype), scale)
    return (scale if numerator is None else numerator * scale) / divisor


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x))."""
    return _gate(None, x)


def silu(x: Lanes) -> Lanes:
    """X sigmoid(x); NaN of -inf."""
    return _gate(x, x)


# √(8/π) and its product with 0.044715, the second as a sum of two numbers, the first of which is one of float32.
_LINEAR, _CUBIC = math.sqrt(8 / math.pi), (0.07135481387376785, 2.3988323959931355e-09)


def gelu_tanh(x: Lanes) -> Lanes:
    """X (1 + tanh(z)) / 2, where z = √(2/π) (x + 0.044715 x³); NaN of -inf."""
    is_single = x.dtype == SINGLE
    if is_single and x.emitter.has_fma:
        square = x * x
        return _gate(x, x * square.fma(_CUBIC[0], square.fma(_CUBIC[1], _LINEAR)))
    # Errors of z count as often as it is large, which is too often here: so it is a number and a small rest.
    limit = 12.0 if is_single else 25.0
    bounded = at_least(at_most(x, limit), -limit)
    square, square_rest = exact_product(bounded, bounded)
    product, product_rest = exact_product(square, x.constant(_CUBIC[0]))
    slope = product + _LINEAR
    rest = (_LINEAR - (slope - product)) + square.fma(_CUBIC[1], product_rest)
    rest = square_rest.fma(_CUBIC[0], rest)
    angle, angle_rest = exact_product(slope, bounded)
    return _gate(x, angle, -rest.fma(bounded, angle_rest))


def softplus(x: Lanes) -> Lanes:
    """log(1 + exp(x))."""
    return at_least(x, 0.0) + log1p_of_fraction(exp_of_negative(-magnitude(x)))


def mish(x: Lanes) -> Lanes:
    """X tanh(log(1 + exp(x))), as x n / (n + 2), where n = exp(x) (exp(x) + 2); NaN of -inf."""
    form = format_of(x)
    # Above, the quotient is 1; below, the power is 0.
    bounded = at_least(at_most(x, form.mantissa), -(form.half_range + form.bias) * math.log(2) * (1 - 2.0**-14))
    less_one, exponent = reduced(bounded)
    half = form.half_range
    scale = select(bounded < -half * math.log(2), x.constant(2.0**-half), x.constant(1.0))
    power = (exponent + 2 * form.one - scale.bits_as_integers()).bitcast(x.dtype)
    large = (less_one + 1) * power  # exp(x) / scale
    exponential = large * scale
    return x * scale * (large * (exponential + 2) / exponential.fma(exponential + 2, 2.0))


def tanh(x: Lanes) -> Lanes:
    """As a polynomial below 0.6, above as 1 - 2 / (exp(2|x|) + 1)."""
    size = magnitude(x)
    less_one, exponent = reduced(at_most(size, 9.2 if format_of(x).mantissa == 23 else 19.2) * 2)
    power = power_of_two(exponent, x)
    large = 1 - 2 / less_one.fma(power, power + 1)
    square = x * x
    small = (square * x).fma(polynomial(square, coefficients("tanh", x)), x)
    return with_sign(select(size < 0.6, small, large), x)


# -- powers: 2^(y log2(x)), the logarithm as a sum of two numbers ----------------

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
    return where_any(~is_usual, [found], lambda: [_with_limits(x, y, found)])[0]


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
    """Whether x is an integer, or infinite."""
    size, limit = magnitude(x), 2.0 ** format_of(x).mantissa
    return (size >= limit) | ((size + limit) - limit).equals(size)
