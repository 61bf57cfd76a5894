"""Logarithms."""

from __future__ import annotations

import math

from irc.native.functions.common import coefficients, format_of, polynomial
from irc.native.lanes import Lanes, select, to_float


def log1p_reduced(f: Lanes, whole: Lanes | None) -> Lanes:
    """log(1 + f) of f in [√½ - 1, √2 - 1], plus ``whole`` times log(2)."""
    square = f * f
    rest = polynomial(f, coefficients("log", f)) * f
    if whole is None:
        return square.fma(rest - 0.5, f)
    high, low = format_of(f).log_2
    rest = square.fma(rest, whole * low)
    return whole.fma(high, square.fma(-0.5, rest) + f)


def log1p_of_fraction(x: Lanes) -> Lanes:
    """log(1 + x) of x in [0, 1]."""
    is_low = x < math.sqrt(2) - 1
    zero = x.constant(0.0)
    return log1p_reduced(select(is_low, x, x.fma(0.5, -0.5)), select(is_low, zero, x.constant(1.0)))


def log(x: Lanes) -> Lanes:
    """The natural logarithm."""
    fraction, whole = split(x)
    return _with_limits(x, log1p_reduced(fraction, whole))


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """(f, k), where x = 2^k (1 + f), f in [√½ - 1, √2 - 1], of finite positive x."""
    form = format_of(x)
    is_denormal = x < form.least
    bits = select(is_denormal, x * 2.0**form.mantissa, x).bits_as_integers()
    start = select(is_denormal, x.constant(-float(form.mantissa)), x.constant(0.0))
    root = x.constant(math.sqrt(0.5)).bits_as_integers()
    moved = bits - root
    exponent = moved >> form.mantissa
    fraction = (bits - (exponent << form.mantissa)).bitcast(x.dtype) - 1
    return fraction, to_float(exponent, x.dtype) + start


def _with_limits(x: Lanes, found: Lanes) -> Lanes:
    """``found`` where x is positive and finite; else what a logarithm has there."""
    limit = select(x.equals(0.0), -math.inf, select(x < 0.0, math.nan, x))  # infinity and NaN are their own
    return select((x > 0.0) & (x < math.inf), found, limit)
