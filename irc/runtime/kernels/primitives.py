"""Kernels with ``out=`` from elementwise functions, and NumPy's forms of `irc.ops.algebra` primitives.

Every pointwise kernel has the form ``run(*inputs, out=None)``: it broadcasts its
inputs, and with ``out`` (of the result's shape and dtype; it may be one of the
inputs) writes there instead of into a new array.

NumPy finds a function for any types, with a result of one that holds both, but ONNX's
operators have operands of certain types, mostly all of one. ``casting="equiv"`` leaves
only functions of just the types given; else a result would be of another type where
it is made in a new array than where it overwrites an operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops import algebra
from irc.ops.algebra import PRIMITIVES, Primitive
from irc.runtime.kernels.numerics import HALF, MANY, at_least, at_most, negative, of_halves
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import AnyDType, Array, c_order, chosen, shapes_differ
from irc.runtime.values import describe

_NDARRAY = np.ndarray  # looked up at each call

_UFUNC = "ufunc"


def of_one(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that is one ufunc of one input."""
    halves = of_halves(ufunc)

    def run(x: Array, out: Array | None = None) -> Array:
        if x.dtype is HALF and halves is not None and x.size >= MANY:
            return halves(x, out=out)
        if out is None:
            result = ufunc(x, order="C", casting="equiv")
            return result if type(result) is _NDARRAY else np.asarray(result)  # a ufunc of 0-d arrays returns a scalar
        return ufunc(x, out)

    setattr(run, _UFUNC, ufunc)
    return run


def of_two(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that is one ufunc of two inputs."""
    halves = of_halves(ufunc)

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        try:
            if x.dtype is HALF is y.dtype and halves is not None and max(x.size, y.size) >= MANY:
                return halves(x, y, out=out)
            if out is None:
                result = ufunc(x, y, order="C", casting="equiv")
                return result if type(result) is _NDARRAY else np.asarray(result)
            return ufunc(x, y, out=out, casting="equiv")
        except ValueError as error:
            raise shapes_differ(error, x, y) from None

    if ufunc not in (np.maximum, np.minimum):  # NumPy deprecates `out` as their third argument
        setattr(run, _UFUNC, ufunc)
    return run


def ufunc_of(kernel: Kernel) -> Callable[..., Any] | None:
    """The ufunc that ``kernel`` is; calling it with the result's array last is the fastest way."""
    return getattr(kernel, _UFUNC, None)


def of_many(ufunc: Callable[..., Any]) -> Kernel:
    """A kernel that folds any number of inputs, at least one, with a ufunc of two."""
    pair = of_two(ufunc)

    def run(*inputs: Array, out: Array | None = None) -> Array:
        if len(inputs) == 1:
            return copy(inputs[0], out)
        total = inputs[0]
        for x in inputs[1:-1]:  # not in `out` yet, which may be an input that is still to be read
            total = pair(total, x)
        return pair(total, inputs[-1], out)

    return run


def copy(x: Array, out: Array | None) -> Array:
    """``x`` written to ``out``, or to a new array."""
    if out is None:
        return x.copy()
    np.copyto(out, x)
    return out


Implementation = Callable[..., Any]

_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_not": "invert",
    "is_finite": "isfinite",
    "is_infinite": "isinf",
    "is_nan": "isnan",
    "shift_left": "left_shift",
    "shift_right": "right_shift",
    "truncated_remainder": "fmod",
}
"""Where NumPy calls a primitive otherwise."""

_OF_TRUTH_VALUES = ("logical_and", "logical_or", "logical_xor", "logical_not")


def _of_truth_values(ufunc: Implementation) -> Implementation:
    """NumPy takes anything for true or false, and of strings gives Python objects."""

    def run(*operands: Array, out: Array | None = None) -> Array:
        for x in operands:
            if x.dtype.char != "?":
                raise Error("IRC421", f"truth values are computed of truth values, not of {describe(x)}")
        return np.asarray(ufunc(*operands, out=out, order="C"))

    return run


UNLESS_HALF = "unless_half"
"""Attribute of implementations that look for float16: what they call for all other types."""


def bound_of_halves(ufunc: np.ufunc, compute: Implementation) -> Implementation:
    """``compute``, `numerics.bounded` by ``ufunc``, or of many float16 numbers what is quicker."""
    halves = of_halves(ufunc)
    assert halves is not None

    def run(x: Array, bound: Array, out: Array | None = None) -> Array:
        return halves(x, bound, out=out) if x.size >= MANY and bound.dtype == HALF else compute(x, bound, out)

    setattr(run, UNLESS_HALF, compute)
    return run


_floor_divide, _true_divide, _rest = of_two(np.floor_divide), of_two(np.divide), of_two(np.fmod)
_neg = of_one(np.negative)


def divide(x: Array, y: Array, out: Array | None = None) -> Array:
    if x.dtype.kind == "i":
        x = x - _rest(x, y)  # now a multiple of y, so that floor and truncation agree
    return (_floor_divide if x.dtype.kind in "iu" else _true_divide)(x, y, out)


def neg(x: Array, out: Array | None = None) -> Array:
    return _neg(x) if out is None else negative(x, out)


def where(condition: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    if x.dtype != y.dtype:
        raise Error("IRC421", f"what to select from differs in type: {describe(x)} and {describe(y)}")
    try:
        result = chosen(condition, x, y, out)
    except ValueError as error:
        raise shapes_differ(error, condition, x, y) from None
    return c_order(result) if out is None else out


def _rare(name: str) -> Implementation:
    """A special function, whose module is imported when it is first called."""

    def run(x: Array, out: Array | None = None) -> Array:
        from irc.runtime.kernels import special

        found = np.empty(x.shape, x.dtype) if out is None else out
        special.FUNCTIONS[name](x, found)
        return found

    return run


_UFUNCS: dict[str, Implementation] = {
    name: ufunc for name in PRIMITIVES if isinstance(ufunc := getattr(np, _NAMES.get(name, name), None), np.ufunc)
}

IMPLEMENTATIONS: dict[Primitive, Implementation] = {
    **{PRIMITIVES[name]: ufunc for name, ufunc in _UFUNCS.items()},
    **{PRIMITIVES[name]: _of_truth_values(_UFUNCS[name]) for name in _OF_TRUTH_VALUES},
    algebra.at_least: bound_of_halves(np.maximum, at_least),
    algebra.at_most: bound_of_halves(np.minimum, at_most),
    algebra.divide: divide,
    algebra.negative: neg,
    algebra.select: where,
    **{PRIMITIVES[name]: _rare(name) for name in "erfc erfinv lgamma digamma i0 i0e i1 i1e".split()},
}
"""Those that are not here have an expansion."""

UNCHECKED: dict[Primitive, Implementation] = {
    algebra.negative: np.negative,
    **{PRIMITIVES[name]: _UFUNCS[name] for name in _OF_TRUTH_VALUES},
}
"""Implementations for operands of the right type, where those or the result are contiguous."""


def conversion_to(dtype: AnyDType) -> Implementation:
    """The implementation of `algebra.CAST` to ``dtype``."""

    def run(x: Array, out: Array | None = None) -> Array:
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return run
