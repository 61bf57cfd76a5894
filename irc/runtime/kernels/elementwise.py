"""Kernels of ONNX's pointwise operators, from their records in `irc.ops.onnx`.

What is here besides are operators that look at more than elements: at how many exponents there are, at sizes of bounds,
at attributes that align operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc import ops
from irc.errors import Error
from irc.ir import Node
from irc.ops.algebra import Expression, Primitive, at_least, at_most, reciprocal, select, sqrt
from irc.ops.scalar import ScalarSemantics
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.primitives import IMPLEMENTATIONS, copy, of_many, of_one, of_two
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, common_shape
from irc.runtime.values import describe

Binder = Callable[["Node"], Kernel]


def kernel_of(scalar: ScalarSemantics, attributes: dict[str, Any], count: int) -> Kernel:
    """The kernel of ``scalar`` for ``count`` operands."""
    semantics = scalar.resolve(attributes)
    if not isinstance(semantics, Primitive):
        arity = count if scalar.variadic else scalar.arity
        return of_expression(semantics, arity, scalar.floats, scalar.result)
    if scalar.variadic and count != 2:
        return of_many(IMPLEMENTATIONS[semantics])
    is_simple = semantics in IMPLEMENTATIONS
    return of_primitive(semantics) if is_simple else of_expression(semantics, scalar.arity, scalar.floats)


def of_primitive(primitive: Primitive) -> Kernel:
    """The kernel that is one primitive: one ufunc, if NumPy has it."""
    found = IMPLEMENTATIONS[primitive]
    if not isinstance(found, np.ufunc):
        return found
    return of_one(found) if primitive.arity == 1 else of_two(found)


# -- powers --------------------------------------------------------------------


def _half_power(x: Expression) -> Expression:
    """As sqrt, but for -0, whose power is 0, and for -inf, whose power is inf (IEEE 754, 9.2.1)."""
    return select(x <= -np.inf, np.inf, sqrt(x + 0))


def _cube(x: Expression) -> Expression:
    return x * x * x


_SIMPLE_POWERS: dict[float, Kernel] = {
    -1.0: of_primitive(reciprocal),
    0.5: of_expression(_half_power, 1),
    2.0: of_one(np.square),
    3.0: of_expression(_cube, 1),
}
"""Exponents that models use and that need no power function, which takes a hundred times as long."""

_power = of_two(np.power)


def _as_wide(x: Array, y: Array) -> Array:
    """``x`` in the shape of what it gives with ``y``."""
    return np.broadcast_to(x, common_shape(x.shape, y.shape))


def power(x: Array, y: Array, out: Array | None = None) -> Array:
    """`irc.ops.algebra.power`, whose types may differ.

    NumPy takes the square root for the power 0.5 if that is one number, which differs for -0 and -inf.
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


# -- bounds, slopes, and operands that attributes align -------------------------


_at_least, _at_most = of_primitive(at_least), of_primitive(at_most)


def _bound(value: Any, x: Array) -> Array:
    """The element of a tensor that has one, as a scalar; it must be of the type of ``x``."""
    if value.dtype != x.dtype:
        raise Error("IRC421", f"a bound of Clip has the element type of what it bounds, not {describe(value)}")
    try:
        return value.reshape(())
    except ValueError:
        raise Error("IRC421", f"a bound of Clip has one element, not the shape {list(value.shape)}") from None


def clip(x: Array, low: Array | None = None, high: Array | None = None, out: Array | None = None) -> Array:
    """min(high, max(low, x)); a bound has one element or is None."""
    if low is None and high is None:
        return copy(x, out)
    largest = None if high is None else _bound(high, x)
    if low is None:
        return _at_most(x, largest, out)
    if largest is None:
        return _at_least(x, _bound(low, x), out)
    if out is not None:
        largest = largest.copy()  # `out` may be its memory, and is written before it is read
    result = _at_least(x, _bound(low, x), out)
    return _at_most(result, largest, result)


def prelu_by_channel(scalar: ScalarSemantics, node: Node) -> Kernel:
    """Before version 7 a slope of several elements belongs to the channels, axis 1."""
    broadcasting = kernel_of(scalar, {}, 2)

    def run(x: Array, slope: Array, out: Array | None = None) -> Array:
        aligned: Any = slope.reshape((-1,) + (1,) * max(x.ndim - 2, 0)) if slope.ndim <= 1 else slope
        return broadcasting(x, aligned, out=out)

    return run


def _limited_broadcast(node: Node, run: Kernel) -> Kernel:
    """Before version 7: the second shape is a run of the first's dimensions, from ``axis`` or at the end."""
    broadcast: int = node.attributes.get("broadcast", 0)
    axis: int = node.attributes.get("axis", -1)

    def aligned(x: Array, y: Array, out: Array | None = None) -> Array:
        if not broadcast and x.shape != y.shape:
            raise Error("IRC421", f"the shapes {list(x.shape)} and {list(y.shape)} differ and broadcast is not set")
        if broadcast and axis >= 0 and y.size != 1:
            y = y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))
        return run(x, y, out=out)

    return aligned


_SPECIAL: dict[tuple[str, int], Callable[[ScalarSemantics, Node], Kernel]] = {
    ("Clip", 11): lambda scalar, node: clip,
    ("PRelu", 1): prelu_by_channel,
    ("Pow", 1): lambda scalar, node: power,
    ("Pow", 7): lambda scalar, node: power,
}
"""(operator, first version) -> its binder."""

_IN_OTHER_MODULES = {"Cast"}


def _register(scalar: ScalarSemantics) -> None:
    special = _SPECIAL.get((scalar.name, scalar.since))

    def bind(node: Node) -> Kernel:
        if special is not None:
            return special(scalar, node)
        return kernel_of(scalar, node.attributes, len(node.inputs))

    def bind_aligned(node: Node) -> Kernel:
        return _limited_broadcast(node, bind(node))

    is_aligned = not scalar.broadcasts and scalar.name != "PRelu"
    kernel(scalar.kind, since=scalar.since, place=scalar.place)(bind_aligned if is_aligned else bind)


for _record in ops.records("onnx"):
    if _record.name not in _IN_OTHER_MODULES:
        for _scalar in _record.scalar:
            _register(_scalar)
