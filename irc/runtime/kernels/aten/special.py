"""Special functions that NumPy lacks: erfc, the inverse of erf, the logarithm of gamma and its derivative.

Each takes ``(x, out)`` as the functions of `numerics` do. They are computed in
float64, element by element where Python's ``math`` has them: they are rare.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irc.runtime.kernels.numerics import Function
from irc.runtime.kernels.support import Array


def _in_double(compute: Callable[[Array], Array]) -> Function:
    def function(x: Array, out: Array) -> None:
        np.copyto(out, compute(x.astype(np.float64)), casting="unsafe")

    return function


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """``function`` on every element; infinite where it is not defined."""
    elementwise = np.frompyfunc(safely(function), 1, 1)

    def compute(x: Array) -> Array:
        return np.asarray(elementwise(x)).astype(np.float64)

    return compute


def safely(function: Callable[[float], float]) -> Callable[[float], float]:
    """``function``, infinite where it is not defined."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf

    return safe


def _erf_inverse(x: Array) -> Array:
    """Winitzki's approximation (2008), then Newton's method on erf, or far out on erfc, which keeps its digits."""
    a = 0.147
    log = np.log1p(-np.square(x))
    first = 2 / (math.pi * a) + log / 2
    y = np.copysign(np.sqrt(np.sqrt(np.square(first) - log / a) - first), x)
    for _ in range(4):
        error = np.where(np.abs(x) < 0.5, _erf(y) - x, np.sign(x) * (1 - np.abs(x) - _erfc(np.abs(y))))
        step = error * math.sqrt(math.pi) / 2 * np.exp(np.square(y))
        y = np.where(np.isfinite(step), y - step, y)
    return np.where(np.abs(x) == 1, np.copysign(np.inf, x), y)


def _digamma(x: Array) -> Array:
    """Reflection for negative x, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun, 6.3)."""
    reflected = np.where(x < 0.5, 1 - x, x)
    found = np.zeros_like(reflected)
    y = reflected.copy()
    for _ in range(10):
        small = y < 10
        found = np.where(small, found - 1 / np.where(small, y, 1), found)
        y = np.where(small, y + 1, y)
    inverse = 1 / np.square(y)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    found += np.log(y) - 0.5 / y - series
    angle = x - np.floor(x)  # of the tangent only what is beyond whole turns counts
    found = np.where(x < 0.5, found - math.pi / np.tan(math.pi * angle), found)
    found = np.where((x < 0) & (angle == 0), np.nan, found)
    return np.where(x == 0, np.copysign(np.inf, -x), found)


_erf, _erfc = _each(math.erf), _each(math.erfc)

erfc = _in_double(_erfc)
erfinv = _in_double(_erf_inverse)
lgamma = _in_double(_each(math.lgamma))
digamma = _in_double(_digamma)


def _entropy(x: Array) -> Array:
    return np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), np.where(x == 0, 0, np.where(x < 0, -np.inf, x)))


entropy = _in_double(_entropy)
i0 = _in_double(np.i0)
