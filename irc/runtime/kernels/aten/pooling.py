"""Pooling over windows, and over parts of images that divide them into a given number."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.convolution import spread, windows
from irc.runtime.kernels.aten.element_types import INT64
from irc.runtime.kernels.aten.registering import aten, one, table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.pool import argmax_windows, count_taps, maxima, means, reduce_windows
from irc.runtime.kernels.support import Array, check_size, counting, is_half
from irc.runtime.kernels.windows import Axes
from irc.runtime.values import is_sequence


def _batched(rank: int, pool: Callable[..., Any]) -> Callable[..., Any]:
    """``pool`` for inputs (N, C, spatial...) and, without a batch, (C, spatial...); results keep the memory format."""

    def run(x: Array, *arguments: Any) -> Any:
        if x.ndim not in (rank + 1, rank + 2):
            raise Error("IRC421", f"expected {rank + 1} or {rank + 2} dimensions, the shape is {list(x.shape)}")
        if x.ndim == rank + 1:
            return _each(run(x[None], *arguments), one(lambda v: v[0]))
        memory_format = layout.format_of(x)
        return _each(pool(x, rank, *arguments), one(lambda v: layout.in_format(v, memory_format)))

    return run


def _each(found: Any, change: Callable[[Any], Any]) -> Any:
    """``change`` of a result, or of each of several."""
    return tuple(map(change, found)) if isinstance(found, tuple) else change(found)  # type: ignore[reportUnknownArgumentType]


def _axes(x: Array, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Axes:
    kernel = spread(kernel_size, rank, "kernel_size")
    steps = spread(stride, rank, "stride") if sizes_of(stride) else kernel
    pads = spread(padding, rank, "padding")
    if any(2 * p > k for p, k in zip(pads, kernel)):
        raise Error("IRC424", f"padding {list(pads)} is more than half of the kernel {list(kernel)}")
    window = windows(kernel, steps, pads * 2, spread(dilation, rank, "dilation"), bool(ceil_mode))
    return window.resolve(x.shape[2:])


def _max(
    x: Array,
    rank: int,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    axes = _axes(x, rank, kernel_size, stride, padding, dilation, ceil_mode)
    return maxima(x, axes)


def _max_with_indices(
    x: Array,
    rank: int,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """The maxima and where they are in their image, counted in the order of its elements."""
    axes = _axes(x, rank, kernel_size, stride, padding, dilation, ceil_mode)
    values, places = argmax_windows(x, axes, False)
    return values, places % math.prod(x.shape[2:])


def _average(
    x: Array,
    rank: int,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    axes = _axes(x, rank, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
        raise Error("IRC424", "an average is not divided by 0")
    if x.dtype.kind not in "iu":
        return means(x, axes, count_include_pad, divisor_override)
    sums = reduce_windows(x, axes, np.add, 0)
    divisor: Any = reduce(np.multiply.outer, [count_taps(axis, count_include_pad).astype(x.dtype) for axis in axes])
    if divisor_override is not None:
        divisor = x.dtype.type(divisor_override)
    return np.asarray((sums - np.fmod(sums, divisor)) // divisor)  # exactly, towards zero


# -- adaptive ------------------------------------------------------------------


def _parts(size: int, count: int) -> list[tuple[int, int]]:
    """``count`` ranges that cover ``size`` positions; where that does not divide evenly they overlap by one."""
    return [(i * size // count, -(-((i + 1) * size) // count)) for i in range(count)]


def _targets(x: Array, rank: int, output_size: Any) -> tuple[int, ...]:
    if is_sequence(output_size) and len(output_size) != rank:
        raise Error("IRC424", f"the result has {rank} sizes, not {len(output_size)}")
    given = spread(output_size, rank, "output_size") if None not in sizes_of(output_size) else tuple(output_size)
    targets = tuple(n if t is None else t for t, n in zip(given, x.shape[2:], strict=True))
    if 0 in x.shape[1:]:
        raise Error("IRC421", f"there is nothing to pool in the shape {list(x.shape)}")
    check_size((*x.shape[:2], *targets), x.dtype)
    return targets


def adaptive_average(x: Array, rank: int, output_size: Any) -> Array:
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    for axis, count in enumerate(_targets(x, rank, output_size), 2):
        parts = _parts(wide.shape[axis], count)
        lead = (slice(None),) * axis
        means = [wide[(*lead, slice(a, b))].mean(axis, dtype=wide.dtype, keepdims=True) for a, b in parts]
        wide = np.concatenate(means, axis) if means else wide[(*lead, slice(0, 0))]
    return wide.astype(x.dtype)


def _adaptive_max(x: Array, rank: int, output_size: Any) -> tuple[Array, Array]:
    """The maxima, and where the first of each, or the last that is not a number, is in its image."""
    targets = _targets(x, rank, output_size)
    values = np.empty((*x.shape[:2], *targets), x.dtype)
    places = np.empty(values.shape, np.int64)
    numbers: Array = counting(math.prod(x.shape[2:])).reshape(x.shape[2:])
    sides = zip(x.shape[2:], targets, strict=True)
    parts: list[list[Any]] = [[slice(a, b) for a, b in _parts(n, t)] for n, t in sides]
    for place in np.ndindex(*targets):
        box = tuple(parts[i][p] for i, p in enumerate(place))
        inside = x[(slice(None), slice(None), *box)]
        seen = inside.reshape(*x.shape[:2], math.prod(inside.shape[2:]))
        is_nan = np.isnan(seen)
        from_end: Array = is_nan[..., ::-1].argmax(-1)
        best: Array = seen.argmax(-1)
        np.copyto(best, seen.shape[-1] - 1 - from_end, where=is_nan.any(-1))
        values[(..., *place)] = np.take_along_axis(seen, best[..., None], -1)[..., 0]
        places[(..., *place)] = numbers[box].reshape(-1)[best]
    return values, places


for _rank in (1, 2, 3):
    aten(f"max_pool{_rank}d")(_batched(_rank, _max))
    aten(f"max_pool{_rank}d_with_indices")(_batched(_rank, _max_with_indices))
    aten(f"avg_pool{_rank}d")(_batched(_rank, _average))
    aten(f"adaptive_avg_pool{_rank}d")(_batched(_rank, adaptive_average))
    aten(f"adaptive_max_pool{_rank}d")(_batched(_rank, _adaptive_max))


def _max_unpool(x: Array, indices: Array, output_size: Any) -> Array:
    """Maxima of images where they were found, zeros elsewhere."""
    sizes = sizes_of(output_size)
    if x.ndim not in (3, 4) or len(sizes) != 2 or 0 in x.shape[1:]:
        raise Error("IRC421", f"no image of shape {sizes} is made of maxima of shape {list(x.shape)}")
    if indices.shape != x.shape or indices.dtype != INT64:
        given = f"{indices.dtype.name} of shape {list(indices.shape)}"
        raise Error("IRC421", f"maxima of shape {list(x.shape)} need an index of int64 each, not {given}")
    check_size((*x.shape[:-2], *sizes), x.dtype)
    out = np.zeros((*x.shape[:-2], math.prod(sizes)), x.dtype)
    flat = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    if indices.size and not 0 <= indices.min() <= indices.max() < out.shape[-1]:
        raise Error("IRC420", f"an index is out of range for an image of shape {sizes}")
    np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), -1)
    return layout.in_format(out.reshape(*x.shape[:-2], *sizes), layout.format_of(x))


table({"max_unpool2d": _max_unpool})
table({"_adaptive_avg_pool2d": _batched(2, adaptive_average), "_adaptive_avg_pool3d": _batched(3, adaptive_average)})
