"""Scalar expressions (`irc.ops.algebra`) as code: order, text, and emission of each primitive.

Primitives have NumPy's definitions where C has none. Mathematical functions are in `irc.native.functions`; they are
called, not emitted in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irc.native.functions import FUNCTIONS
from irc.native.lanes import (
    HALF,
    INT32,
    INT64,
    Emitter,
    Lanes,
    computed,
    rounded,
    rounded_to_odd,
    select,
    to_float,
    to_integer,
)
from irc.native.loops import function
from irc.native.row_operators import REDUCERS
from irc.ops import algebra
from irc.ops.algebra import BOOL, CAST, DOUBLE, AnyDType, Apply, Expression, Operand, Primitive

UINT64 = np.dtype(np.uint64)


def _divide(x: Lanes, y: Lanes) -> Lanes:
    if x.is_float:
        return x / y
    return _integer(x, y, "div")


def _integer(x: Lanes, y: Lanes, name: str) -> Lanes:
    """Quotient rounded towards zero, or remainder; 0 if the divisor is 0; least number / -1 is itself."""
    builder = x.emitter.builder
    is_zero = y.equals(0)
    divisor = select(is_zero, 1, y)
    if not x.is_signed:
        method = builder.udiv if name == "div" else builder.urem
        return select(is_zero, 0, x.made(method(x.value, divisor.value)))
    is_minus_one = y.equals(-1)  # hardware traps for the least number
    divisor = select(is_minus_one, 1, divisor)
    method = builder.sdiv if name == "div" else builder.srem
    found = x.made(method(x.value, divisor.value))
    found = select(is_minus_one, -x if name == "div" else x.constant(0), found)
    return select(is_zero, 0, found)


def _truncated_remainder(x: Lanes, y: Lanes) -> Lanes:
    if x.is_float:
        return x.made(x.emitter.builder.frem(x.value, y.value))
    return _integer(x, y, "rem")


def _remainder(x: Lanes, y: Lanes) -> Lanes:
    rest = _truncated_remainder(x, y)
    if not x.is_float and not x.is_signed:
        return rest
    differ = (rest < 0) ^ (y < 0)
    moved = select(rest.differs(0) & differ, rest + y, rest)
    if not x.is_float:
        return select(y.equals(0), 0, moved)
    return select(rest.equals(0), x.emitter.intrinsic("copysign", x.constant(0), y), moved)


def _floor_divide(x: Lanes, y: Lanes) -> Lanes:
    if not x.is_float:
        quotient = _integer(x, y, "div")
        if not x.is_signed:
            return quotient
        rest = x - quotient * y
        is_below = rest.differs(0) & ((rest < 0) ^ (y < 0)) & y.differs(0)
        return select(is_below, quotient - 1, quotient)
    # As NumPy: of the exact remainder, rounded to the integer that it makes.
    rest = _truncated_remainder(x, y)
    quotient = (x - rest) / y
    quotient = select(rest.differs(0) & ((rest < 0) ^ (y < 0)), quotient - 1, quotient)
    floor = x.emitter.intrinsic("floor", quotient)
    whole = select(quotient - floor > 0.5, floor + 1, floor)
    ratio = x / y
    found = select(quotient.differs(0), whole, x.emitter.intrinsic("copysign", x.constant(0), ratio))
    return select(y.equals(0), ratio, select(rest.is_nan(), rest, found))


def _absolute(x: Lanes) -> Lanes:
    if x.is_float:
        return x.emitter.intrinsic("fabs", x)
    return select(x < 0, -x, x) if x.is_signed else x


def _sign(x: Lanes) -> Lanes:
    if not x.is_float and not x.is_signed:
        return select(x.equals(0), 0, x.constant(1))
    return select(x > 0, 1, select(x < 0, -1, x + 0))  # 0 for -0.0, as NumPy


def _extreme(is_larger: bool, takes_second: bool) -> Callable[[Lanes, Lanes], Lanes]:
    """The larger or smaller of two, NaN if one is NaN; of equal ones (zeros), the second or the first."""

    def compute(x: Lanes, y: Lanes) -> Lanes:
        x, y = (x, y) if takes_second else (y, x)
        found = select(x > y if is_larger else x < y, x, y)  # y if one is NaN
        return found if not x.is_float or x.is_constant else select(x.is_nan(), x, found)

    return compute


def _known(is_larger: bool) -> Callable[[Lanes, Lanes], Lanes]:
    """The larger or smaller one of two; if one is NaN, the other."""

    def compute(x: Lanes, y: Lanes) -> Lanes:
        found = select(y > x if is_larger else y < x, y, x)
        return select(x.is_nan(), y, found) if x.is_float else found

    return compute


def _logical(x: Lanes, y: Lanes, combine: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    return combine(_truth(x), _truth(y))


def _truth(x: Lanes) -> Lanes:
    return x if x.dtype == BOOL else x.differs(0)


def _count_fits(x: Lanes, count: Lanes) -> Lanes:
    unsigned = count.bitcast(np.dtype(f"u{count.dtype.itemsize}"))
    return unsigned < x.bits


def _shift_left(x: Lanes, count: Lanes) -> Lanes:
    fits = _count_fits(x, count)
    return select(fits, x << select(fits, count, 0), 0)


def _shift_right(x: Lanes, count: Lanes) -> Lanes:
    fits = _count_fits(x, count)
    return select(fits, x >> select(fits, count, 0), x >> (x.bits - 1) if x.is_signed else x.constant(0))


def _signbit(x: Lanes) -> Lanes:
    return x.bits_as_integers() < 0 if x.is_float else x < 0


def _is_infinite(x: Lanes) -> Lanes:
    if not x.is_float:
        return x.differs(x)
    return _absolute(x).equals(np.inf)


def _is_finite(x: Lanes) -> Lanes:
    return _absolute(x) < np.inf if x.is_float else x.equals(x)


def _is_nan(x: Lanes) -> Lanes:
    return x.is_nan() if x.is_float else x.differs(x)


def _negative(x: Lanes) -> Lanes:
    return -x


def _nextafter(x: Lanes, y: Lanes) -> Lanes:
    bits = x.bits_as_integers()
    step = select((x < y) ^ (bits < 0), bits.constant(1), -1)
    least = (y.bits_as_integers() & bits.constant(-1 << (x.bits - 1))) | 1
    found = select(x.equals(0), least, bits + step).bitcast(x.dtype)
    return select(x.is_nan() | y.is_nan(), x + y, select(x.equals(y), y, found))


def _select(condition: Lanes, x: Lanes, y: Lanes) -> Lanes:
    return select(_truth(condition), x, y)


def _whole(name: str) -> Callable[[Lanes], Lanes]:
    """Rounding to integers, which integers are."""
    return lambda x: x.emitter.intrinsic(name, x) if x.is_float else x


def cast(x: Lanes, dtype: AnyDType) -> Lanes:
    """``x`` converted as NumPy does on x86, also where it is out of the range of an integer type."""
    if dtype == BOOL:
        return _truth(x)
    if dtype.kind == "f":
        return to_float(x, dtype)
    if not x.is_float:
        return to_integer(x, dtype)
    if dtype.itemsize < 4:
        return to_integer(_to_signed(x, INT32), dtype)
    if dtype == UINT64:
        half = 2.0**63
        above = _to_signed(x - half, INT64) ^ np.iinfo(np.int64).min
        return select(x >= half, above, _to_signed(x, INT64)).bitcast(dtype)
    return to_integer(_to_signed(x, INT32 if dtype == INT32 else INT64), dtype)


def _to_signed(x: Lanes, dtype: AnyDType) -> Lanes:
    """Truncated; the least number for what is out of range, and for NaN."""
    limit = 2.0 ** (8 * dtype.itemsize - 1)
    # float32 has no number between -limit - 1 and -limit, float64 has: they are truncated to -limit.
    least = -limit if x.dtype != DOUBLE or dtype == INT64 else -limit - 1
    fits = (x < limit) & (x >= least if least == -limit else x > least)
    builder = x.emitter.builder
    inside = select(fits, x, 0)
    found = x.made(builder.fptosi(inside.value, x.emitter.vector(dtype)), dtype)
    return select(fits, found, np.iinfo(dtype).min)


_OF_ONE: dict[str, Callable[[Lanes], Lanes]] = {
    "negative": _negative,
    "absolute": _absolute,
    "sign": _sign,
    "reciprocal": lambda x: _divide(x.constant(1), x),
    "is_nan": _is_nan,
    "is_infinite": _is_infinite,
    "is_finite": _is_finite,
    "logical_not": lambda x: ~_truth(x),
    "bitwise_not": lambda x: ~x,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "rint": _whole("rint"),
    "signbit": _signbit,
    "sqrt": lambda x: x.emitter.intrinsic("sqrt", x),
}

_OF_TWO: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "add": lambda x, y: x | y if x.dtype == BOOL else x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x & y if x.dtype == BOOL else x * y,
    "divide": _divide,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "truncated_remainder": _truncated_remainder,
    "maximum": _extreme(is_larger=True, takes_second=True),
    "minimum": _extreme(is_larger=False, takes_second=True),
    "fmax": _known(is_larger=True),
    "fmin": _known(is_larger=False),
    "at_least": _extreme(is_larger=True, takes_second=False),
    "at_most": _extreme(is_larger=False, takes_second=False),
    "equal": lambda x, y: x.equals(y),
    "not_equal": lambda x, y: x.differs(y),
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "logical_and": lambda x, y: _logical(x, y, Lanes.__and__),
    "logical_or": lambda x, y: _logical(x, y, Lanes.__or__),
    "logical_xor": lambda x, y: _logical(x, y, Lanes.__xor__),
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "nextafter": _nextafter,
    "copysign": lambda x, y: x.emitter.intrinsic("copysign", x, y),
}

PRIMITIVES: dict[str, Callable[..., Lanes]] = {
    **_OF_ONE,
    **_OF_TWO,
    "select": _select,
}
"""By the primitive's name."""


# -- expressions ---------------------------------------------------------------

COMPOUNDS: dict[Any, str] = {
    algebra.gelu: "gelu",
    algebra.gelu_tanh: "gelu_tanh",
    algebra.mish: "mish",
    algebra.sigmoid: "sigmoid",
    algebra.silu: "silu",
    algebra.softplus: "softplus",
}
"""Semantics that the library has whole, which is faster than their primitives one by one."""


ROUND = Primitive("round_to_small", 1, "A float rounded to the small float type that a `Rounded` names.")


class Rounded(Apply):
    """A value rounded once to a small float type, as float32."""

    __slots__ = ("small",)

    def __init__(self, x: Expression, small: AnyDType) -> None:
        super().__init__(ROUND, (x,), computed(small))
        self.small = small


def is_reduction(node: Expression) -> bool:
    """Whether ``node`` reduces rows."""
    return isinstance(node, Apply) and node.primitive in REDUCERS


def ordered(roots: Sequence[Expression], stops: Callable[[Expression], bool] = lambda _: False) -> list[Expression]:
    """``roots`` and all nodes below, arguments first; nothing below a node at which it ``stops``."""
    found: list[Expression] = []
    seen: set[int] = set()
    pending = [(root, False) for root in reversed(roots)]
    while pending:
        node, is_done = pending.pop()
        if is_done:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            if isinstance(node, Apply) and not stops(node):
                pending.extend((argument, False) for argument in reversed(node.arguments))
    return found


def listing(roots: Sequence[Expression], operand: Callable[[Operand], str]) -> str:
    """``roots`` as a text, the same for expressions that are the same; ``operand`` says what a leaf is."""
    numbers: dict[int, int] = {}
    lines: list[str] = []
    for node in ordered(roots):
        if isinstance(node, Apply):
            small = node.small.name if isinstance(node, Rounded) else ""
            arguments = ",".join(str(numbers[id(x)]) for x in node.arguments)
            lines.append(f"{node.primitive.name}{small}({arguments}) {node.dtype}")
        else:
            lines.append(f"{operand(node) if isinstance(node, Operand) else node!r} {node.dtype}")
        numbers[id(node)] = len(numbers)
    return "\n".join((*lines, ",".join(str(numbers[id(x)]) for x in roots)))


def converted(x: Lanes, dtype: AnyDType) -> Lanes:
    """``x`` as an element of type ``dtype`` is computed with: of a small type, a number that it holds."""
    if x.dtype == DOUBLE and dtype == HALF:
        return rounded(rounded_to_odd(x), dtype)
    return rounded(cast(x, computed(dtype)), dtype)


def apply(emitter: Emitter, node: Apply, arguments: Sequence[Lanes]) -> Lanes:
    """Emit the primitive of ``node``."""
    name = node.primitive.name
    if node.primitive is CAST:
        return cast(arguments[0], node.dtype)
    if isinstance(node, Rounded):
        return converted(arguments[0], node.small)
    return PRIMITIVES[name](*arguments) if name in PRIMITIVES else call(emitter, name, arguments)


def call(emitter: Emitter, name: str, arguments: Sequence[Lanes]) -> Lanes:
    """Emit a call of a mathematical function of the library."""
    dtype, count = arguments[0].dtype, emitter.count
    symbol = f"irc.{name}.f{8 * dtype.itemsize}x{count}"
    kind = emitter.vector(dtype)
    flags = emitter.has_fma, emitter.has_f16c

    def make() -> tuple[str, Mapping[str, Any]]:
        made, builder = function(symbol, [kind] * len(arguments), kind)
        inner = Emitter(builder, count, *flags)
        builder.ret(FUNCTIONS[name](*[Lanes(inner, x, dtype) for x in made.args]).value)
        return str(made.module), inner.needs

    found = emitter.library(symbol, kind, [kind] * len(arguments), make)
    return Lanes(emitter, emitter.builder.call(found, [x.value for x in arguments]), dtype)
