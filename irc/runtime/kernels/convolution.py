"""Conv, and the algorithm of convolutions: columns and matrix multiplication, by groups, in blocks.

A pointwise convolution (1×1, stride 1, no padding) is a matrix product on the
input itself. For every other one the input is gathered into columns, a block of
output rows at a time so that the columns stay in cache, and multiplied with the
weights; groups are a batch of matrix products. Where a group has one filter, as in
depthwise convolution, that would be the product of a vector with many columns: then
the taps of one row of the kernel alone are gathered, and multiplied with all rows of
it; the products are added where they belong. (As shifted multiply-adds, depthwise
convolution was measured no faster than with columns.)

Strides are dealt with once, while padding: the padded image is stored by its
*phases*, the positions that are equal modulo the stride. Every tap of the kernel
then reads a contiguous, shifted window of one phase, whatever the stride and
dilation. Windows that share no element and need no padding, as of the patches of
a vision transformer, are copied into the columns at once: one transposition.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irc.errors import Error
from irc.runtime.bounds import check_bytes, check_work, pace
from irc.runtime.kernels.halves import narrowed, widened
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, check_size, is_half
from irc.runtime.kernels.windows import Axes, Axis, Sizes, Window, outputs, pairing, resolver

if TYPE_CHECKING:
    from irc.ir import Node

COLUMN_ELEMENTS = 1 << 19
"""Size of a block of columns: small enough for the cache, large enough for the matrix product to be efficient."""

PACE_ELEMENTS = 16 * COLUMN_ELEMENTS
"""A block of at least `COLUMNS` columns may be larger than this. Then it is one of fewer groups at a time, and of a
single group one that takes so long that a run under limits looks at the clock after each tap."""

TAP_BYTES = 256
"""What is kept for one tap of a kernel in a `Layout`."""

COLUMNS = 512
"""At least so many columns a block: with fewer, reading the weights once a block would cost too much."""


class Tap(NamedTuple):
    """Where a tap of the kernel finds its window in the image stored by phases."""

    phase: int
    offset: Sizes


class Layout(NamedTuple):
    """How an image is stored for the taps of a kernel."""

    margin: Sizes
    """positions an axis needs beyond the number of outputs"""
    phases: tuple[Sizes, ...]
    """for each phase: its number, from 0 to stride - 1, on each axis"""
    taps: tuple[Tap, ...]


@lru_cache(maxsize=256)
def layout(axes: Axes) -> Layout:
    """The storage by phases that windows along ``axes`` need."""
    starts = [[t * a.dilation for t in range(a.kernel)] for a in axes]
    used = [sorted({s % a.stride for s in on_axis}) for on_axis, a in zip(starts, axes, strict=True)]
    phases = list(itertools.product(*used))
    index = {phase: i for i, phase in enumerate(phases)}
    taps: list[Tap] = []
    for tap in itertools.product(*starts):
        steps = [divmod(s, a.stride) for s, a in zip(tap, axes, strict=True)]
        taps.append(Tap(index[tuple(phase for _, phase in steps)], tuple(offset for offset, _ in steps)))
    return Layout(tuple(s[-1] // a.stride for s, a in zip(starts, axes, strict=True)), tuple(phases), tuple(taps))


def by_phases(x: Array, axes: Axes, plan: Layout, start: int, count: int) -> Array:
    """What ``count`` outputs along the first axis, from ``start`` on, need of ``x`` (C, spatial...).

    Padded with zeros and split: (phases, C, positions...), in scratch memory. Position ``q`` of a
    phase ``p`` is input ``q * stride + p - begin``.
    """
    counts = (count, *outputs(axes[1:]))
    if len(plan.phases) == 1 and all(a.stride == 1 and a.begin == 0 and a.end == 0 for a in axes):
        return x[None, :, start : start + count + plan.margin[0]]
    sizes = tuple(c + m for c, m in zip(counts, plan.margin, strict=True))
    stored = scratch("phases", (len(plan.phases), x.shape[0], *sizes), x.dtype)
    for number, phase in zip(plan.phases, stored, strict=True):
        source: list[slice] = [slice(None)]
        target: list[slice] = [slice(None)]
        for p, a, size in zip(number, axes, sizes, strict=True):
            first = p - a.begin + (start * a.stride if len(source) == 1 else 0)
            filled, read = pairing(first, a.stride, size, a.size)
            for border in (slice(0, filled.start), slice(filled.stop, None)):
                phase[(*target, border)] = 0
            source.append(read)
            target.append(filled)
        np.copyto(phase[tuple(target)], x[tuple(source)])
    return stored


def by_taps(x: Array, axes: Axes, start: int, count: int) -> Array:
    """The columns of ``count`` rows of outputs, from ``start`` on: (C, taps, count, outputs...), in scratch memory."""
    check_bytes(TAP_BYTES * math.prod(a.kernel for a in axes))
    plan = layout(axes)
    stored = by_phases(x, axes, plan, start, count)
    counts = (count, *outputs(axes[1:]))
    columns = scratch("columns", (len(x), len(plan.taps), *counts), x.dtype)
    is_long = columns.size > PACE_ELEMENTS
    for t, (phase, offset) in enumerate(plan.taps):
        if is_long:
            pace()
        window = tuple(slice(o, o + n) for o, n in zip(offset, counts, strict=True))
        np.copyto(columns[:, t], stored[phase][(slice(None), *window)])
    return columns


def by_windows(x: Array, axes: Axes, start: int, count: int) -> Array:
    """What `by_taps` makes, copied once, the taps by axes: (C, kernel..., count, outputs...). No axis has padding.

    The columns have no more elements than are read of ``x``, if the windows are disjoint.
    """
    spatial = tuple(range(1, x.ndim))
    windows = sliding_window_view(x, [a.reach for a in axes], spatial)
    strided = windows[(slice(None), *(slice(None, None, a.stride) for a in axes))]
    taken = strided[(slice(None), slice(start, start + count), ..., *(slice(None, None, a.dilation) for a in axes))]
    ordered = np.moveaxis(taken, range(x.ndim, taken.ndim), spatial)
    columns = scratch("columns", ordered.shape, x.dtype)
    np.copyto(columns, ordered)
    return columns


def _is_disjoint(axis: Axis) -> bool:
    """Whether windows along ``axis`` share no position, and none of them is padding."""
    return axis.begin == 0 and axis.end == 0 and axis.stride >= axis.reach


def check_operands(x: Array, w: Array, b: Array | None, group: int, *, transposed: bool = False) -> None:
    """Error unless weights (O, C / group, kernel...), or transposed (C, O / group, kernel...), fit input and bias."""
    if x.ndim < 3 or w.ndim != x.ndim:
        raise Error(
            "IRC421",
            f"the input has shape {list(x.shape)} and the weights {list(w.shape)}: both must have the same number "
            "of dimensions, at least 3 (batch, channels, spatial axes)",
        )
    channels, features = w.shape[1] * group, w.shape[0]
    if transposed:
        channels, features = features, channels
    if group < 1 or x.shape[1] != channels or channels % group or features % group:
        raise Error(
            "IRC421",
            f"weights of shape {list(w.shape)} in {group} groups take {channels} channels to {features}: "
            f"the input has {x.shape[1]} channels, and {group} must divide both numbers",
        )
    if b is not None and b.shape != (features,):
        raise Error("IRC421", f"the bias has shape {list(b.shape)}, expected [{features}]")


@kernel("onnx::Conv")
def conv(node: Node) -> Kernel:
    resolve = resolver(Window.of(node))
    group = int(node.attributes.get("group", 1))

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        return convolve(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), out)

    return run


def convolve(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array | None = None) -> Array:
    """Cross-correlation of ``x`` (N, C, spatial...) with ``w`` (O, C / group, kernel...), plus ``b`` (O).

    Returns (N, O, out...) of x's dtype, in ``out`` if given: in C order, sharing with no operand.
    float16 and smaller floats are computed in float32, as which weights and bias may be given, too.
    """
    check_operands(x, w, b, group)
    if out is None:
        out = np.empty(check_size((x.shape[0], w.shape[0], *outputs(axes)), x.dtype), x.dtype)
    check_work(out.size * math.prod(w.shape[1:]))
    if is_half(x.dtype):
        bias = None if b is None else widened(b)
        narrowed(convolve(widened(x), widened(w), bias, group, axes), x.dtype, out)
    elif group == 1 and _repeats_one_filter(w):
        # As in test models without real weights: all features are the same to the last bit, so that none wins.
        bias = 0 if b is None else b.reshape(-1, *[1] * len(axes))
        np.add(convolve(x, w[:1], None, group, axes), bias, out=out, dtype=x.dtype)
    elif all(a.trivial for a in axes):
        _pointwise(x, w, b, group, out)
    elif w.shape[0] == group and _has_rows(w, axes[0]):
        _by_rows(x, w, b, group, axes, out)
    else:
        _columns(x, w, b, group, axes, out)
    return out


def _repeats_one_filter(w: Array) -> bool:
    """Whether ``w`` (O, C / group, kernel...) has several filters, which are all equal; of others, two numbers tell."""
    if w.shape[0] < 2 or not w.size:
        return False
    return w.strides[0] == 0 or (w.item(0) == w.item(w.size - w.size // w.shape[0]) and bool((w == w[:1]).all()))


def _has_rows(w: Array, first: Axis) -> bool:
    """Whether rows of a filter have several numbers, several of them read one row of the image, and few beyond it."""
    return (
        w.size > w.shape[0] * first.kernel and first.stride < first.kernel and first.reach <= first.out * first.stride
    )


def _pointwise(x: Array, w: Array, b: Array | None, group: int, out: Array) -> None:
    images, channels, features = x.shape[0], x.shape[1], w.shape[0]
    length = math.prod(x.shape[2:])
    source = x.reshape(images, group, channels // group, length)
    weights = w.reshape(group, features // group, channels // group)
    result = out.reshape(images, group, features // group, length)
    bias = None if b is None else b.reshape(group, features // group, 1)
    # In blocks, so that the bias is added while the result is still in cache.
    step = length if bias is None else share(length, COLUMN_ELEMENTS // max(1, features))
    for start in range(0, length, max(1, step)):
        block = result[..., start : start + step]
        np.matmul(weights, source[..., start : start + step], out=block)
        if bias is not None:
            block += bias


def _columns(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> None:
    channels, features = x.shape[1], w.shape[0]
    gather = by_windows if all(_is_disjoint(a) for a in axes) else by_taps
    rows, *inner = outputs(axes)
    width = math.prod(inner)
    depth = channels * math.prod(a.kernel for a in axes)
    weights = w.reshape(group, features // group, depth // group)
    bias = None if b is None else b.reshape(group, features // group, 1)
    step = share(rows, max(COLUMN_ELEMENTS // max(1, depth), COLUMNS) // max(1, width))
    most = PACE_ELEMENTS // max(1, depth // group * min(step, rows) * width)
    together = min(group, max(1, most))
    results = out.reshape(x.shape[0], group, features // group, rows * width)
    for (image, result), first in itertools.product(zip(x, results, strict=True), range(0, group, together)):
        groups = slice(first, first + together)
        source = image[first * channels // group : (first + together) * channels // group]
        filters, target, shift = weights[groups], result[groups], None if bias is None else bias[groups]
        for start in range(0, rows, step):
            count = min(step, rows - start)
            pace()
            columns = gather(source, axes, start, count)
            block = target[..., start * width : (start + count) * width]
            np.matmul(filters, columns.reshape(len(filters), depth // group, count * width), out=block)
            if shift is not None:
                block += shift


def _by_rows(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> None:
    """One filter a group: `_columns` of the taps of a single row of the kernel, at all rows of the image.

    One product makes the sums of every row of the kernel of them, which are added where they belong. The rows of the
    image lie by phases, each with its rows of the kernel.
    """
    first, channels = axes[0], x.shape[1] // group
    check_bytes(TAP_BYTES * first.kernel)
    rows, *inner = outputs(axes)
    width, depth = math.prod(inner), w.size // (group * first.kernel)
    weights = w.reshape(group, channels, first.kernel, -1).swapaxes(1, 2).reshape(group, first.kernel, depth)
    steps = [divmod(t * first.dilation, first.stride) for t in range(first.kernel)]
    parts: list[tuple[Axes, Array, list[int]]] = []
    for phase in sorted({p for _, p in steps}):
        lines = (first._replace(kernel=1, begin=first.begin - phase), *axes[1:])
        parts.append((lines, weights[:, [p == phase for _, p in steps]], [o for o, p in steps if p == phase]))
    bias = None if b is None else b.reshape(group, 1, 1)
    results = out.reshape(x.shape[0], group, rows, width)
    size = max(1, (depth + first.kernel) * width)  # of columns and sums, for one row of a group
    margin = first.reach // first.stride  # rows of the image beyond those of the output
    step = share(rows, max(margin, COLUMN_ELEMENTS // size - margin))
    together = max(1, COLUMN_ELEMENTS // (size * (step + margin)))
    blocks = itertools.product(range(0, rows, step), range(0, group, together))
    for (image, result), (start, number) in itertools.product(zip(x, results, strict=True), blocks):
        pace()
        groups = slice(number, number + together)
        block = result[groups, start : start + step]
        source = image[number * channels : (number + together) * channels]
        np.copyto(block, 0 if bias is None else bias[groups])
        for lines, filters, offsets in parts:
            count = block.shape[1] + offsets[-1]
            columns = by_taps(source, lines, start, count).reshape(len(block), depth, count * width)
            sums = scratch("sums", (len(block), len(offsets), count, width), x.dtype)
            np.matmul(filters[groups], columns, out=sums.reshape(len(block), len(offsets), count * width))
            for i, offset in enumerate(offsets):
                block += sums[:, i, offset : offset + block.shape[1]]


def share(total: int, most: int) -> int:
    """The size of equal parts of ``total``, each at most ``most`` (at least 1)."""
    parts = -(-total // max(1, most))
    return max(1, -(-total // max(1, parts)))
