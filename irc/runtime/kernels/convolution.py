"""The convolution algorithm: columns and matrix multiplication, by groups, in blocks.

Three cases, chosen from the shapes alone:

- *pointwise* (1×1, stride 1, no padding): a matrix product on the input itself;
- *depthwise* (one input channel a group): shifted multiply-adds, since a matrix
  product with one row has no reuse to win;
- everything else: the input is gathered into columns, a block of output rows at
  a time so that the columns stay in cache, and multiplied with the weights.

Strides are dealt with once, while padding: the padded image is stored by its
*phases*, the positions that are equal modulo the stride. Every tap of the kernel
then reads a contiguous, shifted window of one phase, whatever the stride and
dilation.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, check_size, is_half
from irc.runtime.kernels.windows import Axes, Sizes, inside, outputs

COLUMN_ELEMENTS = 1 << 19
"""Size of a block of columns: small enough for the cache, large enough for the matrix product to be efficient."""

DEPTHWISE_ELEMENTS = 1 << 15
"""Elements of a block of channels in depthwise convolution: three such blocks stay in the second-level cache."""


class Tap(NamedTuple):
    """Where a tap of the kernel finds its window in the image stored by phases."""

    phase: int
    offset: Sizes


class Layout(NamedTuple):
    """How an image is stored for the taps: phases of ``sizes`` positions each."""

    sizes: Sizes
    fills: tuple[tuple[tuple[slice, ...], tuple[slice, ...]], ...]
    """for each phase: the positions that hold input, and the input they hold"""
    taps: tuple[Tap, ...]
    plain: bool
    """whether the one phase is just the input itself"""


@lru_cache(maxsize=256)
def layout(axes: Axes) -> Layout:
    """The storage by phases that the window ``axes`` need."""
    sizes: list[int] = []
    phases: list[list[int]] = []
    fills: list[list[tuple[slice, slice]]] = []
    for a in axes:
        starts = [t * a.dilation for t in range(a.kernel)]
        found = sorted({s % a.stride for s in starts})
        count = a.out + starts[-1] // a.stride
        sizes.append(count)
        phases.append(found)
        fill: list[tuple[slice, slice]] = []
        for p in found:
            first = p - a.begin
            hits = inside(first, a.stride, count, a.size)
            start = first + hits.start * a.stride
            stop = start + len(hits) * a.stride
            fill.append((slice(hits.start, hits.stop), slice(start, max(start, min(stop, a.size)), a.stride)))
        fills.append(fill)
    index = {combo: i for i, combo in enumerate(itertools.product(*phases))}
    taps: list[Tap] = []
    for combo in itertools.product(*(range(a.kernel) for a in axes)):
        starts = [t * a.dilation for t, a in zip(combo, axes, strict=True)]
        phase = tuple(s % a.stride for s, a in zip(starts, axes, strict=True))
        taps.append(Tap(index[phase], tuple(s // a.stride for s, a in zip(starts, axes, strict=True))))
    together = [tuple(zip(*combo, strict=True)) for combo in itertools.product(*fills)]
    return Layout(
        tuple(sizes),
        tuple((tuple(to), tuple(source)) for to, source in together),
        tuple(taps),
        all(a.stride == 1 and a.begin == 0 and a.end == 0 for a in axes),
    )


def by_phases(x: Array, plan: Layout) -> Array:
    """``x`` (C, spatial...), padded with zeros and split: (phases, C, sizes...), in scratch memory."""
    if plan.plain:
        return x[None]
    stored = scratch("phases", (len(plan.fills), x.shape[0], *plan.sizes), x.dtype)
    for phase, (to, source) in zip(stored, plan.fills, strict=True):
        for axis, filled in enumerate(to, 1):  # zero the borders only
            lead = (slice(None),) * axis
            phase[(*lead, slice(0, filled.start))] = 0
            phase[(*lead, slice(filled.stop, None))] = 0
        np.copyto(phase[(slice(None), *to)], x[(slice(None), *source)])
    return stored


def convolve(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array | None = None) -> Array:
    """Cross-correlation of ``x`` (N, C, spatial...) with ``w`` (O, C / group, kernel...), plus ``b`` (O).

    Returns (N, O, out...) of x's dtype. float16 and smaller floats are computed in float32.
    """
    images, channels, features = x.shape[0], x.shape[1], w.shape[0]
    if channels != w.shape[1] * group or features % group:
        raise Error(
            "IRC423",
            f"weights of shape {list(w.shape)} in {group} groups do not fit an input of {channels} channels: "
            f"they need {w.shape[1] * group} channels and a multiple of {group} outputs",
        )
    if b is not None and b.shape != (features,):
        raise Error("IRC423", f"the bias has shape {list(b.shape)}, expected [{features}]")
    if is_half(x.dtype):
        wide = [None if v is None else v.astype(np.float32) for v in (x, w, b)]
        assert wide[0] is not None and wide[1] is not None
        return convolve(wide[0], wide[1], wide[2], group, axes).astype(x.dtype)
    if out is None:
        out = np.empty(check_size((images, features, *outputs(axes)), x.dtype), x.dtype)
    if all(a.trivial for a in axes):
        _pointwise(x, w, b, group, out)
    elif group == channels and group > 1:
        _depthwise(x, w, b, axes, out)
    else:
        _columns(x, w, b, group, axes, out)
    return out


def _pointwise(x: Array, w: Array, b: Array | None, group: int, out: Array) -> None:
    images, channels, features = x.shape[0], x.shape[1], w.shape[0]
    length = math.prod(x.shape[2:])
    source = x.reshape(images, group, channels // group, length)
    weights = w.reshape(group, features // group, channels // group)
    result = out.reshape(images, group, features // group, length)
    bias = None if b is None else b.reshape(group, features // group, 1)
    # In blocks, so that the bias is added while the result is still in cache.
    step = length if bias is None else _share(length, COLUMN_ELEMENTS // max(1, features))
    for start in range(0, length, max(1, step)):
        block = result[..., start : start + step]
        np.matmul(weights, source[..., start : start + step], out=block)
        if bias is not None:
            block += bias


def _columns(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> None:
    channels, features = x.shape[1], w.shape[0]
    plan = layout(axes)
    taps = len(plan.taps)
    rows, *inner = outputs(axes)
    width = math.prod(inner)
    depth = channels * taps
    weights = w.reshape(group, features // group, depth // group)
    bias = None if b is None else b.reshape(group, features // group, 1)
    step = _share(rows, COLUMN_ELEMENTS // max(1, depth * width))
    for image, result in zip(x, out.reshape(x.shape[0], group, features // group, rows * width), strict=True):
        stored = by_phases(image, plan)
        for start in range(0, rows, step):
            count = min(step, rows - start)
            columns = scratch("columns", (channels, taps, count, *inner), x.dtype)
            for t, (phase, (first, *offset)) in enumerate(plan.taps):
                window = (slice(first + start, first + start + count), *map(_window, offset, inner))
                np.copyto(columns[:, t], stored[phase][(slice(None), *window)])
            block = result[..., start * width : (start + count) * width]
            np.matmul(weights, columns.reshape(group, depth // group, count * width), out=block)
            if bias is not None:
                block += bias


def _depthwise(x: Array, w: Array, b: Array | None, axes: Axes, out: Array) -> None:
    """One input channel a group: each output channel is a weighted sum of shifted images.

    Images are laid out flat, padding included, so that a shift is an offset and
    every operation runs over long contiguous rows; what is computed in the
    padding is left behind by the final copy.
    """
    channels, multiplier = x.shape[1], w.shape[0] // x.shape[1]
    plan = layout(axes)
    inner = outputs(axes)
    pitch = [math.prod(plan.sizes[i + 1 :]) for i in range(len(inner))]
    starts = [sum(map(int.__mul__, tap.offset, pitch)) for tap in plan.taps]
    length = inner[0] * pitch[0]
    span = sum((n - 1) * p for n, p in zip(inner, pitch, strict=True)) + 1
    weights = w.reshape(channels, multiplier, len(plan.taps), 1)
    bias = None if b is None else b.reshape(channels, multiplier, *(1,) * len(inner))
    step = max(1, DEPTHWISE_ELEMENTS // math.prod(plan.sizes))
    window = (slice(None), slice(None), *(slice(0, n) for n in inner[1:]))
    for image, result in zip(x, out.reshape(x.shape[0], channels, multiplier, *inner), strict=True):
        for start in range(0, channels, step):
            block = slice(start, start + step)
            stored = by_phases(image[block], plan)
            flat = stored.reshape(*stored.shape[:2], -1)
            total, term = scratch("depthwise", (2, flat.shape[1], length), x.dtype)
            for j in range(multiplier):
                for t, (tap, at) in enumerate(zip(plan.taps, starts, strict=True)):
                    source = flat[tap.phase, :, at : at + span]
                    target = (term if t else total)[:, :span]
                    np.multiply(source, weights[block, j, t], out=target)
                    if t:
                        total[:, :span] += target
                sums = total.reshape(-1, inner[0], *plan.sizes[1:])[window]
                if bias is None:
                    np.copyto(result[block, j], sums)
                else:
                    np.add(sums, bias[block, j], out=result[block, j])


def _share(total: int, most: int) -> int:
    """Size of equal parts of ``total``, each at most ``most`` (at least 1)."""
    parts = -(-total // max(1, most))
    return max(1, -(-total // max(1, parts)))


def _window(offset: int, count: int) -> slice:
    return slice(offset, offset + count)
