"""Trigonometric functions: sine, cosine, and inverse ones.

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


def _negated(x: Lanes, quadrant: Lanes) -> Lanes:
    """Negate x in the quadrants 2 and 3."""
    form = format_of(x)
    sign = (quadrant & 2) << (form.mantissa + form.exponent_bits - 1)
    return (x.bits_as_integers() ^ sign).bitcast(x.dtype)


def _sine_cosine(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(sin(r), cos(r), q) for x = q π/2 + r, |r| at most about π/4; of huge x, r is x itself."""
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
    """(r, s, q) for x = q π/2 + r + s, with s the rounding error of r; q counts modulo 4 only.

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
