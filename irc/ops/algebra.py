"""Expressions of scalars: what a pointwise operator computes of one element of each operand.

An expression is a tree (or, where a value is used twice, a graph) of primitives over operands and constants. Each of
its nodes has an element type, a NumPy dtype. Expressions are made by calling primitives, or by Python's operators, on
other expressions; a Python number among the arguments becomes a constant of the other arguments' type.

Whoever evaluates expressions (ufuncs, a code generator, the tests' scalar interpreter) implements the primitives. Each
means the same for all of them, stated once, in `PRIMITIVES`. These rules hold for all primitives:

- Floats follow IEEE 754: round to nearest, ties to even; no operation is fused with another, reordered, or replaced by
  one that rounds otherwise. A NaN operand gives NaN, where the primitive does not say otherwise; which NaN is open.
- Integers wrap around: results are taken modulo 2^bits. No integer operation traps.
- Complex numbers follow C99, as NumPy does. Comparisons, rounding and what selects by size are not defined for them.
- float16, bfloat16 and smaller floats do not occur in expressions: such operands are converted to float32, and the
  result is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
AnyDType = np.dtype[Any]
Number = complex
"""What may stand for a constant: a Python number, a bool among them."""

BOOL = np.dtype(np.bool_)
SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)


class Expression:
    """A scalar of one element type.

    Attributes:
        dtype: the element type.
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: AnyDType) -> None:
        self.dtype = dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer; bools are not."""
        return self.dtype.kind in "iu"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def __add__(self, other: Expression | Number) -> Expression:
        return add(self, other)

    def __radd__(self, other: Number) -> Expression:
        return add(other, self)

    def __sub__(self, other: Expression | Number) -> Expression:
        return subtract(self, other)

    def __rsub__(self, other: Number) -> Expression:
        return subtract(other, self)

    def __mul__(self, other: Expression | Number) -> Expression:
        return multiply(self, other)

    def __rmul__(self, other: Number) -> Expression:
        return multiply(other, self)

    def __truediv__(self, other: Expression | Number) -> Expression:
        return divide(self, other)

    def __rtruediv__(self, other: Number) -> Expression:
        return divide(other, self)

    def __neg__(self) -> Expression:
        return negative(self)

    def __abs__(self) -> Expression:
        return absolute(self)

    def __lt__(self, other: Expression | Number) -> Expression:
        return less(self, other)

    def __le__(self, other: Expression | Number) -> Expression:
        return less_equal(self, other)

    def __gt__(self, other: Expression | Number) -> Expression:
        return greater(self, other)

    def __ge__(self, other: Expression | Number) -> Expression:
        return greater_equal(self, other)


class Operand(Expression):
    """The element of the operand at ``index``."""

    __slots__ = ("index",)

    def __init__(self, index: int, dtype: AnyDType) -> None:
        super().__init__(dtype)
        self.index = index

    def __repr__(self) -> str:
        return f"x{self.index}"


class Constant(Expression):
    """A number, rounded once to the element type."""

    __slots__ = ("value",)

    def __init__(self, value: Number, dtype: AnyDType) -> None:
        if isinstance(value, complex) and dtype.kind != "c":
            raise TypeError(f"{value} is not a constant of type {dtype.name}")
        super().__init__(dtype)
        self.value = value

    def __repr__(self) -> str:
        if isinstance(self.value, float) and math.isnan(self.value) and math.copysign(1, self.value) < 0:
            return "-nan"
        return repr(self.value)


class Apply(Expression):
    """A primitive of other expressions."""

    __slots__ = ("arguments", "primitive")

    def __init__(self, primitive: Primitive, arguments: tuple[Expression, ...], dtype: AnyDType) -> None:
        super().__init__(dtype)
        self.primitive, self.arguments = primitive, arguments

    def __repr__(self) -> str:
        into = f", {self.dtype.name}" if self.primitive is CAST else ""
        return f"{self.primitive.name}({', '.join(map(repr, self.arguments))}{into})"


@dataclass(frozen=True, eq=False)
class Primitive:
    """A function of scalars that evaluators implement.

    Attributes:
        name: as ``PRIMITIVES`` has it.
        arity: the number of arguments.
        meaning: what it gives, where the rules of this module do not say so already.
        ulp: the largest error, in units in the last place, of float32 and float64; 0.5 is correct rounding.
        gives_bool: whether it gives a truth value; else its result has the type of the last argument.
        expansion: the same by other primitives, for evaluators that do not have this one.
    """

    name: str
    arity: int
    meaning: str = ""
    ulp: float = 0.5
    gives_bool: bool = False
    expansion: Callable[..., Expression] | None = field(default=None, repr=False)

    def __call__(self, *arguments: Expression | Number) -> Expression:
        """This primitive applied to ``arguments``, numbers among which become constants.

        Raises:
            TypeError: arguments are of different types where the primitive has one type, or too few or too many.
        """
        if len(arguments) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} arguments, not {len(arguments)}")
        dtypes = [x.dtype for x in arguments if isinstance(x, Expression)]
        common = dtypes[-1]
        taken = tuple(x if isinstance(x, Expression) else Constant(x, common) for x in arguments)
        if self is not POWER and len({x.dtype for x in (taken[1:] if self is select else taken)}) > 1:
            raise TypeError(f"{self.name} is of operands of one type, not of {', '.join(x.dtype.name for x in taken)}")
        dtype = BOOL if self.gives_bool else taken[0 if self is POWER else -1].dtype
        if self is absolute and dtype.kind == "c":
            dtype = np.dtype(f"f{dtype.itemsize // 2}")
        return Apply(self, taken, dtype)


PRIMITIVES: dict[str, Primitive] = {}
"""All primitives by name."""


def primitive(name: str, arity: int, meaning: str = "", **properties: Any) -> Primitive:
    """A new primitive, entered into `PRIMITIVES`."""
    found = PRIMITIVES[name] = Primitive(name, arity, meaning, **properties)
    return found


def cast(x: Expression, dtype: AnyDType | type) -> Expression:
    """``x`` converted to another type; ``x`` itself if it has that type."""
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype else Apply(CAST, (x,), dtype)


def single(value: float) -> float:
    """``value`` rounded to float32, as the attributes of ONNX are."""
    return float(np.float32(value))


def walk(expression: Expression) -> Iterator[Expression]:
    """All nodes below ``expression`` and itself, each once, arguments before what is made of them."""
    seen: set[int] = set()
    pending = [(expression, False)]
    while pending:
        node, is_done = pending.pop()
        if is_done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            if isinstance(node, Apply):
                pending.extend((argument, False) for argument in reversed(node.arguments))


def fold(expression: Expression, leaf: Callable[[Expression], T], apply: Callable[[Apply, Sequence[T]], T]) -> T:
    """What ``expression`` is, each of its nodes computed once.

    Args:
        expression: as it says.
        leaf: of an operand or a constant.
        apply: of a primitive, and of what its arguments are.
    """
    found: dict[int, T] = {}
    for node in walk(expression):
        if isinstance(node, Apply):
            found[id(node)] = apply(node, [found[id(x)] for x in node.arguments])
        else:
            found[id(node)] = leaf(node)
    return found[id(expression)]


# -- arithmetic ----------------------------------------------------------------

add = primitive("add", 2)
subtract = primitive("subtract", 2)
multiply = primitive("multiply", 2)
divide = primitive(
    "divide", 2, "Quotient. Of integers, rounded towards zero; 0 if the divisor is 0; the least number / -1 is itself."
)
floor_divide = primitive(
    "floor_divide",
    2,
    "Quotient rounded down; of integers, 0 if the divisor is 0; of floats, the one that goes with `remainder`.",
    ulp=1.0,
)
remainder = primitive(
    "remainder", 2, "x - y floor(x / y), with the sign of y, also if it is 0; of integers, 0 if y is 0."
)
truncated_remainder = primitive(
    "truncated_remainder", 2, "x - y trunc(x / y), exactly, with the sign of x (C's fmod); of integers, 0 if y is 0."
)
POWER = power = primitive(
    "power",
    2,
    "x to the power y, as IEEE 754's pow, in the type of x. Of integers, rounded towards zero if y is negative, and "
    "then 0 if x is 0. The types may differ: integers with floats are computed in float64 and converted.",
    ulp=2.0,
)
negative = primitive("negative", 1)
absolute = primitive("absolute", 1, "Magnitude; the least integer is itself.")
sign = primitive("sign", 1, "-1, 0 or 1; of zeros, one of either sign.")
reciprocal = primitive("reciprocal", 1, "1 / x.")

maximum = primitive("maximum", 2, "The larger one; of two zeros, either; NaN if one is NaN.")
minimum = primitive("minimum", 2, "The smaller one; of two zeros, either; NaN if one is NaN.")
fmax = primitive("fmax", 2, "The larger one; of two zeros, either; if one is NaN, the other.")
fmin = primitive("fmin", 2, "The smaller one; of two zeros, either; if one is NaN, the other.")
at_least = primitive("at_least", 2, "y if x < y, else x, with the sign of its zero; NaN if one is NaN.")
at_most = primitive("at_most", 2, "y if x > y, else x, with the sign of its zero; NaN if one is NaN.")

gcd = primitive("gcd", 2, "Of integers: the greatest common divisor, not negative; 0 of zeros.")
lcm = primitive("lcm", 2, "Of integers: the least common multiple, not negative; 0 if one is 0.")

# -- truth values and bits -----------------------------------------------------

equal = primitive("equal", 2, "False if one is NaN.", gives_bool=True)
not_equal = primitive("not_equal", 2, "True if one is NaN.", gives_bool=True)
less = primitive("less", 2, "False if one is NaN.", gives_bool=True)
less_equal = primitive("less_equal", 2, "False if one is NaN.", gives_bool=True)
greater = primitive("greater", 2, "False if one is NaN.", gives_bool=True)
greater_equal = primitive("greater_equal", 2, "False if one is NaN.", gives_bool=True)
is_nan = primitive("is_nan", 1, gives_bool=True)
is_infinite = primitive("is_infinite", 1, gives_bool=True)
is_finite = primitive("is_finite", 1, gives_bool=True)

logical_and = primitive("logical_and", 2, "Of truth values.", gives_bool=True)
logical_or = primitive("logical_or", 2, "Of truth values.", gives_bool=True)
logical_xor = primitive("logical_xor", 2, "Of truth values.", gives_bool=True)
logical_not = primitive("logical_not", 1, "Of a truth value.", gives_bool=True)
select = primitive("select", 3, "The second argument if the first, a truth value, is true, else the third, bit by bit.")

bitwise_and = primitive("bitwise_and", 2)
bitwise_or = primitive("bitwise_or", 2)
bitwise_xor = primitive("bitwise_xor", 2)
bitwise_not = primitive("bitwise_not", 1, "Of a bool, its negation.")
shift_left = primitive("shift_left", 2, "0 if the count is negative, or the number of bits or more.")
shift_right = primitive(
    "shift_right", 2, "x / 2^y, rounded down; 0, or -1 of negative x, if y is negative, or the number of bits or more."
)

# -- conversions ---------------------------------------------------------------

CAST = primitive(
    "cast",
    1,
    "The nearest number of the type; of floats to integers, truncated. Integers drop high bits. A float out of the "
    "integer's range, or NaN, gives any number. 0 is false, all else true.",
)
floor = primitive("floor", 1)
ceil = primitive("ceil", 1)
trunc = primitive("trunc", 1, "Rounded towards zero.")
rint = primitive("rint", 1, "Rounded to the nearest integer, ties to even.")
signbit = primitive("signbit", 1, "Whether the sign is negative, also of a zero or NaN.", gives_bool=True)
nextafter = primitive("nextafter", 2, "The number of the type next to x in the direction of y; y if they are equal.")
copysign = primitive("copysign", 2, "The magnitude of x with the sign of y, also of a zero or NaN.")

# -- functions on floats -------------------------------------------------------

sqrt = primitive("sqrt", 1, "-0 of -0; NaN below 0.")
exp = primitive("exp", 1, ulp=3.0)
expm1 = primitive("expm1", 1, "exp(x) - 1, without cancellation; -0 of -0.", ulp=3.0)
log = primitive("log", 1, "-inf of zeros; NaN below 0.", ulp=4.0)
log1p = primitive("log1p", 1, "log(1 + x), without cancellation; -0 of -0.", ulp=4.0)
sin = primitive("sin", 1, "NaN of infinities.", ulp=4.0)
cos = primitive("cos", 1, "NaN of infinities.", ulp=4.0)
tan = primitive("tan", 1, "NaN of infinities.", ulp=4.0)
asin = primitive("asin", 1, "NaN outside of [-1, 1].", ulp=4.0)
acos = primitive("acos", 1, "NaN outside of [-1, 1].", ulp=4.0)
atan = primitive("atan", 1, ulp=4.0)
sinh = primitive("sinh", 1, ulp=4.0)
cosh = primitive("cosh", 1, ulp=4.0)
tanh = primitive("tanh", 1, "-0 of -0.", ulp=4.0)
asinh = primitive("asinh", 1, ulp=4.0)
acosh = primitive("acosh", 1, "NaN below 1.", ulp=4.0)
atanh = primitive("atanh", 1, "NaN outside of [-1, 1].", ulp=4.0)
exp2 = primitive("exp2", 1, ulp=3.0)
log2 = primitive("log2", 1, "-inf of zeros; NaN below 0.", ulp=4.0)
log10 = primitive("log10", 1, "-inf of zeros; NaN below 0.", ulp=4.0)
atan2 = primitive("atan2", 2, "The angle of the point (y, x), in that order, as C's atan2.", ulp=4.0)
hypot = primitive("hypot", 2, "sqrt(x x + y y), without overflow; infinity if one is infinite.", ulp=2.0)
logaddexp = primitive("logaddexp", 2, "log(exp(x) + exp(y)), without overflow; next to 0, to 4 ulp of 1.", ulp=4.0)
logaddexp2 = primitive("logaddexp2", 2, "log2(2^x + 2^y), likewise.", ulp=4.0)


# -- special functions, which evaluators may lack --------------------------------

erfc = primitive("erfc", 1, "1 - erf(x), without cancellation.", ulp=2.0)
erfinv = primitive("erfinv", 1, "The inverse of erf; NaN outside of [-1, 1].", ulp=8.0)
lgamma = primitive("lgamma", 1, "log(|gamma(x)|); inf at the poles, and of infinities.", ulp=8.0)
digamma = primitive("digamma", 1, "The derivative of lgamma; NaN at negative poles, -inf of 0, inf of -0.", ulp=8.0)
i0 = primitive("i0", 1, "The modified Bessel function of the first kind of order 0.", ulp=4.0)
i0e = primitive("i0e", 1, "exp(-|x|) i0(x).", ulp=4.0)
i1 = primitive("i1", 1, "The modified Bessel function of the first kind of order 1.", ulp=4.0)
i1e = primitive("i1e", 1, "exp(-|x|) i1(x).", ulp=4.0)


# -- functions that operators of several standards compute -----------------------

# erf in double precision: W. J. Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23 (1969); up to 0.46875 x P(x²)/Q(x²), above 1 - exp(-x²) P(x)/Q(x).
# fmt: off
_SMALL_P = (
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = (
    1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3,
)
_LARGE_P = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
    1.23033935479799725e3,
)
_LARGE_Q = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)
# erf in single precision: tanh(x P(x²)), where P approximates artanh(erf(x)) / x. Fitted by Lawson's iteration (least
# squares, reweighted) for the least relative error of erf on [0, 4]. Beyond, P stays positive: tanh is 1 as it should.
_SINGLE = tuple(map(single, (
    1.41880328781613e-7, -5.668975385369043e-6, 8.76403957493384e-5, -6.19792692219511e-4,
    -1.918218746171669e-4, 1.027690521998242e-1, 1.1283792746246855e0,
)))
# fmt: on

# Of -2z for `gelu`, where z = u P(u²) for u = x / √2: as a polynomial of x², without the factor x.
_GATE = tuple(-math.sqrt(2) * c / 2**i for i, c in zip(range(6, -1, -1), _SINGLE, strict=True))


def _erf(x: Expression) -> Expression:
    square = x * x
    if x.dtype == SINGLE:
        return tanh(x * _polynomial(square, _SINGLE))
    size = abs(x)
    small = _polynomial(square, _SMALL_P) / _polynomial(square, _SMALL_Q) * x
    bounded = minimum(size, 6.0)  # erf(6) is 1 to double precision
    tail = _polynomial(bounded, _LARGE_P) / _polynomial(bounded, _LARGE_Q) * exp(-(bounded * bounded))
    return select(size <= 0.46875, small, copysign(1 - tail, x))


erf = primitive("erf", 1, "The error function; -0 of -0.", ulp=5.0, expansion=_erf)


def gelu(x: Expression) -> Expression:
    """X Φ(x), Φ the normal distribution's function: x (1 + erf(x / √2)) / 2.

    In single precision as x / (1 + exp(-2z)), by the polynomial of `erf`, as (1 + tanh(z)) / 2 is that: the sum would
    cancel for x below -4.
    """
    if x.dtype != SINGLE:
        return x * ((erf(x * math.sqrt(0.5)) + 1) * 0.5)
    return x / (exp(x * _polynomial(x * x, _GATE)) + 1)


def gelu_tanh(x: Expression) -> Expression:
    """X (1 + tanh(z)) / 2, where z = √(2/π) (x + 0.044715 x³), as x / (1 + exp(-2z))."""
    linear, cubic = -math.sqrt(8 / math.pi), -math.sqrt(8 / math.pi) * 0.044715
    return x / (exp((x * x * cubic + linear) * x) + 1)


def _polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    """The polynomial with these coefficients, highest power first, at ``x`` (Horner's rule)."""
    found = x * coefficients[0]
    for c in coefficients[1:-1]:
        found = (found + c) * x
    return found + coefficients[-1]


def sigmoid(x: Expression) -> Expression:
    """1 / (1 + exp(-x)); exp overflows to infinity for very negative x, which gives the right 0.

    Neither tanh, which takes half the time, as its error is large relative to results next to 0 (whose logarithm models
    take), nor exp2, which in every third process takes four times as long (benchmarks/measured/running.md).
    """
    divisor = exp(-x) + 1
    return reciprocal(divisor) if x.is_complex else 1 / divisor  # of floats, NumPy's division takes half of its time


def silu(x: Expression) -> Expression:
    """X sigmoid(x), as x / (1 + exp(-x)), for which holds what `sigmoid` says."""
    return x / (exp(-x) + 1)


def softplus(x: Expression) -> Expression:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which cannot overflow."""
    return at_least(x, 0) + log1p(exp(-abs(x)))


def mish(x: Expression) -> Expression:
    """X tanh(softplus(x))."""
    return x * tanh(softplus(x))


def clip(x: Expression, low: Expression | float | None = None, high: Expression | float | None = None) -> Expression:
    """Between bounds, of which the upper one wins."""
    found = x if low is None else at_least(x, low)
    return found if high is None else at_most(found, high)
