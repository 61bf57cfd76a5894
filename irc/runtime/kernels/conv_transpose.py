"""ConvTranspose: matrix multiplication into columns, which are added into the result tap by tap."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_bytes, check_work, pace
from irc.runtime.kernels.convolution import COLUMN_ELEMENTS, TAP_BYTES, check_operands, share
from irc.runtime.kernels.halves import narrowed, widened
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import Array, check_size, is_half
from irc.runtime.kernels.windows import Axes, Axis, Sizes, Window, outputs, split_padding

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::ConvTranspose")
def conv_transpose(node: Node) -> Kernel:
    window = Window.of(node)
    group = int(node.attributes.get("group", 1))
    adjust = tuple(node.attributes.get("output_padding") or ())
    wanted = tuple(node.attributes.get("output_shape") or ())

    def run(x: Array, w: Array, b: Array | None = None) -> Array:
        check_operands(x, w, b, group, transposed=True)
        return transpose_convolve(x, w, b, group, transposed_axes(window, x.shape[2:], w.shape[2:], adjust, wanted))

    return run


def transposed_axes(window: Window, sizes: Sizes, kernel: Sizes, adjust: Sizes, wanted: Sizes) -> Axes:
    """The axes of the transposed convolution: of each, ``out`` is the larger side, the result.

    ``wanted`` is the attribute ``output_shape``: of the spatial axes, or of all.
    """
    rank = len(sizes)
    shape, strides, dilations, pads = window.parameters(rank, kernel)
    adjust = adjust or (0,) * rank
    if len(adjust) != rank or min(adjust) < 0:
        raise Error("IRC421", f"output_padding is {list(adjust)}: it needs {rank} entries, none negative")
    if wanted and len(wanted) not in (rank, rank + 2):
        raise Error("IRC421", f"output_shape is {list(wanted)}: the input has {rank} spatial axes")
    targets: tuple[int | None, ...] = wanted[-rank:] if wanted else (None,) * rank
    axes: list[Axis] = []
    for i, (size, k, s, d, target) in enumerate(zip(sizes, shape, strides, dilations, targets, strict=True)):
        full = (size - 1) * s + (k - 1) * d + 1 + adjust[i]
        begin, end = pads[i], pads[rank + i]
        if target is None and window.auto_pad.startswith("SAME"):
            target = size * s
        if target is not None:
            begin, end = split_padding(max(0, full - target), window.auto_pad)
        out = full - begin - end if target is None else target
        axes.append(Axis(size, out, k, s, d, begin, end))
    return tuple(axes)


_TILE = 8
"""Positions of a stride, and taps of a kernel, from which on results are added tile by tile."""


def transpose_convolve(x: Array, w: Array, b: Array | None, group: int, axes: Axes) -> Array:
    """The transpose of the convolution with ``w`` (C, O / group, kernel...) on ``x`` (N, C, spatial...), plus ``b``.

    float16 and smaller floats are computed in float32.
    """
    if is_half(x.dtype):
        bias = None if b is None else widened(b)
        return narrowed(transpose_convolve(widened(x), widened(w), bias, group, axes), x.dtype)
    images, channels, features = x.shape[0], x.shape[1], w.shape[1] * group
    result = np.zeros(check_size((images, features, *outputs(axes)), x.dtype), x.dtype)
    check_work(x.size * math.prod(w.shape[1:]))
    if b is not None:
        result += b.reshape(-1, *(1,) * len(axes))
    if not x.size or not result.size:
        return result  # sums of nothing
    counts = _tiles(axes)
    if counts is not None:
        for image, sums in zip(x, result, strict=True):
            _add_tiles(image, w, group, axes, counts, sums)
        return result
    check_bytes(TAP_BYTES * math.prod(a.kernel for a in axes))
    taps = list(itertools.product(*(range(a.kernel) for a in axes)))
    # (group, O / group * taps, C / group): each block of columns is one batched product
    weights = w.reshape(group, channels // group, -1).transpose(0, 2, 1)
    rows, width = axes[0].size, math.prod(x.shape[3:])
    step = share(rows, COLUMN_ELEMENTS // max(1, features * len(taps) * width))
    for image, sums in zip(x, result, strict=True):
        for start in range(0, rows, step):
            pace()
            part = image[:, start : start + step]
            columns = scratch("columns", (features, len(taps), *part.shape[1:]), x.dtype)
            product = np.multiply if channels == group else np.matmul  # of one row with one column
            product(
                weights,
                part.reshape(group, channels // group, -1),
                out=columns.reshape(*weights.shape[:2], -1),
            )
            # The rows of this block, as an axis of its own: it begins `start` strides further on.
            block = axes[0]._replace(size=part.shape[1], begin=axes[0].begin - start * axes[0].stride)
            for t, tap in enumerate(taps):
                pairs = [a.writes(i) for i, a in zip(tap, (block, *axes[1:]), strict=True)]
                sums[(slice(None), *(to for _, to in pairs))] += columns[(slice(None), t, *(of for of, _ in pairs))]
    return result


def _tiles(axes: Axes) -> Sizes | None:
    """How many tiles of the size of the strides the results are, padding included, if it pays to add tile by tile."""
    if any(a.dilation > 1 for a in axes) or min(axes[-1].kernel, axes[-1].stride) < _TILE:
        return None
    counts = tuple([max(a.size - 1 + -(-a.kernel // a.stride), -(-(a.begin + a.out) // a.stride)) for a in axes])
    padded = math.prod(n * a.stride for n, a in zip(counts, axes, strict=True))
    return counts if padded <= 2 * math.prod(outputs(axes)) else None


def _add_tiles(image: Array, w: Array, group: int, axes: Axes, counts: Sizes, sums: Array) -> None:
    """Add the transposed convolution of one ``image`` (C, spatial...) to ``sums`` (O, out...).

    What an input adds to is cut into tiles, so that whole rows of taps are added at once.
    """
    rank, features, channels = len(axes), len(sums), len(image)
    across = [-(-a.kernel // a.stride) for a in axes]
    sizes = [n * a.stride for n, a in zip(counts, axes, strict=True)]
    is_whole = sizes == list(sums.shape[1:]) and not any(a.begin for a in axes)
    whole = sums if is_whole else scratch("whole", (features, *sizes), sums.dtype)
    if not is_whole:
        whole.fill(0)
    apart = [n for a, count in zip(axes, counts, strict=True) for n in (count, a.stride)]
    tiles = whole.reshape(group, features // group, *apart)
    weights = w.reshape(group, channels // group, -1)
    order = (0, rank + 1, *(i for a in range(rank) for i in (1 + a, rank + 2 + a)))
    step = share(axes[0].size, COLUMN_ELEMENTS // max(1, features * math.prod((*w.shape[2:], *image.shape[2:]))))
    for start in range(0, axes[0].size, step):
        pace()
        part = image[:, start : start + step]
        product = np.matmul(part.reshape(group, channels // group, -1).swapaxes(1, 2), weights)
        columns = product.reshape(group, *part.shape[1:], features // group, *w.shape[2:]).transpose(order)
        for tile in itertools.product(*map(range, across)):
            source: list[slice] = [slice(None)] * 2
            target: list[slice] = [slice(None)] * 2
            for n, a, number, first in zip(tile, axes, part.shape[1:], (start, *[0] * (rank - 1)), strict=True):
                taps = slice(n * a.stride, min((n + 1) * a.stride, a.kernel))
                source += [slice(None), taps]
                target += [slice(first + n, first + n + number), slice(taps.stop - taps.start)]
            tiles[tuple(target)] += columns[tuple(source)]
    if not is_whole:
        sums += whole[(slice(None), *(slice(a.begin, a.begin + a.out) for a in axes))]
