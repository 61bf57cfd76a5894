"""Elementwise functions that NumPy has no single ufunc for.

Each takes ``(x, out)``: float32 or float64 arrays of one shape and type, where
``out`` may be ``x`` itself, and writes its result to ``out``. Those with
parameters are made by a factory. Constants are 0-d float32 arrays: with them a
ufunc call on a small array takes half the time that it takes with Python
numbers, and ONNX's attributes are float32 anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, chosen

Function = Callable[[Array, Array], Any]


def constant(value: float) -> Array:
    """``value`` as a 0-d float32 array."""
    return np.array(value, np.float32)


ZERO, HALF, ONE = constant(0), constant(0.5), constant(1)


FILLED = 1 << 14
"""Elements of a block filled with a number."""

WORTH_FILLING = 1 << 13
"""Elements from which on such a block saves more time than it takes."""


def bounded(ufunc: Callable[..., Any]) -> Callable[..., Array]:
    """``np.maximum`` or ``np.minimum`` of an array and a bound that broadcasts to it: ``(x, bound, out=None)``.

    Where both are zero, the result is ``x``, with its sign, as comparisons define it (``x < bound ? bound : x``).
    NumPy's loops take four times as long for an array and a number as for two arrays, so a large array meets a block
    filled with the number.
    """
    kept = _Kept(ufunc)

    def pair(x: Array, bound: Array, out: Array | None = None) -> Array:
        which = kept[x.dtype]
        if which == 1:
            return ufunc(bound, x, out=out, order="C")
        if which == 0:
            return ufunc(x, bound, out=out, order="C")
        equal = np.equal(x, bound)
        zeros = np.broadcast_to(x, equal.shape)[equal]  # before `out`, which may be `x`, is written
        found = np.asarray(ufunc(x, bound, out=out, order="C"))
        found[equal] = zeros
        return found

    def function(x: Array, bound: Array, out: Array | None = None) -> Array:
        is_large = x.size >= WORTH_FILLING and not bound.ndim and x.dtype == bound.dtype
        if not is_large or not (x.flags.c_contiguous and (out is None or out.flags.c_contiguous)):
            if out is None or kept[x.dtype] != 1:
                return np.asarray(pair(x, bound, out))
            return ufunc(bound, x, out=out)
        found = np.empty(x.shape, x.dtype) if out is None else out
        filled = _filled(x.dtype, bound.tobytes())
        source, target, whole = x.reshape(-1), found.reshape(-1), x.size // FILLED * FILLED
        if whole:
            pair(source[:whole].reshape(-1, FILLED), filled, target[:whole].reshape(-1, FILLED))
        if whole < x.size:
            pair(source[whole:], filled[: x.size - whole], target[whole:])
        return found

    return function


class _Kept(dict[np.dtype[Any], "int | None"]):
    """`_kept_zero` of a ufunc, by element type."""

    def __init__(self, ufunc: Callable[..., Any]) -> None:
        super().__init__()
        self.ufunc = ufunc

    def __missing__(self, dtype: np.dtype[Any]) -> int | None:
        found = self[dtype] = _kept_zero(self.ufunc, dtype)
        return found


def _kept_zero(ufunc: Callable[..., Any], dtype: np.dtype[Any]) -> int | None:
    """Which of two zeros of different signs ``ufunc`` gives: operand 0 or 1; None if it depends on signs or sizes.

    It is a matter of the processor's instructions and of NumPy's loops. Of integers there is one zero.
    """
    if dtype.kind not in "fV":
        return 1
    plus = np.zeros(2 * _PROBED, dtype)
    signs = set[bool]()
    for first, second in ((plus, -plus), (-plus, plus)):
        for step in (1, 2):
            for size in (1, 3, _PROBED):
                x, y = first[::step][:size], second[::step][:size]
                for left, right in ((x, y), (x[0], y), (x, y[0])):
                    is_first = np.signbit(ufunc(left, right)) == np.signbit(x)
                    signs.update(map(bool, is_first))
    return None if len(signs) > 1 else int(not signs.pop())


_PROBED = 67
"""More than the widest vectors hold, and not a multiple of them."""


@lru_cache(maxsize=16)
def _filled(dtype: np.dtype[Any], number: bytes) -> Array:
    """A block of one number, given by its bytes."""
    block = np.frombuffer(number, dtype).repeat(FILLED)
    block.flags.writeable = False
    return block


at_least, at_most = bounded(np.maximum), bounded(np.minimum)


def _like(x: Array, purpose: str) -> Array:
    """An uninitialised array like ``x``; from some size on, memory that is kept: fresh one costs page faults."""
    return np.empty_like(x) if x.nbytes < 1 << 16 else scratch(purpose, x.shape, x.dtype)


def negative(x: Array, out: Array | None = None) -> Any:
    """-x. NumPy 2.4's own is wrong for some steps between elements, where operand and result both have them."""
    if out is None or x.flags.c_contiguous or out.flags.c_contiguous:
        return np.negative(x, out)
    np.copyto(out, np.negative(x))
    return out


def sigmoid(x: Array, out: Array) -> None:
    """1 / (1 + exp(-x)); exp overflows to infinity for very negative x, which gives the right 0.

    Neither tanh, which takes half the time, as its error is large relative to results next to 0 (whose logarithm models
    take), nor exp2, which in every third process takes four times as long (docs/performance.md).
    """
    negative(x, out)
    np.exp(out, out)
    np.add(out, ONE, out)
    np.divide(ONE, out, out)  # half of reciprocal's time


def softplus(x: Array, out: Array) -> None:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which cannot overflow."""
    tail = _like(x, "tail")
    np.absolute(x, tail)
    negative(tail, tail)
    np.exp(tail, tail)
    np.log1p(tail, tail)
    at_least(x, ZERO, out)
    np.add(out, tail, out)


def softsign(x: Array, out: Array) -> None:
    """Softsign: x / (1 + |x|)."""
    divisor = _like(x, "divisor")
    np.absolute(x, divisor)
    np.add(divisor, ONE, divisor)
    np.divide(x, divisor, out)


def mish(x: Array, out: Array) -> None:
    """Mish: x tanh(softplus(x))."""
    gate = _like(x, "gate")
    softplus(x, gate)
    np.tanh(gate, gate)
    np.multiply(x, gate, out)


def leaky_relu(alpha: float) -> Function:
    """Leaky relu: x where x >= 0, else alpha x."""
    slope = constant(alpha)
    if 0 < alpha < np.inf:  # then one comparison of x with alpha x selects the right one
        select = np.maximum if alpha <= 1 else np.minimum

        def monotonic(x: Array, out: Array) -> None:
            select(x, np.multiply(x, slope), out=out)

        return monotonic

    def general(x: Array, out: Array) -> None:
        prelu(x, slope, out)

    return general


def prelu(x: Array, slope: Array, out: Array) -> None:
    """Parametric relu: x where x >= 0, else slope x, which need not be a number where x >= 0."""
    below = np.less(x, ZERO)
    scaled = np.multiply(x, slope)
    np.copyto(out, x)
    np.copyto(out, scaled, where=below)


def elu(alpha: float) -> Function:
    """Exponential linear unit: x where x >= 0, else alpha (exp(x) - 1)."""
    return scaled_elu(alpha, 1.0)


def scaled_elu(alpha: float, gamma: float, stretch: float = 1.0) -> Function:
    """The family of Elu, Selu and Celu: gamma x where x >= 0, else gamma alpha (exp(x / stretch) - 1)."""
    negative_scale, positive_scale, divisor = constant(gamma * alpha), constant(gamma), constant(stretch)
    is_elu = gamma == stretch == 1

    def function(x: Array, out: Array) -> None:
        negative = _like(x, "negative")
        at_most(x, ZERO, negative)
        if stretch != 1:
            np.divide(negative, divisor, negative)
        np.expm1(negative, negative)
        np.multiply(negative, negative_scale, negative)
        at_least(x, ZERO, out)
        if not is_elu:  # whose formulas give 0 for -0
            np.multiply(out, positive_scale, out)
            np.add(out, ZERO, out)
        np.add(out, negative, out)

    return function


def celu(alpha: float) -> Function:
    """Continuously differentiable Elu: max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    return scaled_elu(alpha, 1.0, alpha)


def hard_sigmoid(alpha: float, beta: float) -> Function:
    """Hard sigmoid: max(0, min(1, alpha x + beta))."""
    slope, offset = constant(alpha), constant(beta)

    def function(x: Array, out: Array) -> None:
        np.multiply(x, slope, out)
        np.add(out, offset, out)
        at_most(out, ONE, out)
        at_least(out, ZERO, out)

    return function


def hard_swish() -> Function:
    """Hard swish: x hard_sigmoid(x) with alpha = 1/6, beta = 1/2."""
    gate_of = hard_sigmoid(1 / 6, 0.5)

    def function(x: Array, out: Array) -> None:
        gate = _like(x, "gate")
        gate_of(x, gate)
        np.multiply(x, gate, out)

    return function


def swish(alpha: float) -> Function:
    """Swish: x sigmoid(alpha x), as x / (1 + exp(-alpha x)), for which holds what `sigmoid` says."""
    scale = constant(-alpha)

    def function(x: Array, out: Array) -> None:
        divisor = _like(x, "divisor")
        np.multiply(x, scale, divisor)
        np.exp(divisor, divisor)
        np.add(divisor, ONE, divisor)
        np.divide(x, divisor, out)

    return function


def thresholded_relu(alpha: float) -> Function:
    """Thresholded relu: x where x > alpha, else 0."""
    threshold = constant(alpha)

    def function(x: Array, out: Array) -> None:
        chosen(np.greater(x, threshold), x, np.zeros((), x.dtype), out)

    return function


def shrink(lambd: float, bias: float) -> Function:
    """Shrink: x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    upper, lower, offset = constant(lambd), constant(-lambd), constant(bias)

    def function(x: Array, out: Array) -> None:
        above, below = x > upper, x < lower
        np.copyto(out, np.where(below, x + offset, np.where(above, x - offset, ZERO)))

    return function


def _by_type(value: float) -> dict[str, Array]:
    return {"f": np.array(value, np.float32), "d": np.array(value, np.float64)}


_ROOT_OF_HALF, _LINEAR, _CUBIC = (
    _by_type(value) for value in (math.sqrt(0.5), -math.sqrt(8 / math.pi), -math.sqrt(8 / math.pi) * 0.044715)
)


def gelu(x: Array, out: Array) -> None:
    """Gelu: x Φ(x), Φ the normal distribution's function: x (1 + erf(x / √2)) / 2."""
    if x.dtype == np.float32:
        _gelu_single(x, out)
        return
    gate = _like(x, "gate")
    np.multiply(x, _ROOT_OF_HALF[x.dtype.char], gate)
    erf(gate, gate)
    np.add(gate, ONE, gate)
    np.multiply(gate, HALF, gate)
    np.multiply(x, gate, out)


def _gelu_single(x: Array, out: Array) -> None:
    """`gelu` by the polynomial of `_erf_single`: as (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)), x over that divisor."""
    divisor = _like(x, "divisor")
    _odd_polynomial(x, _GATE, divisor, divisor)
    _over_one_more_than_power(x, divisor, out)


def gelu_tanh(x: Array, out: Array) -> None:
    """Gelu's approximation x (1 + tanh(z)) / 2, where z = √(2/π) (x + 0.044715 x³), as x / (1 + exp(-2z))."""
    divisor = _like(x, "divisor")
    np.multiply(x, x, divisor)
    np.multiply(divisor, _CUBIC[x.dtype.char], divisor)
    np.add(divisor, _LINEAR[x.dtype.char], divisor)
    np.multiply(divisor, x, divisor)
    _over_one_more_than_power(x, divisor, out)


def _over_one_more_than_power(x: Array, exponent: Array, out: Array) -> None:
    """X / (1 + exp(exponent)); ``exponent`` is written over."""
    np.exp(exponent, exponent)
    np.add(exponent, ONE, exponent)
    np.divide(x, exponent, out)


def _coefficients(dtype: type[np.floating[Any]], *values: float) -> list[Array]:
    return [np.array(v, dtype) for v in values]


# erf in double precision: W. J. Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23 (1969); up to 0.46875 x P(x²)/Q(x²), above 1 - exp(-x²) P(x)/Q(x).
# fmt: off
_SMALL_P = _coefficients(
    np.float64,
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = _coefficients(
    np.float64,
    1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3,
)
_LARGE_P = _coefficients(
    np.float64,
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
    1.23033935479799725e3,
)
_LARGE_Q = _coefficients(
    np.float64,
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)
# erf in single precision: tanh(x P(x²)), where P approximates artanh(erf(x)) / x. Fitted by Lawson's iteration (least
# squares, reweighted) for the least relative error of erf on [0, 4]. Beyond, P stays positive: tanh is 1 as it should.
_SINGLE = _coefficients(
    np.float32,
    1.41880328781613e-7, -5.668975385369043e-6, 8.76403957493384e-5, -6.19792692219511e-4,
    -1.918218746171669e-4, 1.027690521998242e-1, 1.1283792746246855e0,
)
# fmt: on

# Of -2z for `_gelu_single`, where z = u P(u²) for u = x / √2: as a polynomial of x², without the factor x.
_GATE = _coefficients(np.float32, *(-math.sqrt(2) * float(c) / 2**i for i, c in zip(range(6, -1, -1), _SINGLE)))


def erf(x: Array, out: Array) -> None:
    """The error function, to 5 ulp in both float32 and float64."""
    if x.dtype == np.float32:
        _erf_single(x, out)
    else:
        _erf_double(x, out)


def _erf_single(x: Array, out: Array) -> None:
    _odd_polynomial(x, _SINGLE, _like(x, "slope"), out)
    np.tanh(out, out)


def _erf_double(x: Array, out: Array) -> None:
    size, square, small, tail, divisor = (_like(x, name) for name in ("size", "square", "small", "tail", "divisor"))
    np.multiply(x, x, square)
    _polynomial(square, _SMALL_P, small)
    _polynomial(square, _SMALL_Q, divisor)
    np.divide(small, divisor, small)
    np.multiply(small, x, small)
    np.absolute(x, size)
    near = size <= 0.46875
    np.minimum(size, 6.0, out=size)  # erf(6) is 1 to double precision
    _polynomial(size, _LARGE_P, tail)
    _polynomial(size, _LARGE_Q, divisor)
    np.divide(tail, divisor, tail)
    np.multiply(size, size, square)
    negative(square, square)
    np.exp(square, square)
    np.multiply(tail, square, tail)
    np.subtract(ONE, tail, tail)
    np.copysign(tail, x, tail)
    np.copyto(out, np.where(near, small, tail))


def _odd_polynomial(x: Array, coefficients: Sequence[Array], slope: Array, out: Array) -> None:
    """X P(x²), P the polynomial with these coefficients, for which there is ``slope``: not ``x``, but maybe ``out``."""
    square = _like(x, "square")
    np.multiply(x, x, square)
    _polynomial(square, coefficients, slope)
    np.multiply(x, slope, out)


def _polynomial(x: Array, coefficients: Sequence[Array], out: Array) -> None:
    """The polynomial with these coefficients, highest power first, at ``x`` (Horner's rule)."""
    np.multiply(x, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, x, out)
    np.add(out, coefficients[-1], out)
