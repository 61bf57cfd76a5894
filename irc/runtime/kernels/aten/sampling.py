"""Images resized, sampled at given places, padded.

Coordinates follow aten/src/ATen/native/UpSample.h: they are computed in
float32 for nearest, which decides what the nearest element is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.convolution import adaptive_average, spread
from irc.runtime.kernels.aten.element_types import element_of, is_integral, wide
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import part
from irc.runtime.kernels.grid_sample import affine_points, sample_grid
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.resize import Taps, cubic_filter, gather_along, weigh, weigh_along
from irc.runtime.kernels.shape import padded
from irc.runtime.kernels.support import Array, c_order, check_size, counting, filled
from irc.runtime.values import is_sequence

Scales = Sequence[float | None]
"""By axis: the factor that was asked for; None where only the size was."""

Places = Callable[[int, int, float | None, bool], Taps]
"""``(size, out, scale, corners)``: which inputs weigh how much."""


# -- coordinates ---------------------------------------------------------------


def _step(size: int, out: int, scale: float | None) -> float:
    """How far apart neighbouring outputs lie in the input."""
    return 1 / scale if scale is not None and scale > 0 else size / out


def _nearest(size: int, out: int, scale: float | None) -> Array:
    places: Array = counting(out)
    if out == size:
        return places
    if out == 2 * size:
        return places // 2
    found = np.floor(places.astype(np.float32) * np.float32(_step(size, out, scale)))
    return np.minimum(found.astype(np.int64), size - 1)


def _nearest_exact(size: int, out: int, scale: float | None) -> Array:
    """The element that the middle of an output lies in."""
    middles = counting(out).astype(np.float32) + np.float32(0.5)
    found = np.floor(middles * np.float32(_step(size, out, scale)))
    return np.minimum(found.astype(np.int64), size - 1)


def _centres(size: int, out: int, scale: float | None, corners: bool) -> Array:
    places = counting(out).astype(np.float64)
    if corners:
        return places * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (places + 0.5) * _step(size, out, scale) - 0.5


def _same(size: int) -> Taps:
    """Each input for its own output, which axes that keep their size have whatever the factor says."""
    return counting(size)[None], np.ones((1, size))


def _linear(size: int, out: int, scale: float | None, corners: bool) -> Taps:
    if out == size:
        return _same(size)
    at = np.maximum(_centres(size, out, scale, corners), 0)
    low = np.minimum(np.floor(at).astype(np.int64), size - 1)
    rest = np.clip(at - low, 0, 1)
    return np.stack([low, np.minimum(low + 1, size - 1)]), np.stack([1 - rest, rest])


def _cubic(size: int, out: int, scale: float | None, corners: bool) -> Taps:
    at = _centres(size, out, scale, corners)
    low = np.floor(at)
    steps = np.arange(-1, 3)[:, None]
    weights = cubic_filter(steps - (at - low), -0.75)
    return np.clip(low.astype(np.int64) + steps, 0, size - 1), weights


_SMOOTH: dict[str, tuple[Callable[[Array], Array], int]] = {
    "bilinear": (lambda x: np.maximum(1 - np.abs(x), 0), 1),
    "bicubic": (lambda x: cubic_filter(x, -0.5), 2),
    "lanczos": (lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0), 3),
}
"""By mode: a filter, and how far it reaches."""


def _antialiased(mode: str, size: int, out: int, scale: float | None, corners: bool) -> Taps:
    """Filters stretched over all inputs that become one output, as Pillow has it."""
    function, reach = _SMOOTH[mode]
    if out == size:
        return _same(size)
    step = ((size - 1) / (out - 1) if out > 1 else 0.0) if corners else _step(size, out, scale)
    stretch = max(step, 1.0)
    centres = (counting(out) + 0.5) * step
    first = np.maximum((centres - reach * stretch + 0.5).astype(np.int64), 0)
    last = np.minimum((centres + reach * stretch + 0.5).astype(np.int64), size)
    most = int((last - first).max(initial=1))
    check_size((most, out), np.dtype(np.float64))
    indices = first + counting(most)[:, None]
    weights = np.where(indices < last, function((indices - centres + 0.5) / stretch), 0)
    total = weights.sum(0)
    return np.minimum(indices, size - 1), weights / np.where(total == 0, 1, total)


# -- resizing ------------------------------------------------------------------


def _target(x: Array, rank: int, size: Any, scales: Any) -> tuple[tuple[int, ...], Scales]:
    """The sizes of the result, and the factors."""
    if x.ndim != rank + 2:
        raise Error("IRC421", f"expected {rank + 2} dimensions, the shape is {list(x.shape)}")
    extents = x.shape[2:]
    factors: Scales = (None,) * rank if scales is None else tuple(scales)
    if size is None:
        if len(factors) != rank or None in factors:
            raise Error("IRC421", "either a size or a factor for every dimension must be given")
        sizes = tuple(int(np.floor(n * (f or 0))) for n, f in zip(extents, factors, strict=True))
    else:
        sizes = spread(size, rank, "output_size")
    check_size((*x.shape[:2], *sizes), x.dtype)
    if min(sizes, default=1) < 1 or 0 in x.shape[1:]:
        raise Error("IRC424", f"an image of shape {list(x.shape)} cannot be resized to {list(sizes)}")
    return sizes, factors


Nearest = Callable[[int, int, float | None], Array]
"""``(size, out, scale)``: for each output, which input."""


def _resized_nearest(
    x: Array, rank: int, size: Any, scales: Any, nearest: Nearest = _nearest, out: Array | None = None
) -> Array:
    sizes, factors = _target(x, rank, size, scales)
    along = zip(x.shape[2:], sizes, factors, strict=True)
    found = gather_along(x, {i: nearest(*side) for i, side in enumerate(along, 2)}, out)
    return layout.in_format(found, layout.format_of(x))


def _resized(x: Array, rank: int, size: Any, scales: Any, places: Places, corners: bool) -> Array:
    sizes, factors = _target(x, rank, size, scales)
    if x.dtype != np.uint8 or rank != 2:
        if is_integral(x.dtype):
            raise Error("IRC423", f"elements of {x.dtype.name} cannot be interpolated, only floats and images of uint8")
        sides = zip(x.shape[2:], sizes, factors, strict=True)
        taps = {i: places(*side, corners) for i, side in enumerate(sides, 2)}
        return layout.in_format(weigh(x, taps, wide(x.dtype)), layout.format_of(x))
    # As torch and Pillow do: rounded after each axis, the last one first, with weights of 16 bits.
    found = x.astype(np.float64)  # in which sums of such products are exact
    for i in (3, 2):
        if sizes[i - 2] != x.shape[i]:
            indices, weights = places(x.shape[i], sizes[i - 2], factors[i - 2], corners)
            one = _fixed_one(float(weights.max()))
            fixed = np.trunc(weights * one + np.copysign(0.5, weights))
            found = np.clip(np.floor(weigh_along(found, i, indices, fixed) / one + 0.5), 0, 255)
    return layout.in_format(found.astype(np.uint8), layout.format_of(x))


def _upsample(rank: int, places: Places, x: Array, size: Any, corners: bool, *scales: Any) -> Array:
    return _resized(x, rank, size, _scales(size, scales), places, corners)


def _upsample_nearest(rank: int, nearest: Nearest) -> Kernel:
    def upsample(x: Array, size: Any, *scales: Any, out: Array | None = None) -> Array:
        return _resized_nearest(x, rank, size, _scales(size, scales), nearest, out)

    return upsample


def _fixed_one(largest: float) -> float:
    """What 1 is in fixed-point numbers of 16 bits, as precise as the largest weight leaves room for."""
    one = 1.0
    while one < 2**22 and int(0.5 + largest * 2 * one) < 2**15:
        one *= 2
    return one


def _scales(size: Any, arguments: tuple[Any, ...]) -> Any:
    """One list of factors, in place of sizes, or each factor by itself."""
    if len(arguments) == 1 and is_sequence(arguments[0]):
        if size is not None:
            raise Error("IRC424", "exactly one of the sizes and the factors must be given")
        return arguments[0]
    return None if all(a is None for a in arguments) else arguments


_INTERPOLATIONS: dict[tuple[str, int], Places] = {
    ("linear", 1): _linear,
    ("bilinear", 2): _linear,
    ("trilinear", 3): _linear,
    ("bicubic", 2): _cubic,
}
"""By mode and number of dimensions."""


@aten("__interpolate")
def interpolate(x: Array, *options: Any) -> Array:
    """``torch.nn.functional.interpolate``; factors count for the size only unless not to be recomputed.

    Options: size, scale_factor, mode, align_corners, recompute_scale_factor, antialias.
    """
    size, scale_factor, mode, corners, recompute, antialias = filled(options, None, None, "nearest", None, None, False)
    rank = x.ndim - 2
    if antialias:
        raise Error("IRC424", "interpolation with antialiasing is not supported")
    scales = None if scale_factor is None else spread(scale_factor, rank, "scale_factor")
    if (size is None) == (scales is None):
        raise Error("IRC424", "exactly one of size and scale_factor must be given")
    if corners is not None and mode in ("nearest", "area"):
        raise Error("IRC424", f"align_corners means nothing to interpolation {mode!r}: leave it out")
    if recompute is not False or mode == "area":
        size, scales = _target(x, rank, size, scales)[0], None
    if mode == "nearest":
        return _resized_nearest(x, rank, size, scales)
    if mode == "area":
        return adaptive_average(x, rank, size)
    if (mode, rank) not in _INTERPOLATIONS:
        raise Error("IRC424", f"there is no interpolation {mode!r} in {rank} dimensions")
    return _resized(x, rank, size, scales, _INTERPOLATIONS[mode, rank], bool(corners))


# -- sampling ------------------------------------------------------------------


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """Modes by torch's numbers: bilinear, nearest, bicubic; zeros, border, reflection."""
    if not 0 <= interpolation_mode <= 2 or not 0 <= padding_mode <= 2:
        raise Error("IRC424", f"grid_sampler has no mode {interpolation_mode} with padding {padding_mode}")
    if interpolation_mode == 2 and x.ndim == 5:
        raise Error("IRC424", "cubic interpolation is of images, not of volumes")
    mode, padding = ("linear", "nearest", "cubic")[interpolation_mode], ("zeros", "border", "reflection")[padding_mode]
    return sample_grid(x, grid, mode, padding, align_corners, as_torch=True)


def affine_grid_generator(theta: Array, size: Sequence[int], align_corners: bool) -> Array:
    """Coordinates in [-1, 1] of all pixels of images of ``size`` (N, C, spatial...), by ``theta``."""
    return affine_points(theta, size, align_corners, 0.0)


# -- padding -------------------------------------------------------------------

_POSITIONS: dict[str, Callable[[Array, int], Array]] = {
    "reflect": lambda places, n: n - 1 - np.abs(n - 1 - np.abs(places)),
    "replicate": lambda places, n: np.clip(places, 0, n - 1),
}
"""For places before, on and behind an axis of size ``n``, the index of the element that stands there."""

_AS_ONNX = {"reflect": "reflect", "replicate": "edge"}
"""What ONNX calls them."""

_MODES = ("constant", "circular", *_POSITIONS)


def pad(x: Array, widths: Sequence[int], mode: str = "constant", value: Any = None) -> Array:
    """Pad by ``widths``: begin and end of the last dimension, the one before, ...; negative ones cut.

    What ``reflect`` and ``replicate`` add is taken from the whole of ``x``, also from what a negative width cuts off.
    """
    if len(widths) % 2 or len(widths) > 2 * x.ndim or mode not in _MODES:
        raise Error("IRC424", f"a tensor of {x.ndim} dimensions cannot be padded by {list(widths)}, mode {mode!r}")
    sides = [(0, 0)] * x.ndim
    for i in range(len(widths) // 2):
        sides[x.ndim - 1 - i] = (widths[2 * i], widths[2 * i + 1])
    shape = [n + a + b for n, (a, b) in zip(x.shape, sides, strict=True)]
    check_size(shape, x.dtype)
    if mode in _POSITIONS:  # torch takes images without elements that have one size above 0
        is_beyond = bool(widths) and max(shape[x.ndim - len(widths) // 2 :]) < 1
    else:
        is_beyond = any(n + min(a, b) < 0 for n, (a, b) in zip(x.shape, sides))
    if is_beyond:
        raise Error("IRC424", f"padding {list(widths)} cuts off more than the shape {list(x.shape)} has, mode {mode!r}")
    for axis, (a, b) in enumerate(sides):
        n = x.shape[axis]
        most = {"reflect": n - 1, "circular": n}.get(mode)
        if (most is not None and max(a, b) > most) or (mode != "constant" and max(a, b) > 0 and n == 0):
            raise Error("IRC424", f"padding {(a, b)} is too wide for dimension {axis} of size {n}, mode {mode!r}")
    if mode in _POSITIONS and x.size and min(map(min, sides), default=0) >= 0:
        found: Array = padded(x, sides, _AS_ONNX[mode])
        return layout.in_format(found, layout.format_of(x))
    if mode in _POSITIONS:
        found = x if any(map(any, sides)) else x.copy()
        for axis, (a, b) in enumerate(sides):
            if a or b:
                found = np.take(found, _POSITIONS[mode](counting(shape[axis]) - a, x.shape[axis]), axis)
        return layout.in_format(c_order(found), layout.format_of(x))
    cut = x
    for axis, (a, b) in enumerate(sides):
        if a < 0 or b < 0:
            cut = part(cut, axis, max(-a, 0), cut.shape[axis] - max(-b, 0))
    grown = [(max(a, 0), max(b, 0)) for a, b in sides]
    if mode == "constant":
        if not any(map(any, grown)):
            return layout.copy(cut)
        filling: Array = element_of(0 if value is None else value, x.dtype)
        found = padded(cut, grown, mode, filling)
    elif any(n == 0 and max(ends) > 0 for n, ends in zip(cut.shape, grown)):
        raise Error("IRC424", f"padding {list(widths)} leaves nothing of {list(x.shape)} to repeat, mode {mode!r}")
    else:
        return c_order(np.pad(cut, grown, mode="wrap"))
    return layout.in_format(c_order(found), layout.format_of(x))


def _padding(mode: str, rank: int, x: Array, widths: Sequence[int]) -> Array:
    """Of the last ``rank`` dimensions, all of them."""
    if len(widths) != 2 * rank:
        raise Error("IRC424", f"{rank} dimensions are padded by {2 * rank} widths, not by {list(widths)}")
    if x.ndim not in (rank + 1, rank + 2):
        raise Error("IRC421", f"expected {rank + 1} or {rank + 2} dimensions, the shape is {list(x.shape)}")
    return pad(x, widths, mode)


def constant_pad_nd(x: Array, widths: Sequence[int], value: Any = 0) -> Array:
    return pad(x, widths, "constant", value)


table(
    **{f"upsample_nearest{n}d": _upsample_nearest(n, _nearest) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _upsample_nearest(n, _nearest_exact) for n in (1, 2, 3)},
    **{f"upsample_{mode}{n}d": partial(_upsample, n, places) for (mode, n), places in _INTERPOLATIONS.items()},
    **{f"_upsample_{mode}2d_aa": partial(_upsample, 2, partial(_antialiased, mode)) for mode in _SMOOTH},
    **{f"reflection_pad{n}d": partial(_padding, "reflect", n) for n in (1, 2, 3)},
    **{f"replication_pad{n}d": partial(_padding, "replicate", n) for n in (1, 2, 3)},
)
