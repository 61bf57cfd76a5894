"""Convolutions and pooling, by the same algorithms as ONNX's; columns of windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import INT64
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.convolution import (
    check_operands,
    convolve,
    from_columns,
    taps_of,
    transpose_convolve,
    transposed_axes,
)
from irc.runtime.kernels.pool import argmax_windows, count_taps, maxima, means, reduce_windows
from irc.runtime.kernels.support import Array, check_size, counting, filled, is_half
from irc.runtime.kernels.windows import Axes, Sizes, Window
from irc.runtime.values import is_sequence


def spread(given: Any, rank: int, what: str) -> tuple[Any, ...]:
    """One number for all axes, or one for each."""
    sizes = tuple(sizes_of(given))
    if len(sizes) == 1:
        sizes *= rank
    if len(sizes) != rank:
        raise Error("IRC421", f"{what} is {list(sizes)}: {rank} spatial dimensions need as many entries")
    return sizes


@lru_cache(maxsize=256)
def windows(kernel: Sizes, stride: Sizes, pads: Sizes, dilation: Sizes, ceil: bool = False) -> Window:
    """Windows of ``kernel`` positions; ``pads`` are begins, then ends.

    Raises:
        Error: IRC424 if a number is not positive, or a padding negative.
    """
    given = {"kernel": kernel, "stride": stride, "padding": pads, "dilation": dilation}
    for what, sizes in given.items():
        least = 0 if what == "padding" else 1
        if min(sizes, default=least) < least:
            raise Error("IRC424", f"{what} is {list(sizes)}: every entry must be at least {least}")
    return Window(kernel, stride, dilation, pads, "NOTSET", ceil)


def _paddings(padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    """Begins and ends; ``"same"`` gives as many outputs as inputs, the odd padding at the end."""
    rank = len(kernel)
    if not isinstance(padding, str):
        return spread(padding, rank, "padding") * 2
    if padding == "valid":
        return (0,) * (2 * rank)
    if padding != "same" or set(stride) != {1}:
        raise Error(
            "IRC424", f"padding {padding!r} with stride {list(stride)}: it must be 'valid', or 'same' with stride 1"
        )
    totals = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))


def conv(x: Array, weight: Array, bias: Array | None = None, *options: Any, out: Array | None = None) -> Array:
    """Cross-correlation of ``x`` (N?, C, spatial...) with ``weight`` (O, C / groups, kernel...)."""
    stride, padding, dilation, groups = filled(options, 1, 0, 1, 1)
    return _convolved(x, weight, bias, stride, padding, dilation, False, 0, groups, out=out)


def conv_transpose(
    x: Array, weight: Array, bias: Array | None = None, *options: Any, out: Array | None = None
) -> Array:
    """The transpose of `conv`, with ``weight`` (C, O/groups, kernel...)."""
    stride, padding, output_padding, groups, dilation = filled(options, 1, 0, 0, 1, 1)
    return _convolved(x, weight, bias, stride, padding, dilation, True, output_padding, groups, out=out)


@aten("convolution", "_convolution")
def convolution(x: Array, weight: Array, bias: Array | None, *options: Any, out: Array | None = None) -> Array:
    """Either, of any rank."""
    if x.ndim != weight.ndim:
        raise Error("IRC421", f"an input of {x.ndim} dimensions does not fit weights of {weight.ndim}")
    return _convolved(x, weight, bias, *options[:6], out=out)


def _convolved(x: Array, weight: Array, bias: Array | None, *options: Any, out: Array | None) -> Array:
    """Options: stride, padding, dilation, whether it is transposed, output padding, groups.

    If ``out`` is given, it has the result in C order, whatever is returned.
    """
    stride, padding, dilation, transposed, output_padding, groups = options
    rank = weight.ndim - 2
    if x.ndim == rank + 1:
        return _convolved(x[None], weight, bias, *options, out=None if out is None else out[None])[0]
    _check(x, weight, bias, groups, transposed)
    kernel = weight.shape[2:]
    steps, apart = spread(stride, rank, "stride"), spread(dilation, rank, "dilation")
    if not transposed:
        axes = windows(kernel, steps, _paddings(padding, kernel, steps, apart), apart).resolve(x.shape[2:], kernel)
        return _formatted(convolve(x, weight, bias, groups, axes, out), x, weight)
    window = windows(kernel, steps, spread(padding, rank, "padding") * 2, apart)
    more = spread(output_padding, rank, "output_padding")
    if any(m >= max(s, d) for m, s, d in zip(more, steps, apart, strict=True)):
        raise Error("IRC424", f"output_padding is {list(more)}; it must be below the stride or dilation of its axis")
    axes = transposed_axes(window, x.shape[2:], kernel, more, ())
    return _formatted(transpose_convolve(x, weight, bias, groups, axes, out=out), x, weight)


def _check(x: Array, weight: Array, bias: Array | None, groups: int, transposed: bool) -> None:
    check_operands(x, weight, bias, groups, transposed=transposed)
    if x.dtype != weight.dtype or (bias is not None and bias.dtype != x.dtype):
        raise Error("IRC423", f"input and weights are of {x.dtype.name} and {weight.dtype.name}; convert one")


def _formatted(y: Array, x: Array, weight: Array) -> Array:
    """``x`` in channels-last layout if the input or weights are; contiguous first for one spatial axis."""
    if y.ndim == 3:
        is_last = layout.format_of(_as_images(weight)) or (x.flags.c_contiguous and layout.format_of(_as_images(x)))
        return np.swapaxes(np.ascontiguousarray(np.swapaxes(y, 1, 2)), 1, 2) if is_last else y
    memory_format = layout.format_of(x) or layout.format_of(weight)
    return layout.in_format(y, memory_format) if memory_format else y


def _as_images(x: Array) -> Array:
    """(N, C, L) as (N, C, 1, L), with the strides that torch gives the new axis."""
    n, c, length = x.strides
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], 1, x.shape[2]), (n, c, length * x.shape[2], length))


# -- columns -------------------------------------------------------------------


def _resolved(sizes: Sizes, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Sizes, Axes]:
    for what, given in (("dilation", dilation), ("padding", padding), ("stride", stride), ("kernel_size", kernel)):
        if is_sequence(given) and len(given) != 2:
            raise Error("IRC421", f"{what} is {list(given)}: images need 2 entries")
    extent = spread(kernel, 2, "kernel_size")
    pads = spread(padding, 2, "padding") * 2
    window = windows(extent, spread(stride, 2, "stride"), pads, spread(dilation, 2, "dilation"))
    return extent, window.resolve(sizes)


def im2col(x: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """All windows as columns: (N, C · taps, windows)."""
    if x.ndim == 3:
        return im2col(x[None], kernel_size, dilation, padding, stride)[0]
    if 0 in x.shape[1:]:
        raise Error("IRC421", f"no window fits the shape {list(x.shape)}")
    extent, axes = _resolved(x.shape[2:], kernel_size, dilation, padding, stride)
    n, c = x.shape[:2]
    columns = np.zeros(check_size((n, c, math.prod(extent), *(a.out for a in axes)), x.dtype), x.dtype)
    for i, to, of in taps_of(axes):
        columns[(slice(None), slice(None), i, *to)] = x[(slice(None), slice(None), *of)]
    return columns.reshape(n, c * math.prod(extent), math.prod(a.out for a in axes))


def col2im(x: Array, output_size: Sequence[int], kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Columns added into the image that they are windows of."""
    if x.ndim == 2:
        return col2im(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    extent, axes = _resolved(spread(output_size, 2, "output_size"), kernel_size, dilation, padding, stride)
    taps = math.prod(extent)
    if x.shape[1] % taps or x.shape[2] != math.prod(a.out for a in axes):
        raise Error("IRC421", f"columns of shape {list(x.shape)} do not fit windows of {list(extent)}")
    return from_columns(x, axes)


def _batched(rank: int, pool: Callable[..., Any], x: Array, *arguments: Any) -> Any:
    """``pool`` for inputs (N, C, spatial...) or (C, spatial...); results keep the memory format."""
    if x.ndim not in (rank + 1, rank + 2):
        raise Error("IRC421", f"expected {rank + 1} or {rank + 2} dimensions, the shape is {list(x.shape)}")
    whole = x if x.ndim == rank + 2 else x[None]
    memory_format = layout.format_of(whole)

    def placed(found: Array) -> Array:
        result = layout.in_format(found, memory_format)
        return result if whole is x else result[0]

    found = pool(whole, rank, *arguments)
    return tuple(map(placed, found)) if isinstance(found, tuple) else placed(found)  # type: ignore[reportUnknownArgumentType]


def _axes(x: Array, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Axes:
    kernel = spread(kernel_size, rank, "kernel_size")
    steps = spread(stride, rank, "stride") if sizes_of(stride) else kernel
    pads = spread(padding, rank, "padding")
    if any(2 * p > k for p, k in zip(pads, kernel)):
        raise Error("IRC424", f"padding {list(pads)} is more than half of the kernel {list(kernel)}")
    window = windows(kernel, steps, pads * 2, spread(dilation, rank, "dilation"), bool(ceil_mode))
    return window.resolve(x.shape[2:])


def _taking_out(rank: int, pool: Callable[..., Any]) -> Callable[..., Array]:
    """As `_batched`, of a ``pool`` that takes ``out``: it has the result in C order, whatever is returned."""

    def run(x: Array, *arguments: Any, out: Array | None = None) -> Array:
        whole = out if out is None or x.ndim == rank + 2 else out[None]
        return _batched(rank, partial(pool, out=whole), x, *arguments)

    return run


def _over_windows(
    pool: Callable[..., Any], x: Array, rank: int, kernel_size: Any, *options: Any, **given: Array | None
) -> Any:
    """Options: stride, padding, dilation, ceil_mode."""
    return pool(x, _axes(x, rank, kernel_size, *filled(options, (), 0, 1, False)), **given)


def _maxima_with_places(x: Array, axes: Axes) -> tuple[Array, Array]:
    """The maxima and where they are in their image, counted in the order of its elements."""
    values, places = argmax_windows(x, axes, False)
    return values, places % math.prod(x.shape[2:])


def _average(x: Array, rank: int, kernel_size: Any, *options: Any, out: Array | None = None) -> Array:
    """Options: stride, padding, ceil_mode, count_include_pad, divisor_override."""
    stride, padding, ceil_mode, include, divisor = filled(options, (), 0, False, True, None)
    axes = _axes(x, rank, kernel_size, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise Error("IRC424", "an average is not divided by 0")
    if x.dtype.kind not in "iu":
        return means(x, axes, include, divisor, out)
    sums = reduce_windows(x, axes, np.add, 0)
    by: Any = reduce(np.multiply.outer, [count_taps(axis, include).astype(x.dtype) for axis in axes])
    by = by if divisor is None else x.dtype.type(divisor)
    return np.floor_divide(sums - np.fmod(sums, by), by, out=out)  # exactly, towards zero


# -- adaptive ------------------------------------------------------------------


def _parts(size: int, count: int) -> list[tuple[int, int]]:
    """``count`` ranges covering ``size`` positions, overlapping by one if that does not divide evenly."""
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


def max_unpool(x: Array, indices: Array, output_size: Any) -> Array:
    """Maxima of images where they were found, zeros elsewhere."""
    sizes = sizes_of(output_size)
    if x.ndim not in (3, 4) or len(sizes) != 2 or 0 in x.shape[1:]:
        raise Error("IRC421", f"maxima of shape {list(x.shape)} do not fit an image of shape {sizes}")
    if indices.shape != x.shape or indices.dtype != INT64:
        given = f"{indices.dtype.name} of shape {list(indices.shape)}"
        raise Error("IRC421", f"maxima of shape {list(x.shape)} need an index of int64 each, not {given}")
    shape = check_size((*x.shape[:-2], *sizes), x.dtype)
    out = np.zeros((*x.shape[:-2], math.prod(sizes)), x.dtype)
    flat = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    if indices.size and not 0 <= indices.min() <= indices.max() < out.shape[-1]:
        raise Error("IRC420", f"an index is out of range for an image of shape {sizes}")
    np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), -1)
    return layout.in_format(out.reshape(shape), layout.format_of(x))


for _rank in (1, 2, 3):
    for _name, _pool in (
        ("max_pool{}d_with_indices", partial(_over_windows, _maxima_with_places)),
        ("adaptive_avg_pool{}d", adaptive_average),
        ("adaptive_max_pool{}d", _adaptive_max),
    ):
        aten(_name.format(_rank))(partial(_batched, _rank, _pool))
    aten(f"max_pool{_rank}d")(_taking_out(_rank, partial(_over_windows, maxima)))
    aten(f"avg_pool{_rank}d")(_taking_out(_rank, _average))

table(
    _convolution_mode=conv,
    **{f"conv{rank}d": conv for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": conv_transpose for rank in (1, 2, 3)},
    max_unpool2d=max_unpool,
    _adaptive_avg_pool2d=partial(_batched, 2, adaptive_average),
    _adaptive_avg_pool3d=partial(_batched, 3, adaptive_average),
)
