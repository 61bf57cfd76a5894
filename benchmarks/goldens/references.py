"""What pointwise operators compute, in extended precision: the references that kernels' errors are measured against.

Each function takes and gives arrays of ``np.longdouble``, by the mathematical definition, not by how kernels go about
it. Where a definition cancels (``1 - erf(x)``, ``exp(x) - 1``) it is written in a form that does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]

L = np.longdouble
PI = L("3.14159265358979323846264338327950288")
LOG_2 = np.log(L(2))
SELU_ALPHA, SELU_SCALE = L("1.67326319217681884765625"), L("1.05070102214813232421875")
TORCH_SELU_ALPHA, TORCH_SELU_SCALE = L("1.6732632423543772848170429916717"), L("1.0507009873554804934193349852946")


NEAR = 1.0
"""Below, the error function's series is used, above the continued fraction: each where it does not cancel."""


def erf(x: Array) -> Array:
    """Error function."""
    is_near = np.abs(x) < NEAR
    far = 1 - erfc(np.where(is_near, NEAR, np.abs(x)))
    return np.where(is_near, _erf_series(np.where(is_near, x, 0)), np.copysign(far, x))


def erfc(x: Array) -> Array:
    """Complementary error function: `_erf_series`, or a continued fraction (Abramowitz and Stegun 7.1.14)."""
    is_near = np.abs(x) < NEAR
    far = np.clip(np.abs(x), NEAR, 120)
    fraction = far
    for k in range(500, 0, -1):
        fraction = far + L(k) / 2 / fraction
    tail = np.exp(-far * far) / np.sqrt(PI) / fraction
    near = 1 - _erf_series(np.where(is_near, x, 0))
    return np.where(np.isnan(x), x, np.where(is_near, near, np.where(x < 0, 2 - tail, tail)))


def _erf_series(x: Array) -> Array:
    """The error function by its series (Abramowitz and Stegun 7.1.6)."""
    term, total = x, x
    for n in range(1, 40):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(PI) * np.exp(-x * x) * total


def erfinv(y: Array) -> Array:
    """Inverse error function: Newton's method, on `erfc` where results are large."""
    inside = np.abs(y) < 1
    size = np.where(inside, np.abs(y), 0)
    log = np.log1p(-size * size)
    first = 2 / (PI * L("0.147")) + log / 2
    x = np.sqrt(np.sqrt(first * first - log / L("0.147")) - first)  # S. Winitzki's approximation
    for _ in range(6):
        error = np.where(size < 0.5, erf(x) - size, (1 - size) - erfc(x))
        slope = 2 / np.sqrt(PI) * np.exp(-x * x)
        x = x - error / slope / (1 + x * error / slope)  # Halley's
    edge = np.where(np.abs(y) == 1, np.inf * np.sign(y), np.nan)
    return np.where(inside, np.copysign(x, y), edge)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def swish(x: Array, alpha: float = 1.0) -> Array:
    """Swish: x sigmoid(alpha x), with NaN at -inf, as the formula has it: so do `mish` and `gelu`."""
    return x * sigmoid(L(alpha) * x)


def softplus(x: Array) -> Array:
    return np.where(x > 0, x + np.log1p(np.exp(-np.abs(x))), np.log1p(np.exp(np.minimum(x, 0))))


def mish(x: Array) -> Array:
    e = np.exp(np.minimum(x, 50))
    gate = e * (e + 2) / (e * (e + 2) + 2)
    return x * np.where(x > 50, 1, gate)


def gelu(x: Array) -> Array:
    return x / 2 * erfc(-x / np.sqrt(L(2)))


def gelu_tanh(x: Array) -> Array:
    inner = np.sqrt(2 / PI) * (x + L("0.044715") * x * x * x)
    return x * sigmoid(2 * inner)


def elu(alpha: float = 1.0, scale: Any = 1.0, divisor: float = 1.0) -> Reference:
    """The reference for alpha, scale, and celu's divisor of the exponent."""
    return lambda x: L(scale) * np.where(x > 0, x, L(alpha) * np.expm1(np.minimum(x, 0) / L(divisor)))


def hard_sigmoid(alpha: Any, beta: Any) -> Reference:
    return lambda x: np.clip(L(alpha) * x + L(beta), 0, 1)


def hard_swish(slope: Any) -> Reference:
    return lambda x: x * np.clip(L(slope) * x + L(0.5), 0, 1)


def shrink(lambd: float, bias: float) -> Reference:
    def reference(x: Array) -> Array:
        moved = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
        return np.where(np.isnan(x), x if bias == lambd else 0, moved)

    return reference


def maximum(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(y > x, y, x))


def minimum(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(y < x, y, x))


def sum_of(*operands: Array) -> Array:
    return reduce(np.add, operands)


def sign(x: Array) -> Array:
    return np.where(np.isnan(x), x, np.sign(x))


def fmod(x: Array, y: Array) -> Array:
    return np.fmod(x, y)


def remainder(x: Array, y: Array) -> Array:
    """The remainder that has the divisor's sign, exact: that of `fmod`, and the divisor where signs differ."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def lerp(x: Array, y: Array, z: Array) -> Array:
    """From x to y by z; beyond the middle, counted from y, which matters for infinities."""
    return np.where(np.abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z))


def xlogy(x: Array, y: Array) -> Array:
    return np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log(y)))


def sinc(x: Array) -> Array:
    angle = PI * np.where(x == 0, 1, x)
    whole = np.where(np.isfinite(x), x - np.rint(x), np.nan)
    odd = np.where(np.fmod(np.abs(np.rint(x)), 2) == 1, -1, 1)
    return np.where(x == 0, 1, odd * np.sin(PI * whole) / angle)  # sin(pi x) loses all digits of large x


def entropy(x: Array) -> Array:
    return np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x)))


def logaddexp(x: Array, y: Array) -> Array:
    high, low = maximum(x, y), minimum(x, y)
    return np.where(np.isinf(x) & (x == y), x, high + np.log1p(np.exp(low - high)))


def logaddexp2(x: Array, y: Array) -> Array:
    high, low = maximum(x, y), minimum(x, y)
    return np.where(np.isinf(x) & (x == y), x, high + np.log1p(np.exp2(low - high)) / LOG_2)


def lgamma(x: Array) -> Array:
    """Logarithm of |gamma|: Stirling's series far from 0 (Abramowitz and Stegun 6.1.41), reflected below 1/2."""
    is_low = x < 0.5
    y = np.where(is_low, 1 - x, x)
    product, shifted = np.ones_like(y), y
    for _ in range(30):
        is_near = shifted < 30
        product = np.where(is_near, product * np.where(is_near, shifted, 1), product)
        shifted = np.where(is_near, shifted + 1, shifted)
    series = sum(L(a) / L(b) / shifted**k for k, (a, b) in enumerate(_STIRLING) if k % 2)
    found = (shifted - L(0.5)) * np.log(shifted) - shifted + np.log(2 * PI) / 2 + series - np.log(product)
    fraction = x - np.rint(x)
    reflected = np.log(PI / np.abs(np.sin(PI * fraction))) - found
    found = np.where(is_low, np.where(fraction == 0, np.inf, reflected), found)
    return np.where(np.isinf(x), np.inf, found)


_STIRLING = [(0, 1), (1, 12), (0, 1), (-1, 360), (0, 1), (1, 1260), (0, 1), (-1, 1680), (0, 1), (1, 1188)]
_STIRLING += [(0, 1), (-691, 360360), (0, 1), (1, 156), (0, 1), (-3617, 122400)]


def digamma(x: Array) -> Array:
    """Logarithmic derivative of gamma: its asymptotic series far from 0 (Abramowitz and Stegun 6.3.18), reflected."""
    is_low = x < 0
    y = np.where(is_low, 1 - x, x)
    total, shifted = np.zeros_like(y), y
    for _ in range(30):
        is_near = shifted < 30
        total = np.where(is_near, total - 1 / np.where(is_near, shifted, 1), total)
        shifted = np.where(is_near, shifted + 1, shifted)
    series = sum(L(a) / L(b) / shifted**k for k, (a, b) in enumerate(_DIGAMMA) if k and k % 2 == 0)
    found = total + np.log(shifted) - 1 / (2 * shifted) - series
    fraction = x - np.rint(x)
    pole = np.where(x == 0, np.copysign(np.inf, -x), np.nan)
    reflected = np.where(fraction == 0, pole, found - PI / np.tan(PI * np.where(fraction == 0, 1, fraction)))
    return np.where(is_low | (x == 0), reflected, found)


_DIGAMMA = [(0, 1), (0, 1), (1, 12), (0, 1), (-1, 120), (0, 1), (1, 252), (0, 1), (-1, 240), (0, 1), (1, 132)]
_DIGAMMA += [(0, 1), (-691, 32760), (0, 1), (1, 12)]


def bessel(order: int, scaled: bool) -> Reference:
    """Modified Bessel functions of the first kind, order 0 or 1, times exp(-|x|) if ``scaled``.

    By their series, or the asymptotic one where |x| > 60 (Abramowitz and Stegun 9.6.10, 9.7.1).
    """

    def reference(x: Array) -> Array:
        size = np.abs(x)
        half = np.minimum(size, 60) / 2
        term = near = np.exp(-2 * half) * half**order
        for k in range(1, 200):
            term = term * half * half / (k * (k + order))
            near = near + term
        large = np.maximum(size, 60)
        term = far = 1 / np.sqrt(2 * PI * large)
        for k in range(1, 30):
            term = term * -(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * large)
            far = far + term
        found = np.where(size <= 60, near, far)
        if not scaled:
            found = found * np.exp(size / 2) * np.exp(size / 2)
        found = np.where(np.isinf(x), 0 if scaled else np.inf, found)
        return np.where(np.isnan(x), x, np.copysign(found, x) if order else found)

    return reference
