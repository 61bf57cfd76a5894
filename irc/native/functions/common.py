"""What the mathematical functions share: facts of the element types, polynomials, powers of two.

Invariants of all functions of this package:

- They take and give lanes of float32 or float64, and compute in that type; float64 stands in for float32 in rare paths
  only.
- They have no divisions, square roots or integer multiplications that processors lack; on those without `fma`, where
  `Lanes.fma` rounds twice, the same bounds hold. What has to be exact is exact either way.
- NaN goes through: comparisons are written so that a NaN operand is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irc.native.functions.coefficients import COEFFICIENTS
from irc.native.lanes import INT32, INT64, Lanes, joined, select
from irc.ops.algebra import SINGLE, AnyDType


@dataclass(frozen=True)
class Format:
    """A binary floating-point format, and constants split for it.

    Attributes:
        mantissa: explicit bits of the significand.
        bias: of the exponent.
        half_range: a power of two far from both ends of the range, whose square is beyond either.
        integer: signed integers of the same size.
        log_2: log(2) as a sum of a number with so few bits that exponents times it are exact, and the rest.
        log10_2: log10(2), likewise.
        half_pi: π/2 as a sum of numbers; multiples of the first three up to `reducible` are exact.
        reducible: the largest operand of trigonometric functions that these serve.
        exp_low: exp of less is 0, also without rounding to denormal numbers.
        exp_high: exp of more is infinite.
    """

    mantissa: int
    bias: int
    half_range: int
    integer: AnyDType
    log_2: tuple[float, float]
    log10_2: tuple[float, float]
    half_pi: tuple[float, float, float, float]
    reducible: float
    exp_low: float
    exp_high: float

    @property
    def rounder(self) -> float:
        """Adding this to a number far below it rounds to integers, which the low bits of the sum then hold."""
        return 1.5 * 2.0**self.mantissa

    @property
    def exponent_bits(self) -> int:
        return self.bias.bit_length() + 1

    @property
    def one(self) -> int:
        """The bits of 1."""
        return self.bias << self.mantissa

    @property
    def least(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)


_FLOAT32 = Format(
    mantissa=23,
    bias=127,
    half_range=64,
    integer=INT32,
    log_2=(0.693145751953125, 1.4286068203094173e-06),
    log10_2=(0.301025390625, 4.605038981195214e-06),
    half_pi=(1.570556640625, 0.0002396702766418457, 1.5890691429376602e-08, 2.5633440682570896e-12),
    reducible=3000.0,
    exp_low=-104.5,
    exp_high=89.0,
)
_FLOAT64 = Format(
    mantissa=52,
    bias=1023,
    half_range=512,
    integer=INT64,
    log_2=(0.6931471805598903, 5.497923018708371e-14),
    log10_2=(0.3010299956640665, -8.532344317057107e-14),
    half_pi=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
    reducible=1.6e6,
    exp_low=-746.0,
    exp_high=710.0,
)


def format_of(x: Lanes) -> Format:
    """The format of a value's element type."""
    return _FLOAT32 if x.dtype == SINGLE else _FLOAT64


def coefficients(name: str, x: Lanes) -> tuple[float, ...]:
    """The coefficients of an approximation for a value's element type, lowest power first."""
    return COEFFICIENTS[name][x.dtype != SINGLE]


def horner(x: Lanes, factors: Sequence[float]) -> Lanes:
    """The polynomial with these coefficients, lowest power first, from the highest on."""
    found = x.constant(factors[-1])
    for factor in reversed(factors[:-1]):
        found = found.fma(x, factor)
    return found


def polynomial(x: Lanes, factors: Sequence[float]) -> Lanes:
    """The same, as even and odd powers apart: half of the latency for one multiplication more."""
    if len(factors) < 5:
        return horner(x, factors)
    square = x * x
    return horner(square, factors[1::2]).fma(x, horner(square, factors[::2]))


def at_most(x: Lanes, limit: float) -> Lanes:
    """The lesser of x and ``limit``; NaN of NaN."""
    return select(x > limit, limit, x)


def at_least(x: Lanes, limit: float) -> Lanes:
    """The greater of x and ``limit``; NaN of NaN."""
    return select(x < limit, limit, x)


def magnitude(x: Lanes) -> Lanes:
    """The size of a number, without its sign."""
    return x.emitter.intrinsic("fabs", x)


def with_sign(x: Lanes, sign: Lanes) -> Lanes:
    """|x| with the sign of another."""
    return x.emitter.intrinsic("copysign", x, sign)


def square_root(x: Lanes) -> Lanes:
    """The square root, to the nearest."""
    return x.emitter.intrinsic("sqrt", x)


def rounded(x: Lanes, factor: float) -> tuple[Lanes, Lanes]:
    """The integer nearest to ``x * factor``, or one of two, and 2 to that power less the bits of 1.

    For numbers of less than half the significand's bits.
    """
    form = format_of(x)
    moved = x.fma(factor, form.rounder)
    return moved - form.rounder, moved.bits_as_integers() << form.mantissa


def power_of_two(exponent: Lanes, x: Lanes, offset: int = 0) -> Lanes:
    """2^(k + offset), of k as `rounded` gives it in bits, for a normal result, in the type of x."""
    form = format_of(x)
    return (exponent + (form.one + (offset << form.mantissa))).bitcast(x.dtype)


def exact_product(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """The product, rounded, and what rounding took away, where neither overflows nor underflows."""
    product = x * y
    if x.emitter.has_fma:
        return product, x.emitter.intrinsic("fma", x, y, -product)
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, b * d + (a * d + (a * c - product) + b * c)  # each product is exact


def _halves(x: Lanes) -> tuple[Lanes, Lanes]:
    """Split a number into a sum of numbers with half of the significand's bits."""
    bits = x.bits_as_integers()
    high = (bits & -(1 << ((format_of(x).mantissa + 2) // 2))).bitcast(x.dtype)
    return high, x - high


@dataclass(frozen=True)
class Pair:
    """A number as an unevaluated sum, the second part of which is at most about half an ulp of the first."""

    high: Lanes
    low: Lanes

    def __add__(self, other: Pair) -> Pair:
        """The sum; of the two the first is the larger."""
        high, low = ordered_sum(self.high, other.high)
        return renormalized(high, low + (self.low + other.low))

    def __mul__(self, other: Pair) -> Pair:
        high, low = exact_product(self.high, other.high)
        return renormalized(high, self.low.fma(other.high, self.high.fma(other.low, low)))


def exact_sum(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """The sum, rounded, and what rounding took away."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def ordered_sum(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """The same where y is not the larger one, or x is 0."""
    total = x + y
    return total, y - (total - x)


def renormalized(high: Lanes, low: Lanes) -> Pair:
    """The sum of a number and one that is not larger."""
    return Pair(*ordered_sum(high, low))


def constant_pair(x: Lanes, value: tuple[float, float]) -> Pair:
    """A constant, given as a sum of two numbers of float64, in the type of x."""
    high, low = value
    if x.dtype == SINGLE:
        rounded_high = float(np.float32(high))
        high, low = rounded_high, high - rounded_high
    return Pair(x.constant(high), x.constant(low))


def where_any(condition: Lanes, values: Sequence[Lanes], changed: Callable[[], Sequence[Lanes]]) -> list[Lanes]:
    """``changed()`` if ``condition`` holds in any lane, else ``values``: what is rare costs a branch."""
    emitter = condition.emitter
    builder = emitter.builder
    kind = condition.value.type
    reduce = emitter.declare(f"llvm.vector.reduce.or.v{emitter.count}i1", kind.element, [kind])
    before, rare, after = builder.block, builder.append_basic_block("rare"), builder.append_basic_block("after")
    builder.cbranch(builder.call(reduce, [condition.value]), rare, after)
    builder.position_at_end(rare)
    found, rare = changed(), builder.block
    builder.branch(after)
    builder.position_at_end(after)
    return [x.made(joined(builder, (x.value, before), (y.value, rare))) for x, y in zip(values, found)]


LOG2_E = 1 / math.log(2)
