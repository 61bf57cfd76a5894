"""Logarithms."""

from __future__ import annotations

import math

from irc.native.functions.common import (
    coefficients,
    constant_pair,
    format_of,
    polynomial,
    with_sign,
)
from irc.native.lanes import Lanes, select, to_float

_LOG2_E, _LOG10_E = (1.4426950408889634, 2.0355273740931033e-17), (0.4342944819032518, 1.098319650216765e-17)


def log(x: Lanes) -> Lanes:
    """The natural logarithm."""
    fraction, exponent, start = split(x)
    return _with_limits(x, _log1p_reduced(fraction, to_float(exponent, x.dtype) + start))


def log2(x: Lanes) -> Lanes:
    """The logarithm to base 2; exact of powers of 2."""
    fraction, exponent, start = split(x)
    whole = to_float(exponent, x.dtype) + start
    return _with_limits(x, _log1p_reduced(fraction, whole, _LOG2_E, (1.0, 0.0)))


def log10(x: Lanes) -> Lanes:
    """The logarithm to base 10."""
    fraction, exponent, start = split(x)
    whole = to_float(exponent, x.dtype) + start
    return _with_limits(x, _log1p_reduced(fraction, whole, _LOG10_E, format_of(x).log10_2))


def log1p(x: Lanes) -> Lanes:
    """log(1 + x)."""
    found = _log1p_positive(x)
    limit = select(x.equals(-1.0), -math.inf, select(x < -1.0, math.nan, x))
    return with_sign(select((x > -1.0) & (x < math.inf), found, limit), x)


def log1p_of_fraction(x: Lanes) -> Lanes:
    """log(1 + x) of x in [0, 1]."""
    is_low = x < math.sqrt(2) - 1
    whole = select(is_low, x.constant(0.0), x.constant(1.0))
    return _log1p_reduced(select(is_low, x, x.fma(0.5, -0.5)), whole)


def _log1p_reduced(
    f: Lanes, whole: Lanes, factor: tuple[float, float] = (1.0, 0.0), log_2: tuple[float, float] | None = None
) -> Lanes:
    """log(1 + f) times ``factor``, of f in [√½ - 1, √2 - 1], plus ``whole`` times ``log_2``."""
    square = f * f
    rest = polynomial(f, coefficients("log", f)) * f
    high, low = log_2 or format_of(f).log_2
    if factor == (1.0, 0.0):
        rest = square.fma(rest, whole * low)
        return whole.fma(high, square.fma(-0.5, rest) + f)
    pair = constant_pair(f, factor)
    logarithm = square.fma(rest - 0.5, f)
    rest = logarithm.fma(pair.low, whole * low) if low else logarithm * pair.low
    return whole.fma(high, logarithm.fma(pair.high, rest))


def _log1p_positive(x: Lanes) -> Lanes:
    """log(1 + x) of finite x above -1; else anything."""
    form = format_of(x)
    total = x + 1
    lost = select(x < 1.0, x - (total - 1), 1 - (total - x))
    fraction, exponent, _ = split(total, has_denormal=False)
    scale = select(x < 2.0 ** (form.mantissa + 2), (form.one - (exponent << form.mantissa)).bitcast(x.dtype), 0.0)
    return _log1p_reduced(lost.fma(scale, fraction), to_float(exponent, x.dtype))


def split(x: Lanes, has_denormal: bool = True) -> tuple[Lanes, Lanes, Lanes | float]:
    """(f, k, j), where x = 2^(k + j) (1 + f), f in [√½ - 1, √2 - 1], of finite positive x."""
    form = format_of(x)
    start: Lanes | float = 0.0
    if has_denormal:
        is_denormal = x < form.least
        start = select(is_denormal, x.constant(-float(form.mantissa)), x.constant(0.0))
        x = select(is_denormal, x * 2.0**form.mantissa, x)
    bits = x.bits_as_integers()
    exponent = (bits - x.constant(math.sqrt(0.5)).bits_as_integers()) >> form.mantissa
    return (bits - (exponent << form.mantissa)).bitcast(x.dtype) - 1, exponent, start


def _with_limits(x: Lanes, found: Lanes) -> Lanes:
    """``found`` where x is positive and finite; else what a logarithm has there."""
    limit = select(x.equals(0.0), -math.inf, select(x < 0.0, math.nan, x))  # infinity and NaN are their own
    return select((x > 0.0) & (x < math.inf), found, limit)
