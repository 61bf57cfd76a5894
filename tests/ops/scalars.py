"""What expressions of scalars mean, once more and naively: floats in long double, integers as Python's.

A float is rounded to its type only where that makes it infinite, zero or subnormal: so results are exact but for what
the expression itself loses.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.ops.algebra import CAST, PRIMITIVES, Apply, Constant, Expression, Operand, walk

Array = np.ndarray[Any, Any]
LONG = np.longdouble


def evaluate(expression: Expression, operands: Sequence[Array | None]) -> Array:
    """``expression`` of arrays of one shape: long doubles for floats, Python integers for integers, and bools."""
    known: dict[int, Array] = {}
    for node in walk(expression):
        if isinstance(node, Operand):
            given = operands[node.index]
            assert given is not None
            found = lifted(given)
        elif isinstance(node, Constant):
            found = lifted(np.array(node.value).astype(node.dtype))
        else:
            assert isinstance(node, Apply)
            arguments = [known[id(x)] for x in node.arguments]
            found = fitted(_applied(node, arguments), node.dtype)
        known[id(node)] = found
    return known[id(expression)]


def lifted(x: Array) -> Array:
    """``x`` as `evaluate` takes it."""
    if x.dtype.kind in "iu":
        return np.array(x.tolist(), object)
    return x if x.dtype.kind == "b" else x.astype(np.float64).astype(LONG)


def fitted(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` as an element of type ``dtype`` may be: integers wrapped around; floats not too large nor too small."""
    if dtype.kind == "b":
        return np.asarray(x).astype(bool)
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        low = -(1 << (bits - 1)) if dtype.kind == "i" else 0
        return np.asarray(np.frompyfunc(lambda v: (int(v) - low) % (1 << bits) + low, 1, 1)(x), object)
    with np.errstate(all="ignore"):
        rounded = x.astype(dtype).astype(LONG)
        is_odd = np.isinf(rounded) | (np.abs(x) < np.finfo(dtype).smallest_normal)
    return np.where(is_odd, rounded, x)


def sizes(expression: Expression, operands: Sequence[Array | None]) -> Array:
    """`evaluate` with sizes in place of numbers, and sums in place of differences: the size of a sum's terms."""
    known: dict[int, Array] = {}
    for node in walk(expression):
        if isinstance(node, Apply) and node.primitive.name in ("add", "subtract", "multiply"):
            x, y = (known[id(argument)] for argument in node.arguments)
            known[id(node)] = x * y if node.primitive.name == "multiply" else x + y
        elif isinstance(node, Apply) and node.primitive.name == "divide":
            known[id(node)] = known[id(node.arguments[0])] / np.abs(evaluate(node.arguments[1], operands))
        elif isinstance(node, Apply) and node.primitive.name == "select":
            mask, x, y = node.arguments
            known[id(node)] = np.where(evaluate(mask, operands), known[id(x)], known[id(y)])
        else:
            found = evaluate(node, operands)
            known[id(node)] = found if node.dtype.kind == "b" else np.abs(found)
    return known[id(expression)]


def _applied(node: Apply, arguments: list[Array]) -> Array:
    name, first = node.primitive.name, node.arguments[-1].dtype
    if node.primitive is CAST:
        return _cast(arguments[0], first, node.dtype)
    if name in _OF_ANY:
        return _OF_ANY[name](*arguments)
    if first.kind in "iu":
        bits = 8 * first.itemsize
        of_one = _OF_INTEGERS[name]
        return np.asarray(np.frompyfunc(lambda *v: of_one(*v, bits), len(arguments), 1)(*arguments), object)
    with np.errstate(all="ignore"):
        if name in ("ceil", "floor", "rint", "trunc"):  # where an error of rounding may become one of 1
            arguments = [x.astype(first).astype(LONG) for x in arguments]
        return _OF_FLOATS[name](*arguments)


def _cast(x: Array, origin: np.dtype[Any], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return x != 0
    if dtype.kind == "f":
        return x.astype(np.float64).astype(dtype).astype(LONG)
    if origin.kind != "f":
        return x.astype(object)
    return np.frompyfunc(lambda v: int(v) if math.isfinite(v) else 0, 1, 1)(x)


def _truncated(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _integer_power(x: int, y: int, bits: int) -> int:
    if y < 0:
        return {1: 1, -1: 1 - 2 * (y & 1)}.get(x, 0)
    return pow(x, y, 1 << bits)


def _shifted(x: int, count: int, bits: int) -> int:
    """To the left, or to the right for a negative ``count``."""
    return x << count if count >= 0 else x >> min(-count, bits)


_OF_ANY: dict[str, Callable[..., Any]] = {
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_xor": lambda x, y: x ^ y,
    "logical_not": lambda x: ~x,
    "select": np.where,
}
_OF_INTEGERS: dict[str, Callable[..., int]] = {
    "add": lambda x, y, _: x + y,
    "subtract": lambda x, y, _: x - y,
    "multiply": lambda x, y, _: x * y,
    "divide": lambda x, y, _: _truncated(x, y),
    "floor_divide": lambda x, y, _: x // y if y else 0,
    "remainder": lambda x, y, _: x % y if y else 0,
    "truncated_remainder": lambda x, y, _: x - y * _truncated(x, y) if y else 0,
    "power": _integer_power,
    "negative": lambda x, _: -x,
    "absolute": lambda x, _: abs(x),
    "sign": lambda x, _: (x > 0) - (x < 0),
    "maximum": lambda x, y, _: max(x, y),
    "minimum": lambda x, y, _: min(x, y),
    "is_finite": lambda x, _: True,
    "is_infinite": lambda x, _: False,
    "is_nan": lambda x, _: False,
    "fmax": lambda x, y, _: max(x, y),
    "fmin": lambda x, y, _: min(x, y),
    "gcd": lambda x, y, _: math.gcd(x, y),
    "lcm": lambda x, y, _: math.lcm(x, y),
    "at_least": lambda x, y, _: max(x, y),
    "at_most": lambda x, y, _: min(x, y),
    "bitwise_and": lambda x, y, _: x & y,
    "bitwise_or": lambda x, y, _: x | y,
    "bitwise_xor": lambda x, y, _: x ^ y,
    "bitwise_not": lambda x, _: ~x,
    "shift_left": lambda x, y, bits: _shifted(x, y, bits) if 0 <= y < bits else 0,
    "shift_right": lambda x, y, bits: _shifted(x, -y, bits) if 0 <= y < bits else -(x < 0),
}


def _or_nan(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), LONG("nan"), choose(x, y))


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(np.frompyfunc(lambda v: function(float(v)), 1, 1)(x)).astype(np.float64).astype(LONG)


_NAMES = """
    absolute copysign cos cosh exp exp2 expm1 hypot log log10 log1p log2 logaddexp logaddexp2 negative reciprocal sign
    signbit sin sinh sqrt tan tanh
"""
_OF_FLOATS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in [*_NAMES.split(), *"ceil floor rint trunc".split()]},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "truncated_remainder": np.fmod,
    "power": np.power,
    "maximum": _or_nan(lambda x, y: np.where(x > y, x, y)),
    "minimum": _or_nan(lambda x, y: np.where(x < y, x, y)),
    "at_least": _or_nan(lambda x, y: np.where(x < y, y, x)),
    "at_most": _or_nan(lambda x, y: np.where(x > y, y, x)),
    "fmax": lambda x, y: np.where(np.isnan(x) | (y > x), y, x),
    "fmin": lambda x, y: np.where(np.isnan(x) | (y < x), y, x),
    "atan2": np.arctan2,
    "is_nan": lambda x: x != x,
    "is_finite": lambda x: np.abs(x) < np.inf,
    "is_infinite": lambda x: np.abs(x) == np.inf,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
}

WITHOUT = frozenset("digamma erfinv i0 i0e i1 i1e lgamma nextafter".split())
"""Special functions, which `tests.kernels.test_ulp` holds to references, and what depends on a type's numbers."""

UNKNOWN = PRIMITIVES.keys() - _OF_ANY.keys() - _OF_INTEGERS.keys() - _OF_FLOATS.keys() - WITHOUT - {"cast"}
"""Primitives that are missing here."""
