"""Reductions over axes, argmax and argmin, cumulative sums and products.

Axes are an attribute up to version 17 (ReduceSum: 12) and an input from then
on. Small floats are reduced in float32; functions that leave the integers
(means, roots, logarithms) compute in float64 and truncate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.numerics import accumulate, add_reduce, extreme_reduce, narrowed, widened
from irc.runtime.kernels.registry import always, computes
from irc.runtime.kernels.support import AnyDType, Array, axes_in, axis_in, c_order, ints, is_half, scalar

Axes = tuple[int, ...]
Reduction = Callable[[Array, Axes, bool], Any]
"""``(x, axes, keepdims)``: reduces ``x`` over ``axes``, none of them meaning each element by itself."""


def _max(x: Array, axes: Axes, keep: bool) -> Any:
    return extreme_reduce(np.maximum, x, axes, keep, extreme(x.dtype, -1))


def extreme(dtype: AnyDType, sign: int) -> Any:
    """The largest (``sign`` 1) or smallest value of ``dtype``: what reducing no values yields."""
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
    return np.array(sign * np.inf, np.float32).astype(dtype)[()]


def _mean(x: Array, axes: Axes, keep: bool) -> Any:
    return add_reduce(x, axes, keep) / x.dtype.type(math.prod(x.shape[a] for a in axes))


def log_sum_exp(x: Array, axes: Axes, keep: bool) -> Any:
    """The largest element is taken out of the exponents, which then cannot overflow."""
    largest = extreme_reduce(np.maximum, x.real, axes, True, -np.inf)
    largest = np.where(np.isfinite(largest), largest, 0)
    total = np.log(add_reduce(np.exp(x - largest), axes, True)) + largest
    return total if keep else np.squeeze(total, axes)


REDUCTIONS: dict[str, tuple[Reduction, bool]] = {
    "ReduceSum": (add_reduce, False),
    "ReduceMean": (_mean, True),
    "ReduceMax": (_max, False),
    "ReduceMin": (lambda x, axes, keep: extreme_reduce(np.minimum, x, axes, keep, extreme(x.dtype, 1)), False),
    "ReduceProd": (lambda x, axes, keep: np.multiply.reduce(x, axes, dtype=x.dtype, keepdims=keep), False),
    "ReduceL1": (lambda x, axes, keep: add_reduce(np.absolute(x), axes, keep), False),
    "ReduceL2": (lambda x, axes, keep: np.sqrt(add_reduce(np.square(x), axes, keep)), True),
    "ReduceSumSquare": (lambda x, axes, keep: add_reduce(np.square(x), axes, keep), False),
    "ReduceLogSum": (lambda x, axes, keep: np.log(add_reduce(x, axes, keep)), True),
    "ReduceLogSumExp": (log_sum_exp, True),
}
"""Operator: its function, and whether that leaves the integers."""


def reduce(x: Array, axes: Axes, keep: bool, function: Reduction, real: bool) -> Array:
    """``function`` of ``x`` over ``axes``, computed in a wide enough type, as a new array of its dtype."""
    if is_half(x.dtype):
        wide = widened(x)
    elif real and x.dtype.kind in "iu":
        wide = x.astype(np.float64)
    else:
        wide = x
    return narrowed(c_order(function(wide, axes, keep)), x.dtype)


def _register(name: str, function: Reduction, real: bool) -> None:
    @computes(f"onnx::{name}")
    def run(  # pyright: ignore[reportUnusedFunction]  registered
        x: Array,
        given: Array | None = None,
        *,
        axes: Sequence[int] = (),
        keepdims: bool = True,
        noop_with_empty_axes: bool = False,
    ) -> Array:
        over = axes if given is None else ints(given)
        every = () if noop_with_empty_axes else tuple(range(x.ndim))
        return reduce(x, axes_in(over, x.ndim) if over else every, keepdims, function, real)


for _name, (_function, _real) in REDUCTIONS.items():
    _register(_name, _function, _real)


def arg(x: Array, *, find: Any, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Array:
    """The index of the extreme element along an axis; of equal ones the first, or last as told."""
    along = axis_in(axis, x.ndim)
    if x.shape[along] == 0:
        sizes = (*x.shape[:along], *(1,) * keepdims, *x.shape[along + 1 :])
        if 0 not in sizes:
            raise Error("IRC422", f"axis {axis} of the shape {list(x.shape)} is empty: it has no extreme element")
        return np.empty(sizes, np.int64)
    found = find(np.flip(x, along) if select_last_index else x, along, keepdims=keepdims)
    return np.asarray(x.shape[along] - 1 - found if select_last_index else found, np.int64, order="C")


computes("onnx::ArgMax", find=always(np.argmax))(arg)
computes("onnx::ArgMin", find=always(np.argmin))(arg)


def cumulative(
    x: Array, axis: Array, *, ufunc: np.ufunc, neutral: int, exclusive: bool = False, reverse: bool = False
) -> Array:
    """Running total along an axis; exclusive: of what comes before each element; reverse: from the end."""
    along = axis_in(scalar(axis, "axis"), x.ndim)
    source = np.flip(x, along) if reverse else x
    wide = np.float32 if is_half(x.dtype) else x.dtype
    out = np.empty(x.shape, wide)
    target = np.flip(out, along) if reverse else out
    if exclusive:
        before = (slice(None),) * along
        target[(*before, slice(0, 1))] = neutral
        source, target = source[(*before, slice(0, -1))], target[(*before, slice(1, None))]
    accumulate(ufunc, source, along, target)
    return out.astype(x.dtype, copy=False)


computes("onnx::CumSum", ufunc=always(np.add), neutral=always(0))(cumulative)
computes("onnx::CumProd", ufunc=always(np.multiply), neutral=always(1))(cumulative)
