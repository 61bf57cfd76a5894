"""DeformConv: convolution whose taps are displaced by learned offsets (Dai et al. 2017; Zhu et al. 2018)."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.convolution import check_operands
from irc.runtime.kernels.float16 import narrowed
from irc.runtime.kernels.products import product
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.resize import add_pixels
from irc.runtime.kernels.support import Array, check_size, is_half
from irc.runtime.kernels.windows import Axes, outputs, resolver

if TYPE_CHECKING:
    pass


@computes("onnx::DeformConv", resolve=resolver)
def deform_conv(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    out: Array | None = None,
    *,
    resolve: Any,
    group: int = 1,
    offset_group: int = 1,
) -> Array:
    check_operands(x, w, b, group)
    axes = resolve(x.shape[2:], w.shape[2:])
    _check_offsets(x, offset, mask, offset_group, axes)
    wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
    columns = _sample(x.astype(wide), offset.astype(wide), None if mask is None else mask.astype(wide), axes)
    images, features, count = x.shape[0], w.shape[0], math.prod(outputs(axes))
    # (group, O / group, K) @ (N, group, K, positions), where K runs over channels and taps
    weights = w.astype(wide).reshape(group, features // group, math.prod(w.shape[1:]))
    columns = columns.reshape(images, group, weights.shape[2], count)
    shape = (images, features, *outputs(axes))
    result = np.empty(shape, wide) if out is None or is_half(x.dtype) else out
    product(weights, columns, result.reshape(images, group, features // group, count))
    if b is not None:
        result += b.astype(wide).reshape(-1, *(1,) * len(axes))
    return narrowed(result, x.dtype, out)


def _check_offsets(x: Array, offset: Array, mask: Array | None, offset_group: int, axes: Axes) -> None:
    taps, counts = math.prod(a.kernel for a in axes), outputs(axes)
    if offset_group < 1 or x.shape[1] % offset_group:
        raise Error("IRC421", f"offset_group {offset_group} does not divide the {x.shape[1]} channels")
    for name, given, each in (("offset", offset, len(axes)), ("mask", mask, 1)):
        expected = (x.shape[0], offset_group * taps * each, *counts)
        if given is not None and given.shape != expected:
            raise Error("IRC421", f"{name} has shape {list(given.shape)}, expected {list(expected)}")


def _sample(x: Array, offset: Array, mask: Array | None, axes: Axes) -> Array:
    """The input at every displaced tap, by multilinear interpolation: (N, C, taps, positions...).

    Outside the input everything is zero.
    """
    images, channels = x.shape[:2]
    rank, counts = len(axes), outputs(axes)
    taps = math.prod(a.kernel for a in axes)
    check_size((images, channels, taps, *counts), x.dtype)
    groups = offset.shape[1] // (taps * rank)
    offsets = offset.reshape(images, groups, taps, rank, *counts)
    places: list[Array] = []  # for each axis: (N, offset groups, taps, positions...)
    for i, a in enumerate(axes):
        tap = np.indices([b.kernel for b in axes])[i].reshape(taps, *(1,) * rank) * a.dilation
        at = (np.arange(a.out) * a.stride - a.begin).reshape(-1, *(1,) * (rank - 1 - i))
        places.append(offsets[:, :, :, i] + (tap + at).astype(x.dtype))
    floors = [np.floor(p) for p in places]
    pixels = np.ascontiguousarray(x).reshape(images * groups, channels // groups, math.prod(x.shape[2:]))
    total = np.zeros((images, groups, channels // groups, taps, *counts), x.dtype)
    points = (len(pixels), taps * math.prod(counts))
    sums = total.reshape(*pixels.shape[:2], points[1])
    for corner in itertools.product((0, 1), repeat=rank):
        weight = np.ones_like(places[0])
        index = np.zeros(places[0].shape, np.intp)
        for c, p, low, a in zip(corner, places, floors, axes, strict=True):
            at = low + c
            inside = (at >= 0) & (at < a.size)
            weight *= (1 - np.abs(p - at)) * inside
            index = index * a.size + np.where(inside, at, 0).astype(np.intp)
        add_pixels(sums, pixels, index.reshape(points), weight.reshape(points))
    if mask is not None:
        total *= mask.reshape(images, groups, 1, taps, *counts)
    return total
