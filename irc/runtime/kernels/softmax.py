"""Softmax, LogSoftmax, Hardmax.

Up to opset 12 the input is taken for a matrix, whose columns are all axes from
``axis`` on; since 13 the operators work along the one axis. Each step rounds to
the element type, as the operators' function bodies have it: of small floats, what
was computed in float32, which takes a fraction of the time of NumPy's own loops.
Sums keep the range of float32: float16 has no number for those of a vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irc.runtime.kernels.numerics import add_reduce, are_short, narrowed, parts, rounded, widened
from irc.runtime.kernels.registry import always, attribute, computes
from irc.runtime.kernels.support import Array, axis_in, is_half

_Compute = Callable[[Array, int, Array | None], Array]
"""Gives the result of an array along an axis, in an array that may be given for it."""


def _by_columns(compute: _Compute, x: Array, out: Array | None) -> Array:
    """``compute`` along the last axis of ``x`` by columns: NumPy is slow to begin short rows."""
    result = np.empty_like(x) if out is None else out
    rows, target = (array.reshape(-1, x.shape[-1]) for array in (x, result))
    for part in parts(rows):
        target[part] = compute(np.ascontiguousarray(rows[part].T), 0, None).T
    return result


def softmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along ``axis``, without overflow."""
    if are_short(x, axis):
        return _by_columns(softmax, x, out)
    if is_half(x.dtype):
        powers = _less_maximum(x, axis)
        powers = rounded(np.exp(powers, powers), x.dtype)
        sums = add_reduce(powers, (axis,), True)
        return narrowed(np.divide(powers, rounded(sums, x.dtype), powers), x.dtype, out)
    result, sums = exponentials(x, axis, out)
    result /= sums
    return result


def exponentials(x: Array, axis: int, out: Array | None = None) -> tuple[Array, Array]:
    """Softmax before the division, of wide floats: ``exp(x - max(x))`` and its sums along ``axis``."""
    result = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf), out)
    np.exp(result, result)
    return result, add_reduce(result, (axis,), True)


def masked_softmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """As `softmax`, with 0 for NaN: all of a row in which everything is masked."""
    result = softmax(x, axis, out)
    firsts = result[(*(slice(None),) * axis, slice(1))]
    highest = np.maximum.reduce(firsts, axis=None, initial=0)
    if highest != highest:
        np.copyto(result, 0, where=np.isnan(firsts))
    return result


def log_softmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """The logarithm of `softmax`, without underflow."""
    if are_short(x, axis):
        return _by_columns(log_softmax, x, out)
    if is_half(x.dtype):
        differences = _less_maximum(x, axis)
        sums = add_reduce(rounded(np.exp(differences), x.dtype), (axis,), True)
        differences -= rounded(np.log(rounded(sums, x.dtype)), x.dtype)
        return narrowed(differences, x.dtype, out)
    result = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf), out)
    result -= np.log(add_reduce(np.exp(result), (axis,), True))
    return result


def _less_maximum(x: Array, axis: int) -> Array:
    """Small floats minus their maximum, as float32. Where float16 would underflow, so do the powers."""
    wide = widened(x)
    wide -= np.maximum.reduce(wide, axis=axis, keepdims=True, initial=-np.inf)
    return rounded(wide, x.dtype)


def hardmax(x: Array, axis: int, out: Array | None = None) -> Array:
    """1 at the first maximum along ``axis``, 0 elsewhere."""
    result = np.empty_like(x, order="C") if out is None else out
    result.fill(0)
    if x.size:
        np.put_along_axis(result, np.argmax(x, axis=axis, keepdims=True), 1, axis)
    return result


def along(x: Array, out: Array | None = None, *, compute: _Compute, axis: int, as_matrix: bool = False) -> Array:
    """``compute`` along an axis, or, ``as_matrix``, along all from it on."""
    at = axis_in(axis, x.ndim)
    wide, whole = np.ascontiguousarray(x), out
    if as_matrix:
        matrix = math.prod(x.shape[:at]), math.prod(x.shape[at:])
        wide, at = wide.reshape(matrix), 1
        whole = None if out is None else out.reshape(matrix)
    result = compute(wide, at, whole)
    return result.reshape(x.shape) if out is None else out


_LAST, _SECOND = attribute("axis", -1), attribute("axis", 1)

computes("irc::masked_softmax", compute=always(masked_softmax), axis=_LAST)(along)
for _name, _compute in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax)):
    computes(f"onnx::{_name}", compute=always(_compute), axis=_SECOND, as_matrix=always(True))(along)
    computes(f"onnx::{_name}", since=13, compute=always(_compute), axis=_LAST, as_matrix=always(False))(along)
