"""Special functions that NumPy lacks: erfc, erf's inverse, log-gamma and derivatives, Bessel's.

Each takes ``(x, out)`` float arrays of one shape and type, where ``out`` may be ``x``. They are computed in
float64, element by element where Python's ``math`` has them: they are rare.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irc.runtime.kernels.support import Array

Function = Callable[[Array, Array], object]


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
    """Winitzki's approximation (2008), then Newton's method on erf, or on erfc in the tails."""
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
    """Reflection for x < 0, recurrence to 10, asymptotic series (Abramowitz and Stegun, 6.3)."""
    reflected = np.where(x < 0.5, 1 - x, x)
    found = np.zeros_like(reflected)
    y = reflected.copy()
    for _ in range(10):
        small = y < 10
        found = np.where(small, found - 1 / np.where(small, y, 1), found)
        y = np.where(small, y + 1, y)
    inverse = 1 / np.square(y)
    series = np.zeros_like(y)
    for coefficient in (1 / 12, 691 / 32760, 1 / 132, 1 / 240, 1 / 252, 1 / 120, 1 / 12):
        series = inverse * (coefficient - series)
    found += np.log(y) - 0.5 / y - series
    angle = x - np.rint(x)  # of the tangent only what is beyond whole turns counts
    found = np.where(x < 0.5, found - math.pi / np.tan(math.pi * angle), found)
    found = np.where((x < 0) & (angle == 0), np.nan, found)
    return np.where(x == 0, np.copysign(np.inf, -x), found)


_erf, _erfc = _each(math.erf), _each(math.erfc)

digamma = _in_double(_digamma)


# -- Bessel's functions of imaginary arguments -----------------------------------

_FAR = 30.0
"""From here on the asymptotic series is exact to the last digit (Abramowitz and Stegun, 9.7.1)."""

_BEYOND = 720.0
"""The functions that are not scaled are larger than any float64 from here on."""


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
        scaled = np.where(size < _FAR, found * np.exp(-near), total / (math.sqrt(2 * math.pi) * np.sqrt(far)))
        return np.where(np.isnan(x), x, np.where(x < 0, -scaled, scaled) if order else scaled)

    return compute


def _i1(x: Array) -> Array:
    scaled = _bessel(1)(x)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(x) > _BEYOND, np.copysign(np.inf, x), scaled * np.exp(np.abs(x)))


# -- derivatives of digamma ------------------------------------------------------

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _zeta(s: int, x: Array) -> Array:
    """Hurwitz zeta of positive ``x``: the first terms, then the Euler-Maclaurin formula."""
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


def _polygamma(n: int, x: Array) -> Array:
    """Polygamma, below one half too: terms summed from ``x`` on, both sides of 0 by themselves.

    The sum of ``(x + k) ** -s`` over negative ``x + k`` is the difference of two sums over positive ones.
    """
    s, sign = n + 1, (-1) ** (n + 1)
    negative = x < 0.5
    rest = x - np.rint(x)
    is_pole = negative & (rest == 0)
    above = np.where(negative, np.where(rest > 0, rest, 1 + rest), x)
    below = np.where(negative & ~is_pole, np.where(rest > 0, 1 - rest, -rest), 1.0)
    near = _zeta(s, np.where(is_pole, 1.0, above))
    two_sided = (near + sign * _zeta(s, below)) - sign * _zeta(s, np.where(negative, 1 - x, 1.0))
    total = np.where(is_pole, np.inf, np.where(negative, two_sided, near))
    return sign * safely(math.gamma)(s) * np.where(np.isnan(x), x, total)


def polygamma(n: int) -> Function:
    """The ``n`` th derivative of digamma; for infinities, what torch gives."""
    if n == 0:
        return digamma
    far = (0.0, math.nan) if n == 1 else (math.nan, (-1) ** (n + 1) * math.inf)

    def compute(x: Array) -> Array:
        found = _polygamma(n, np.where(np.isinf(x), 1.0, x))
        return np.where(np.isinf(x), np.where(x > 0, *far), found)

    return _in_double(compute)


# -- the logarithm of gamma next to its zeros ------------------------------------

_GAMMA = 0.5772156649015329
_LESS_ONE = [0.0, 0.0, *(float(_zeta(k, np.array(2.0))) for k in range(2, 40))]
"""Riemann's function of 2, 3... less 1."""


def _log_gamma(x: Array) -> Array:
    """By ``math``; near 1 and 2, where it loses digits, by series (Abramowitz and Stegun, 6.1.33)."""
    z = x - np.where(x < 1.5, 1.0, 2.0)
    is_near = np.abs(z) <= 0.5
    z = np.where(is_near, z, 0.0)
    series = np.zeros_like(z)
    for k in range(len(_LESS_ONE) - 1, 1, -1):
        series = (series + (-1) ** k * _LESS_ONE[k] / k) * z
    near = (series + (1 - _GAMMA)) * z - np.where(x < 1.5, np.log1p(z), 0.0)
    return np.where(is_near, near, _each(math.lgamma)(x))


FUNCTIONS: dict[str, Function] = {
    "digamma": digamma,
    "erfc": _in_double(_erfc),
    "erfinv": _in_double(_erf_inverse),
    "i0": _in_double(np.i0),
    "i0e": _in_double(_bessel(0)),
    "i1": _in_double(_i1),
    "i1e": _in_double(_bessel(1)),
    "lgamma": _in_double(_log_gamma),
}
"""Primitives of `irc.ops.algebra` that NumPy lacks."""
