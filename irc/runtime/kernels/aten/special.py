"""Special functions that NumPy lacks: erfc, the inverse of erf, the logarithm of gamma and its derivatives, Bessel's.

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


# -- Bessel's functions of imaginary arguments -----------------------------------

_FAR = 30.0
"""From here on the asymptotic series is exact to the last digit (Abramowitz and Stegun, 9.7.1)."""


def _bessel(order: int) -> Callable[[Array], Array]:
    """``exp(-|x|) I(x)`` of order 0 or 1."""

    def compute(x: Array) -> Array:
        size = np.abs(x)
        near, far = np.minimum(size, _FAR), np.maximum(size, _FAR)
        square = np.square(near / 2)
        term = found = np.ones_like(near) if order == 0 else near / 2
        for k in range(1, 80):
            term = term * square / (k * (k + order))
            found = found + term
        tail = total = np.ones_like(far)
        for k in range(1, 30):
            tail = tail * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * far)
            total = total + tail
        scaled = np.where(size < _FAR, found * np.exp(-near), total / np.sqrt(2 * math.pi * far))
        return np.where(np.isnan(x), x, np.copysign(scaled, x) if order else scaled)

    return compute


def _i1(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.where(x == 0, x, _bessel(1)(x) * np.exp(np.abs(x)))


i0e = _in_double(_bessel(0))
i1e = _in_double(_bessel(1))
i1 = _in_double(_i1)


# -- derivatives of digamma ------------------------------------------------------

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _zeta(s: int, x: Array) -> Array:
    """Hurwitz's function of positive ``x``: the first terms, and Euler's and Maclaurin's formula for the others."""
    found = np.zeros_like(x)
    for i in range(12):
        found += (x + i) ** -s
    far = x + 12
    found += far ** (1 - s) / (s - 1) + 0.5 * far**-s
    factor, power = float(s), far ** (-s - 1)
    for k, number in enumerate(_BERNOULLI, 1):
        found += number * factor / math.factorial(2 * k) * power
        factor *= (s + 2 * k - 1) * (s + 2 * k)
        power = power / np.square(far)
    return found


def _trigamma(x: Array) -> Array:
    """Reflected below one half."""
    positive = _zeta(2, np.where(x < 0.5, 1 - x, x))
    return np.where(x < 0.5, np.square(math.pi / np.sin(math.pi * x)) - positive, positive)


def polygamma(n: int) -> Function:
    """The ``n`` th derivative of digamma; from the second on, of positive numbers alone."""
    if n == 0:
        return digamma
    if n == 1:
        return _in_double(_trigamma)

    def compute(x: Array) -> Array:
        found = (-1) ** (n + 1) * math.gamma(n + 1) * _zeta(n + 1, np.where(x > 0, x, 1.0))
        pole = np.where(x == np.floor(x), (-1) ** (n + 1) * np.inf, np.nan)
        return np.where(x > 0, np.where(np.isinf(x), np.nan, found), pole)

    return _in_double(compute)
