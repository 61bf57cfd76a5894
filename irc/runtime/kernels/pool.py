"""Pooling: MaxPool, AveragePool, LpPool and their global forms; MaxUnpool.

A window reduction is separable: reducing along one axis after the other takes
the sum of the kernel's sides in operations where the window has their product.
Each pass is, for each tap, one operation over shifted views; windows that reach
into the padding simply have fewer taps, so nothing is padded, but for maxima
along rows, which are short.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.bounds import CURRENT, check_bytes, pace
from irc.runtime.kernels.numerics import add_reduce, narrowed, widened
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.support import Array, check_size, ints, is_half, scratch
from irc.runtime.kernels.windows import Axes, Axis, Window, outputs, resolver


def reduce_windows(x: Array, axes: Axes, ufunc: np.ufunc, identity: Any, out: Array | None = None) -> Array:
    """Reduce ``x`` (N, C, spatial...) over the windows of ``axes``; the padding counts as ``identity``.

    Returns ``x`` itself if every window is one element; else a new array, or ``out``, which shares no memory with it.
    """
    check_spatial(x)
    if all(a.out == 1 and a.kernel > 1 for a in axes):  # one window: NumPy's own reduction is the fastest
        seen = x[(slice(None), slice(None), *(a.seen(0) for a in axes))]
        return ufunc.reduce(seen, axis=tuple(range(2, x.ndim)), keepdims=True, initial=identity, out=out)
    reduced = [(i, axis) for i, axis in enumerate(axes, 2) if not axis.trivial]
    for i, axis in reduced:
        x = reduce_along(x, i, axis, ufunc, identity, out if i == reduced[-1][0] else None)
    return x


def reduce_along(x: Array, i: int, axis: Axis, ufunc: np.ufunc, identity: Any, out: Array | None = None) -> Array:
    """Reduce over the windows of ``axis`` along dimension ``i`` alone; a new array, or ``out``."""
    lead = (slice(None),) * i
    shape = check_size((*x.shape[:i], axis.out, *x.shape[i + 1 :]), x.dtype)
    result = np.empty(shape, x.dtype) if out is None else out
    if ufunc is np.maximum and 2 <= i == x.ndim - 1 and _suits_one_line(axis) and x.size >= _WORTH_PADDING:
        step = max(1, _LINE // max(1, math.prod(x.shape[2:-1]) * _reach(axis)))
        for n, start in product(range(x.shape[0]), range(0, x.shape[1], step)):
            part = n, slice(start, start + step)
            np.copyto(result[part], _maxima_in_one_line(x[part], axis, identity))
        return result
    full = axis.first_of_all
    if full is None:
        result.fill(identity)
    else:
        np.copyto(result, x[(*lead, axis.reads(full)[1])])
    for t in axis.taps:
        if t != full:
            pace()
            to, of = axis.reads(t)
            target = result[(*lead, to)]
            ufunc(target, x[(*lead, of)], out=target)
    return result


def _reach(axis: Axis) -> int:
    """Positions from the first window's begin to the last one's end, and at least to that of the input."""
    return max(axis.begin + axis.size, (axis.out - 1) * axis.stride + axis.reach)


def _suits_one_line(axis: Axis) -> bool:
    return axis.kernel > 1 and axis.stride <= 2 and axis.begin >= 0 and _reach(axis) <= 2 * axis.size


def _maxima_in_one_line(x: Array, axis: Axis, identity: Any) -> Array:
    """Maxima over the windows of the last ``axis``; valid until this is called again.

    With padding, all rows are one line: NumPy takes as long to begin with a row of 20 numbers as for the row.
    """
    rows = scratch("rows of windows", (*x.shape[:-1], _reach(axis)), x.dtype)
    end = axis.begin + axis.size
    rows[..., : axis.begin], rows[..., axis.begin : end], rows[..., end:] = identity, x, identity
    maxima = scratch("maxima of windows", rows.shape, x.dtype)
    line, found = rows.reshape(-1), maxima.reshape(-1)[: rows.size - axis.reach + 1]
    for tap in range(1, axis.kernel):
        pace()
        start = tap * axis.dilation
        np.maximum(found if tap > 1 else line[: len(found)], line[start : start + len(found)], out=found)
    return maxima[..., : (axis.out - 1) * axis.stride + 1 : axis.stride]


_LINE = 1 << 17
"""Elements of a line, about: it stays in the cache."""

_WORTH_PADDING = 1 << 12
"""Elements from which on that takes less time than row by row."""


def maxima(x: Array, axes: Axes, out: Array | None = None) -> Array:
    """The greatest elements of the windows of ``x`` (N, C, spatial...), in a new array, or in ``out``."""
    check_spatial(x)
    result = np.empty(check_size((*x.shape[:2], *outputs(axes)), x.dtype), x.dtype) if out is None else out
    if CURRENT.scope.loops.maxima(x, axes, result):
        return result
    wide = widened(x)  # NumPy compares small floats one by one
    found = reduce_windows(wide, axes, np.maximum, lowest(x.dtype), result if wide is x else None)
    if found is not result:
        narrowed(found, x.dtype, result)
    return result


def means(x: Array, axes: Axes, include: bool, divisor: int | None = None, out: Array | None = None) -> Array:
    """The means of the windows of ``x`` (N, C, spatial...), floats, in a new array, or in ``out``.

    Args:
        include: whether the padding counts, as zeros.
        divisor: what sums are divided by; None: by how many elements they are of.
    """
    check_spatial(x)
    result = np.empty(check_size((*x.shape[:2], *outputs(axes)), x.dtype), x.dtype) if out is None else out
    if CURRENT.scope.loops.means(x, axes, include, divisor, result):
        return result
    sums = reduce_windows(widened(x), axes, np.add, 0)
    divisors = reduce(np.multiply.outer, counts_of(axes, include, divisor, x.dtype))
    if is_half(x.dtype):
        return narrowed(sums / divisors, x.dtype, result)
    return np.divide(sums, divisors, result)


def counts_of(axes: Axes, include: bool, divisor: int | None, dtype: np.dtype[Any]) -> list[Array]:
    """For each axis, counts whose product divides the sums of windows of ``dtype`` to means."""
    wide = np.dtype(np.float32) if is_half(dtype) else dtype
    if divisor is None:
        return [count_taps(axis, include).astype(wide) for axis in axes]
    return [np.full(axis.out, divisor if i == 0 else 1, wide) for i, axis in enumerate(axes)]


def check_spatial(x: Array) -> None:
    """Error unless ``x`` is (N, C, spatial...)."""
    if x.ndim < 3:
        raise Error("IRC421", f"the input has shape {list(x.shape)}: it must be (batch, channels, spatial axes...)")


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least value of ``dtype``, the identity of max."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@computes("onnx::MaxPool", resolve=resolver)
def max_pool(x: Array, out: Array | None = None, *, resolve: Any, storage_order: bool = False, outputs: int) -> Any:
    check_spatial(x)
    axes = resolve(x.shape[2:], None)
    return maxima(x, axes, out) if outputs == 1 else argmax_windows(x, axes, storage_order)


_TAP_BYTES = 256
"""An upper bound of the bytes that are kept for a tap."""


def argmax_windows(x: Array, axes: Axes, by_columns: bool) -> tuple[Array, Array]:
    """The maxima of the windows and where they are: indices into ``x``, flat; the first of equal ones.

    What is not a number is the maximum, the last of several, as in PyTorch. ``by_columns``: spatial positions are
    counted with the first axis running fastest.
    """
    check_size((*x.shape[:2], *outputs(axes)), np.dtype(np.int64))
    best = maxima(x, axes)
    check_bytes(_TAP_BYTES * math.prod(len(a.taps) for a in axes))
    taps = list(product(*(a.taps for a in axes)))
    kind = np.dtype(np.uint8 if len(taps) < 1 << 8 else np.int32)
    none = kind.type(np.iinfo(kind).max)
    first, last = np.full(best.shape, none, kind), np.zeros(best.shape, kind)  # of the taps that see the maximum
    has_nan = bool(np.isnan(best).any())
    for number, tap in enumerate(taps):
        pace()
        pairs = [a.reads(t) for t, a in zip(tap, axes, strict=True)]
        target, source = ((..., *each) for each in zip(*pairs, strict=True))
        is_not = np.not_equal(x[source], best[target]).astype(kind, copy=False)
        np.minimum(first[target], np.negative(is_not, out=is_not) & none | kind.type(number), out=first[target])
        if has_nan:
            np.maximum(last[target], np.isnan(x[source]) * kind.type(number), out=last[target])
    sizes, rank = x.shape[2:], len(axes)
    pitch = [math.prod(sizes[:i] if by_columns else sizes[i + 1 :]) for i in range(rank)]
    seen = np.array(taps, np.int64).reshape(-1, rank) @ [a.dilation * p for a, p in zip(axes, pitch, strict=True)]
    chosen = np.where(np.isnan(best), last, first) if has_nan else first
    index = np.append(seen, 0)[np.minimum(chosen, len(taps))]
    index += np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * rank) * math.prod(sizes)
    for i, (a, p) in enumerate(zip(axes, pitch, strict=True)):
        index += ((np.arange(a.out) * a.stride - a.begin) * p).reshape(-1, *(1,) * (rank - 1 - i))
    index[chosen == none] = -1
    return best, index


@computes("onnx::AveragePool", resolve=resolver)
def average_pool(x: Array, out: Array | None = None, *, resolve: Any, count_include_pad: bool = False) -> Array:
    check_spatial(x)
    return means(x, resolve(x.shape[2:], None), count_include_pad, out=out)


def count_taps(axis: Axis, include: bool) -> Array:
    """For each output, how many taps fall inside the input, or inside input and padding."""
    if include:
        axis = axis._replace(size=axis.size + axis.begin + axis.end, begin=0, end=0)
    before: Array = axis.begin - np.arange(axis.out, dtype=np.int64) * axis.stride
    first = np.maximum(0, -(-before // axis.dilation))
    return np.maximum(first, np.minimum(axis.kernel, (axis.size - 1 + before) // axis.dilation + 1)) - first


def _order(node: Node) -> float:
    """The attribute ``p``: an int, in the operators' first version a float."""
    p = float(node.attributes.get("p", 2))
    if not 0 < p < math.inf:
        raise Error("IRC320", f"p is {p}: it must be greater than 0")
    return p


@computes("onnx::LpPool", resolve=resolver, p=_order)
def lp_pool(x: Array, *, resolve: Any, p: float) -> Array:
    check_spatial(x)
    sums = reduce_windows(_powers(x, p), resolve(x.shape[2:], None), np.add, 0)
    return _root(sums, p).astype(x.dtype, copy=False)


def _powers(x: Array, p: float) -> Array:
    """``|x| ** p``, in at least float32."""
    wide = widened(x)
    if p == 2:
        return np.square(wide)
    return np.abs(wide) if p == 1 else np.abs(wide) ** wide.dtype.type(p)


def _root(sums: Array, p: float) -> Array:
    if p == 2:
        return np.sqrt(sums)
    return sums if p == 1 else sums ** sums.dtype.type(1 / p)


def _spatial(x: Array) -> tuple[int, ...]:
    check_spatial(x)
    return tuple(range(2, x.ndim))


@computes("onnx::GlobalMaxPool")
def global_max_pool(x: Array, out: Array | None = None) -> Array:
    return np.max(x, axis=_spatial(x), keepdims=True, initial=lowest(x.dtype), out=out)


@computes("onnx::GlobalAveragePool")
def global_average_pool(x: Array, out: Array | None = None) -> Array:
    wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
    sums: Array = add_reduce(x, _spatial(x), True, wide, out if wide == x.dtype else None)
    sums /= wide.type(math.prod(x.shape[2:]))
    return narrowed(sums, x.dtype, out)


@computes("onnx::GlobalLpPool", p=_order)
def global_lp_pool(x: Array, *, p: float) -> Array:
    sums = np.sum(_powers(x, p), axis=_spatial(x), keepdims=True)
    return _root(sums, p).astype(x.dtype, copy=False)


# -- MaxUnpool -----------------------------------------------------------------


@computes("onnx::MaxUnpool", window=Window.of)
def max_unpool(x: Array, indices: Array, output_shape: Array | None = None, *, window: Window) -> Array:
    check_spatial(x)
    if indices.shape != x.shape:
        raise Error("IRC421", f"the indices have shape {list(indices.shape)}, the maxima {list(x.shape)}")
    rank = x.ndim - 2
    kernel_shape, strides, _, pads = window.parameters(rank)
    sides = zip(x.shape[2:], kernel_shape, strides, pads[:rank], pads[rank:], strict=True)
    sizes = [(size - 1) * s + k - begin - end for size, k, s, begin, end in sides]
    shape = check_size((*x.shape[:2], *sizes), x.dtype)
    flat = np.zeros(math.prod(shape), x.dtype)
    if indices.size and not (indices.min() >= 0 and indices.max() < flat.size):
        raise Error("IRC423", f"an index is outside the result, which has shape {list(shape)}")
    flat[indices.ravel()] = x.ravel()
    result = flat.reshape(shape)
    return result if output_shape is None else _within(result, ints(output_shape))


def _within(x: Array, shape: list[int]) -> Array:
    """``x`` at the origin of a tensor of zeros.

    The indices count in the shape that the attributes give, whatever ``output_shape`` says: so in
    the node suite's ``test_maxunpool_export_with_output_shape``.
    """
    if len(shape) != x.ndim or any(n < m for n, m in zip(shape, x.shape, strict=False)):
        raise Error("IRC421", f"output_shape {shape} is smaller than the unpooled shape {list(x.shape)}")
    result = np.zeros(check_size(shape, x.dtype), x.dtype)
    result[tuple(slice(0, n) for n in x.shape)] = x
    return result
