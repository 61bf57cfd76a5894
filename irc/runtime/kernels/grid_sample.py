"""Tensors read at places that are data, by interpolation: GridSample, AffineGrid, DeformConv.

Jaderberg et al., "Spatial Transformer Networks" (2015); of convolutions whose taps are displaced by learned offsets,
Dai et al. (2017) and Zhu et al. (2018).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels.convolution import check_operands
from irc.runtime.kernels.numerics import narrowed, product
from irc.runtime.kernels.registry import computes
from irc.runtime.kernels.resize import add_pixels, mixing_dtype, narrow
from irc.runtime.kernels.support import Array, blank, check_size, counting, filled, ints, is_half
from irc.runtime.kernels.windows import Axes, outputs, resolver

Taps = list[tuple[Array, Array]]
"""Along one axis: the pixels that take part, and their weights; each [N, points]."""

_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # their names in version 16
_FAR = 1e9  # coordinates are cut off here, so that they fit integers


@computes("onnx::AffineGrid")
def affine_grid(theta: Array, size: Array, *, align_corners: bool = False) -> Array:
    """Of theta [N, axes, axes + 1], size (N, C, ...sizes) -> [N, ...sizes, axes], as `affine_points`.

    Where one pixel has its middle at both -1 and 1, it is taken to be at 1, as in ONNX Runtime.
    """
    wide = theta.astype(mixing_dtype(theta.dtype), copy=False)
    if size.size not in (4, 5):
        raise Error("IRC421", f"size has {size.size} elements; it must be N, C, H, W, or N, C, D, H, W")
    return narrow(affine_points(wide, ints(size), align_corners, 1.0), theta.dtype)


def affine_points(theta: Array, size: Sequence[int], corners: bool, alone: float) -> Array:
    """Where ``theta`` maps the middles of the pixels of an image to, the last axis' coordinate first.

    Args:
        theta: matrices [N, axes, axes + 1].
        size: of the image, (N, C, ...sizes).
        corners: whether -1 and 1 are the middles of the outermost pixels, not their outer sides.
        alone: where the middle of a single pixel is then.

    Returns:
        Coordinates [N, ...sizes, axes].
    """
    spatial = tuple(size)[2:]
    if not spatial or theta.shape != (size[0], len(spatial), len(spatial) + 1):
        raise Error("IRC421", f"theta of shape {list(theta.shape)} does not fit images of {list(size)}")
    check_size((size[0], *spatial, len(spatial) + 1), theta.dtype)
    lines: list[Array] = []
    for n in spatial:
        at: Array = (counting(n) * 2 - (n - 1)).astype(np.float64)
        single = np.full(n, alone if corners else 0.0)
        lines.append(at / (n - 1 if corners else n) if n > 1 else single)
    grids = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([*grids, np.ones(spatial)], -1).reshape(-1, len(spatial) + 1).astype(theta.dtype)
    return np.matmul(base, theta.swapaxes(1, 2)).reshape(size[0], *spatial, len(spatial))


def _modes(node: Node) -> tuple[str, str]:
    given: str = node.attributes.get("mode", "linear")
    mode, padding = _MODES.get(given, given), node.attributes.get("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise Error("IRC320", f"GridSample has no mode {given!r} with padding_mode {padding!r}")
    return mode, padding


@computes("onnx::GridSample", modes=_modes)
def grid_sample(x: Array, grid: Array, *, modes: tuple[str, str], align_corners: bool = False) -> Array:
    """X [N, C, ...sizes] at grid [N, ...points, axes], last axis's coordinate first: [N, C, ...points]."""
    return sample_grid(x, grid, *modes, align_corners)


def sample_grid(x: Array, grid: Array, mode: str, padding: str, corners: bool, as_torch: bool = False) -> Array:
    """``x`` [N, C, ...sizes] read at the coordinates in ``grid`` [N, ...points, axes].

    Args:
        x: what is read.
        grid: coordinates in [-1, 1], the last axis' first.
        mode: ``nearest``, ``linear`` or ``cubic``.
        padding: what lies outside: ``zeros``, ``border`` or ``reflection``.
        corners: whether -1 and 1 are the middles of the outermost pixels, not their outer sides.
        as_torch: whether the nearest pixel is sought after reflection, not before it as in ONNX, and what is read at
            coordinates that are not finite is not a number, where neither padding nor rounding replaces them.
    """
    axes = x.ndim - 2
    if axes < 1 or grid.ndim != x.ndim or grid.shape[-1] != axes or grid.shape[0] != x.shape[0]:
        raise Error("IRC421", f"a grid of shape {list(grid.shape)} does not fit an input of {list(x.shape)}")
    if 0 in x.shape[2:]:
        raise Error("IRC421", f"there is nothing to sample in the shape {list(x.shape)}")
    points = math.prod(grid.shape[1:-1])
    pixels = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    places = grid.reshape(x.shape[0], points, axes).astype(np.float64)
    along = [places[..., axes - 1 - i] for i in range(axes)]
    taps = [_taps(p, d, mode, padding, corners, as_torch) for p, d in zip(along, x.shape[2:], strict=True)]
    read = _choose if mode == "nearest" else _mix
    return read(pixels, x.shape[2:], taps, points).reshape(*x.shape[:2], *grid.shape[1:-1])


def _choose(pixels: Array, sizes: tuple[int, ...], taps: Sequence[Taps], points: int) -> Array:
    """The one pixel of each point, of whatever type; 0, or the empty string, outside."""
    index = np.zeros((len(pixels), points), np.int64)
    is_inside = np.ones((len(pixels), points), np.bool_)
    for size, ((place, factor),) in zip(sizes, taps, strict=True):
        index = index * size + place
        is_inside &= factor != 0
    out = np.empty(check_size((*pixels.shape[:2], points), pixels.dtype), pixels.dtype)
    for image, at, read in zip(pixels, index, out, strict=True):
        image.take(at, 1, read, "clip")
    np.copyto(out, blank(pixels.dtype), where=~is_inside[:, None])
    return out


def _mix(pixels: Array, sizes: tuple[int, ...], taps: Sequence[Taps], points: int) -> Array:
    """The weighted sums of pixels, made in float32 at least."""
    dtype = mixing_dtype(pixels.dtype)
    wide = np.ascontiguousarray(pixels, dtype)  # else taking would make it so, each time
    out = np.zeros(check_size((*pixels.shape[:2], points), dtype), dtype)
    for combination in itertools.product(*taps):
        index = np.zeros((len(pixels), points), np.int64)
        weight = np.ones((len(pixels), points))
        for size, (place, factor) in zip(sizes, combination, strict=True):
            index = index * size + place
            weight *= factor
        add_pixels(out, wide, index, weight)
    return narrow(out, pixels.dtype)


def _taps(place: Array, size: int, mode: str, padding: str, corners: bool, as_torch: bool) -> Taps:
    """Coordinates in [-1, 1] as pixels and weights along an axis of ``size`` pixels."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    x = low + (place + 1) / 2 * (high - low)
    finite = np.isfinite(x)
    x = np.clip(np.nan_to_num(x, nan=-_FAR), -_FAR, _FAR)
    if as_torch and padding == "reflection":
        x = np.where(finite, x, 0)
    elif mode == "nearest" and not as_torch:
        x = np.rint(x)
    if padding == "border" and mode != "cubic":
        x = np.clip(x, 0, size - 1)
    elif padding == "reflection":
        x = _reflect(x, low, high)
    if mode == "nearest":
        return [_pixel(np.rint(x), np.ones_like(x), size, padding, low, high)]
    first = np.floor(x)
    part = x - first
    if as_torch and (mode == "cubic" or padding == "zeros"):
        part = np.where(finite, part, np.nan)
    weights = [1 - part, part] if mode == "linear" else _cubic(part)
    start = first - (0 if mode == "linear" else 1)
    return [_pixel(start + i, w, size, padding, low, high) for i, w in enumerate(weights)]


def _pixel(place: Array, weight: Array, size: int, padding: str, low: float, high: float) -> tuple[Array, Array]:
    """Existing pixels in place of those that do not exist; with ``zeros``, weight 0 for these."""
    if padding == "zeros":
        weight = weight * ((place >= 0) & (place < size))
    elif padding == "reflection":
        place = np.trunc(_reflect(place, low, high))
    return np.clip(place, 0, size - 1).astype(np.int64), weight


def _reflect(x: Array, low: float, high: float) -> Array:
    """``x`` folded into ``[low, high]`` by mirrors at both ends."""
    span = high - low
    if span == 0:
        return np.full_like(x, low)
    distance = np.mod(x - low, 2 * span)
    return np.where((x < low) | (x > high), low + np.minimum(distance, 2 * span - distance), x)


def _cubic(t: Array) -> list[Array]:
    """Keys' cubic convolution with a = -0.75, for the pixels at distances 1 + t, t, 1 - t, 2 - t."""
    a = -0.75

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(1 + t), near(t), near(1 - t), far(2 - t)]


@computes("onnx::DeformConv", resolve=resolver)
def deform_conv(
    x: Array, w: Array, offset: Array, *more: Any, out: Any = None, resolve: Any, group: int = 1, offset_group: int = 1
) -> Array:
    b, mask = filled(more, None, None)
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
