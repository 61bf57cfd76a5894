"""Trigonometric functions: sine, cosine, tangent, their inverses, and hypot.

Of huge angles, which are rare, the C library computes sine and cosine in double precision, one lane after another.
"""

from __future__ import annotations

import math

from irc.native.functions.common import (
    coefficients,
    constant_pair,
    exact_sum,
    format_of,
    magnitude,
    polynomial,
    square_root,
    where_any,
    with_sign,
)
from irc.native.lanes import Lanes, select, to_float
from irc.ops.algebra import DOUBLE

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def sin(x: Lanes) -> Lanes:
    """The sine; of infinities NaN."""
    sine, cosine, quadrant = _sine_cosine(x)
    found = select((quadrant & 1).equals(0), sine, cosine)
    return select(x.equals(0.0), x, _negated(found, quadrant))


def cos(x: Lanes) -> Lanes:
    """The cosine; of infinities NaN."""
    sine, cosine, quadrant = _sine_cosine(x)
    return _negated(select((quadrant & 1).equals(0), cosine, sine), quadrant + (quadrant & 1))


def tan(x: Lanes) -> Lanes:
    """The tangent; of infinities NaN."""
    sine, cosine, quadrant = _sine_cosine(x)
    is_even = (quadrant & 1).equals(0)
    found = select(is_even, sine, -cosine) / select(is_even, cosine, sine)
    return select(x.equals(0.0), x, found)


def _negated(x: Lanes, quadrant: Lanes) -> Lanes:
    """Negate x in the quadrants 2 and 3."""
    form = format_of(x)
    sign = (quadrant & 2) << (form.mantissa + form.exponent_bits - 1)
    return (x.bits_as_integers() ^ sign).bitcast(x.dtype)


def _sine_cosine(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(sin(r), cos(r), q), where x = q π/2 + r, |r| is at most π/4 or little more; of huge x, r is x itself."""
    angle, low, quadrant = _quadrants(x)
    square = angle * angle
    cubic = square * angle
    sine = angle + cubic.fma(polynomial(square, coefficients("sin", x)), square.fma(low * -0.5, low))
    half = square * 0.5
    high = 1 - half
    rest = (1 - high) - half
    rest = (square * square).fma(polynomial(square, coefficients("cos", x)), angle.fma(-low, rest))
    cosine = high + rest
    size = magnitude(x)
    is_huge = (size > format_of(x).reducible) & (size < math.inf)

    def of_huge() -> list[Lanes]:
        wide = to_float(x, DOUBLE)
        parts = [to_float(x.emitter.intrinsic(name, wide), x.dtype) for name in ("sin", "cos")]
        return [select(is_huge, *pair) for pair in zip((*parts, quadrant.constant(0)), (sine, cosine, quadrant))]

    sine, cosine, quadrant = where_any(is_huge, [sine, cosine, quadrant], of_huge)
    return sine, cosine, quadrant


def _quadrants(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(r, s, q), where x = q π/2 + r + s, s a rounding error of r: all that is used of q is its rest modulo 4.

    W. J. Cody and W. Waite's method: multiples of the parts of π/2 are exact.
    """
    form = format_of(x)
    moved = x.fma(2 / math.pi, form.rounder)
    quadrant, whole = moved.bits_as_integers(), moved - form.rounder
    first, second, third, fourth = form.half_pi
    high, low = exact_sum(whole.fma(-first, x), whole * -second)
    high, more = exact_sum(high, whole * -third)
    low = whole.fma(-fourth, low + more)
    angle = high + low
    return angle, low - (angle - high), quadrant


def _asin_reduced(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(is_large, s, asin(s)) of s = |x|, or √((1 - |x|) / 2) where |x| is above ½."""
    size = magnitude(x)
    is_large = size > 0.5
    square = select(is_large, size.fma(-0.5, 0.5), size * size)
    root = select(is_large, square_root(square), size)
    return is_large, root, (square * root).fma(polynomial(square, coefficients("asin", x)), root)


def asin(x: Lanes) -> Lanes:
    """As a polynomial below ½, above as π/2 - 2 asin(√((1 - |x|) / 2))."""
    is_large, _, angle = _asin_reduced(x)
    quarter = constant_pair(x, _HALF_PI)
    return with_sign(select(is_large, quarter.high - angle.fma(2.0, -quarter.low), angle), x)


def acos(x: Lanes) -> Lanes:
    """By `asin` of |x| or √((1 - |x|) / 2)."""
    is_large, _, angle = _asin_reduced(x)
    quarter = constant_pair(x, _HALF_PI)
    is_negative = x < 0.0
    signed = select(is_negative, angle, -angle)
    near = quarter.high + (signed + quarter.low)
    far = select(is_negative, (quarter.high - (angle - quarter.low)) * 2, angle * 2)
    return select(is_large, far, near)


def _atan_terms(top: Lanes, bottom: Lanes) -> Lanes:
    """atan(top / bottom) of a quotient of at most tan(π/8)."""
    ratio = top / bottom
    square = ratio * ratio
    return (square * ratio).fma(polynomial(square, coefficients("atan", top)), ratio)


def atan(x: Lanes) -> Lanes:
    """By (|x| - 1) / (|x| + 1), or -1 / |x|, of larger numbers."""
    size = magnitude(x)
    is_small, is_large = size < math.tan(math.pi / 8), size > math.tan(3 * math.pi / 8)
    top = select(is_small, size, select(is_large, x.constant(-1.0), size - 1))
    bottom = select(is_small, 1.0, select(is_large, size, size + 1))
    angle = _atan_terms(top, bottom)
    half, quarter = (constant_pair(x, (high * f, low * f)) for f in (1.0, 0.5) for high, low in [_HALF_PI])
    high = select(is_small, 0.0, select(is_large, half.high, quarter.high))
    low = select(is_small, 0.0, select(is_large, half.low, quarter.low))
    return with_sign(high + (angle + low), x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """By the smaller of both sizes divided by the larger, or (smaller - larger) / (smaller + larger)."""
    form = format_of(x)
    height, width = magnitude(y), magnitude(x)
    is_steep = height > width
    larger, smaller = select(is_steep, height, width), select(is_steep, width, height)
    is_infinite = smaller.equals(math.inf) & larger.equals(math.inf)
    larger = select(is_infinite | larger.equals(0.0), 1.0, larger)
    smaller = select(is_infinite, 1.0, smaller)
    shrunk = select(larger > 2.0 ** (form.bias - 2), x.constant(0.25), x.constant(1.0))  # lest the sum overflow
    larger, smaller = larger * shrunk, smaller * shrunk
    is_low = smaller <= larger * math.tan(math.pi / 8)
    angle = _atan_terms(select(is_low, smaller, smaller - larger), select(is_low, larger, smaller + larger))
    # The result is ``eighths`` of π/4 and the angle, or less it.
    is_left = x.bits_as_integers() < 0
    eighths = select(is_low, x.constant(0.0), x.constant(1.0))
    eighths = select(is_steep, 2 - eighths, eighths)
    eighths = select(is_left, 4 - eighths, eighths)
    angle = select(is_steep ^ is_left, -angle, angle)
    high, low = form.quarter_pi
    return with_sign(eighths.fma(high, eighths.fma(low, angle)), y)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """√(x² + y²), scaled so that squares neither overflow nor underflow."""
    form = format_of(x)
    height, width = magnitude(x), magnitude(y)
    is_first = height > width
    larger, smaller = select(is_first, height, width), select(is_first, width, height)
    half, more = form.half_range, form.half_range + form.mantissa
    is_large, is_small = larger > 2.0 ** (half - 2), larger < 2.0 ** (2 - half)
    down = select(is_large, x.constant(2.0**-half), select(is_small, x.constant(2.0**more), x.constant(1.0)))
    up = select(is_large, x.constant(2.0**half), select(is_small, x.constant(2.0**-more), x.constant(1.0)))
    larger, smaller = larger * down, smaller * down
    found = square_root(larger.fma(larger, smaller * smaller)) * up
    return select(height.equals(math.inf) | width.equals(math.inf), math.inf, found)
