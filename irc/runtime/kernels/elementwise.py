"""Elementwise arithmetic, comparisons and logic: tables from operator to kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.numerics import negative
from irc.runtime.kernels.pointwise import copy, of_bound, of_function, of_many, of_one, of_two, shapes_differ
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import AnyDType, Array, broadcast_shape, c_order, chosen, is_half
from irc.runtime.values import describe

if TYPE_CHECKING:
    from irc.ir import Node


class Constants(dict[AnyDType, Array]):
    """One number as a 0-d array of each element type asked for."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, dtype: AnyDType) -> Array:
        found = self[dtype] = np.array(self.value, np.float64).astype(dtype)
        return found


_ZERO, _INFINITY, _MINUS_INFINITY = Constants(0), Constants(np.inf), Constants(-np.inf)
_at_least, _at_most = of_bound(np.maximum), of_bound(np.minimum)
_sum = of_many(np.add)
_floor_divide, _true_divide, _rest = of_two(np.floor_divide), of_two(np.divide), of_two(np.fmod)
_power = of_two(np.power)
_neg, _negation = of_one(np.negative), of_one(np.logical_not)
_equal = of_two(np.equal)


def relu(x: Array, out: Array | None = None) -> Array:
    """max(x, 0)."""
    return _at_least(x, _ZERO[x.dtype], out)


def neg(x: Array, out: Array | None = None) -> Array:
    """-x."""
    return _neg(x) if out is None else negative(x, out)


def _not(x: Array, out: Array | None = None) -> Array:
    _check_truth_values(x, x)
    return _negation(x, out)


def _logic(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that is one ufunc of two truth values each."""
    compute = of_two(ufunc)

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        _check_truth_values(x, y)
        return compute(x, y, out)

    return run


def _check_truth_values(x: Array, y: Array) -> None:
    """NumPy takes anything for true or false, and of strings gives Python objects."""
    if x.dtype.char != "?" or y.dtype.char != "?":
        other = y if x.dtype.char == "?" else x
        raise Error("IRC421", f"truth values are computed of truth values, not of {describe(other)}")


def divide(x: Array, y: Array, out: Array | None = None) -> Array:
    """Quotient; of integers, rounded towards zero."""
    if x.dtype.kind == "i":
        x = x - _rest(x, y)  # now a multiple of y, so that floor and truncation agree
    return (_floor_divide if x.dtype.kind in "iu" else _true_divide)(x, y, out)


def _cube(x: Array, out: Array) -> None:
    square = np.empty_like(x)
    np.multiply(x, x, square)
    np.multiply(square, x, out)


def _half_power(x: Array, out: Array) -> None:
    """As sqrt, but for -0, whose power is 0, and for -inf, whose power is inf (IEEE 754, 9.2.1)."""
    lowest = np.equal(x, _MINUS_INFINITY[x.dtype])
    np.add(x, _ZERO[x.dtype], out)
    np.sqrt(out, out)
    np.copyto(out, np.inf, where=lowest)


_SIMPLE_POWERS: dict[float, Kernel] = {
    -1.0: of_one(np.reciprocal),
    0.5: of_function(_half_power),
    2.0: of_one(np.square),
    3.0: of_function(_cube),
}
"""Exponents that models use and that need no power function, which takes a hundred times as long."""


def _as_wide(x: Array, y: Array) -> Array:
    """``x`` in the shape of what it gives with ``y``."""
    try:
        return np.broadcast_to(x, broadcast_shape(x.shape, y.shape))
    except ValueError as error:
        raise shapes_differ(error, x, y) from None


def power(x: Array, y: Array, out: Array | None = None) -> Array:
    """Power ``x ** y``, whose types may differ; the result has that of ``x``.

    NumPy takes the square root for the power 0.5 if that is one number, which differs for -0 and -inf.
    Integers to integer powers are exact modulo 2^bits, and rounded towards zero
    for negative exponents. What mixes integers and floats is computed in float64.
    """
    if x.dtype == y.dtype and x.dtype.kind not in "iu":
        is_one = y.size == 1 or (y.size and not any(y.strides))
        simple = _SIMPLE_POWERS.get(y.item(0)) if is_one else None
        if simple is None:
            return _power(x, y, out)
        return simple(x if y.size == 1 and y.ndim <= x.ndim else _as_wide(x, y), out)
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        result = _power(x.astype(wide), np.maximum(y, 0).astype(wide)).astype(x.dtype)
        if y.dtype.kind == "i" and (y < 0).any():
            unit = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0))
            result = np.where(y < 0, unit, result).astype(x.dtype)
    else:
        result = power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    return result if out is None else copy(result, out)


def where(condition: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    """Selection: x where the condition holds, else y."""
    if x.dtype != y.dtype:
        raise Error("IRC421", f"what to select from differs in type: {describe(x)} and {describe(y)}")
    try:
        result = chosen(condition, x, y, out)
    except ValueError as error:
        shapes = ", ".join(str(list(a.shape)) for a in (condition, x, y))
        raise Error("IRC421", f"the shapes {shapes} do not broadcast against each other ({error})") from None
    return c_order(result) if out is None else out


def mean(*inputs: Array, out: Array | None = None) -> Array:
    """The mean of the inputs; of small floats, computed in float32."""
    dtype = inputs[0].dtype
    if is_half(dtype):
        inputs = tuple(x.astype(np.float32) for x in inputs)
    total = _sum(*inputs)
    np.divide(total, len(inputs), total)
    if out is not None:
        np.copyto(out, total, casting="unsafe")
        return out
    return total.astype(dtype, copy=False)


def _bound(value: Any, x: Array) -> Array:
    """The element of a tensor that has one, as a scalar; it must be of the type of ``x``."""
    if value.dtype != x.dtype:
        raise Error("IRC421", f"a bound of Clip has the element type of what it bounds, not {describe(value)}")
    try:
        return value.reshape(())
    except ValueError:
        raise Error("IRC421", f"a bound of Clip has one element, not the shape {list(value.shape)}") from None


def clip(x: Array, low: Array | None, high: Array | None, out: Array | None = None) -> Array:
    """min(high, max(low, x)); a bound has one element or is None."""
    if low is None and high is None:
        return copy(x, out)
    if low is None:
        return _at_most(x, _bound(high, x), out)
    if high is None:
        return _at_least(x, _bound(low, x), out)
    largest = _bound(high, x)
    if out is not None:
        largest = largest.copy()  # `out` may be its memory, and is written before it is read
    result = _at_least(x, _bound(low, x), out)
    return _at_most(result, largest, result)


UNARY: dict[str, Kernel] = {
    "Abs": of_one(np.absolute),
    "Acos": of_one(np.arccos),
    "Acosh": of_one(np.arccosh),
    "Asin": of_one(np.arcsin),
    "Asinh": of_one(np.arcsinh),
    "Atan": of_one(np.arctan),
    "Atanh": of_one(np.arctanh),
    "BitwiseNot": of_one(np.invert),
    "Ceil": of_one(np.ceil),
    "Cos": of_one(np.cos),
    "Cosh": of_one(np.cosh),
    "Exp": of_one(np.exp),
    "Floor": of_one(np.floor),
    "IsNaN": of_one(np.isnan),
    "Log": of_one(np.log),
    "Neg": neg,
    "Not": _not,
    "Reciprocal": of_one(np.reciprocal),
    "Relu": relu,
    "Round": of_one(np.rint),
    "Sign": of_one(np.sign),
    "Sin": of_one(np.sin),
    "Sinh": of_one(np.sinh),
    "Sqrt": of_one(np.sqrt),
    "Tan": of_one(np.tan),
    "Tanh": of_one(np.tanh),
}

BINARY: dict[str, Kernel] = {
    "Add": of_two(np.add),
    "And": _logic(np.logical_and),
    "Div": divide,
    "Equal": _equal,
    "Greater": of_two(np.greater),
    "Less": of_two(np.less),
    "Mul": of_two(np.multiply),
    "Or": _logic(np.logical_or),
    "Pow": power,
    "Sub": of_two(np.subtract),
    "Xor": _logic(np.logical_xor),
}
"""Those that had attributes for broadcasting before version 7."""

OTHERS: dict[str, Kernel] = {
    "BitwiseAnd": of_two(np.bitwise_and),
    "BitwiseOr": of_two(np.bitwise_or),
    "BitwiseXor": of_two(np.bitwise_xor),
    "GreaterOrEqual": of_two(np.greater_equal),
    "LessOrEqual": of_two(np.less_equal),
    "Mean": mean,
    "Where": where,
}

VARIADIC: dict[str, Callable[..., Any]] = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}


def _register(name: str, run: Kernel) -> None:
    kernel(f"onnx::{name}", since=7 if name in BINARY else 1)(lambda node: run)
    if name in BINARY:

        @kernel(f"onnx::{name}", since=1)
        def limited_broadcast(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  registered
            return _limited_broadcast(node, run)


def _limited_broadcast(node: Node, run: Kernel) -> Kernel:
    """Before version 7: the second shape is a run of the first's dimensions, from ``axis`` or at the end."""
    broadcast: int = node.attributes.get("broadcast", 0)
    axis: int = node.attributes.get("axis", -1)

    def aligned(x: Array, y: Array, out: Array | None = None) -> Array:
        if not broadcast and x.shape != y.shape:
            raise Error("IRC421", f"the shapes {list(x.shape)} and {list(y.shape)} differ and broadcast is not set")
        if broadcast and axis >= 0 and y.size != 1:
            y = y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))
        return run(x, y, out)

    return aligned


for _name, _run in (UNARY | BINARY | OTHERS).items():
    _register(_name, _run)


def _register_variadic(name: str, ufunc: Callable[..., Any]) -> None:
    of_any_number, of_pair = of_many(ufunc), of_two(ufunc)
    kernel(f"onnx::{name}")(lambda node: of_pair if len(node.inputs) == 2 else of_any_number)


for _name, _ufunc in VARIADIC.items():
    _register_variadic(_name, _ufunc)


@kernel("onnx::Mod")
def mod(node: Node) -> Kernel:
    return of_two(np.fmod if node.attributes.get("fmod", 0) else np.remainder)


@kernel("onnx::BitShift")
def bit_shift(node: Node) -> Kernel:
    shifts = {"LEFT": np.left_shift, "RIGHT": np.right_shift}
    direction = node.attributes.get("direction")
    if direction not in shifts:
        raise Error("IRC320", f"BitShift's direction is {direction!r}; it must be 'LEFT' or 'RIGHT'")
    return of_two(shifts[direction])


@kernel("onnx::IsInf")
def is_inf(node: Node) -> Kernel:
    positive: int = node.attributes.get("detect_positive", 1)
    negative: int = node.attributes.get("detect_negative", 1)
    if positive and negative:
        return of_one(np.isinf)
    sought = _INFINITY if positive else _MINUS_INFINITY

    def run(x: Array, out: Array | None = None) -> Array:
        found = _equal(x, sought[x.dtype], out)
        if not positive and not negative:
            found.fill(False)
        return found

    return run


@kernel("onnx::Clip", since=11)
def clip_to_inputs(node: Node) -> Kernel:
    def run(x: Array, low: Array | None = None, high: Array | None = None, out: Array | None = None) -> Array:
        return clip(x, low, high, out)

    return run


@kernel("onnx::Clip", since=6)
def clip_to_attributes(node: Node) -> Kernel:
    largest = float(np.finfo(np.float32).max)
    return _clip_to(node.attributes.get("min", -largest), node.attributes.get("max", largest))


@kernel("onnx::Clip", since=1)
def clip_to_given_attributes(node: Node) -> Kernel:
    return _clip_to(node.attributes.get("min"), node.attributes.get("max"))


def _clip_to(low: float | None, high: float | None) -> Kernel:
    lows = None if low is None else Constants(low)
    highs = None if high is None else Constants(high)

    def run(x: Array, out: Array | None = None) -> Array:
        return clip(x, None if lows is None else lows[x.dtype], None if highs is None else highs[x.dtype], out)

    return run
