"""Resize and Upsample in all versions: resampling of one axis after the other.

Every mode is separable. Along one axis, each output is a weighted sum of a few
inputs, its *taps*: one for nearest, two for linear, four for cubic, more with
antialiasing. Where sizes are given, coordinates are exact fractions, so that no
rounding decides which element is the nearest. Where scales are given, these are
rounded already: coordinates are computed in float32 as ONNX Runtime does, for
which ``3 / 0.6`` reaches 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from irc.errors import Error
from irc.ir import MAX_RANK, Node
from irc.runtime.kernels.registry import always, attribute, computes, one_of
from irc.runtime.kernels.support import Array, axes_in, check_size, filled, is_half, placed, scratch, vector

F = np.float32
ZERO, ONE = F(0), F(1)

Taps = tuple[Array, Array]
"""For each tap and output, which input, and its weight: both (taps, out)."""

T = TypeVar("T")


class Side(NamedTuple):
    """One axis: its sizes before and after, the factor between them, and the region of interest."""

    size: int
    out: int
    scale: np.float32 | Fraction
    """exact (`Fraction`) where sizes are given"""
    length: np.float32 | int
    """the size after resizing that `align_corners` counts with, which may be fractional"""
    start: np.float32 = ZERO
    end: np.float32 = ONE

    @property
    def half(self) -> Any:
        """1/2, of the type of the scale."""
        return Fraction(1, 2) if isinstance(self.scale, Fraction) else F(0.5)


def _half_pixel(x: Any, s: Side) -> Any:
    return (x + s.half) / s.scale - s.half


def _half_pixel_symmetric(x: Any, s: Side) -> Any:
    # `out` is rounded to whole elements: what it differs by is shared by both ends
    adjustment = s.out / (s.scale * s.size)
    # In this order, as by ONNX Runtime: what should be whole is rounded to what is, for nearest_mode floor and ceil.
    return s.size * s.half * (1 - adjustment) + (x + s.half) / s.scale - s.half


def _tf_crop_and_resize(x: Any, s: Side) -> Any:
    last = F(s.size - 1)
    if s.out > 1:
        return s.start * last + x * (s.end - s.start) * last / F(s.out - 1)
    return x * 0 + s.half * (s.start + s.end) * last


COORDINATES: dict[str, Callable[[Any, Side], Any]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda x, s: _half_pixel(x, s) if s.out > 1 else x * 0,
    "asymmetric": lambda x, s: x / s.scale,
    "tf_half_pixel_for_nn": lambda x, s: (x + s.half) / s.scale,
    "align_corners": lambda x, s: x * (s.size - 1) / (s.length - 1) if s.out > 1 else x * 0,
    "tf_crop_and_resize": _tf_crop_and_resize,
}
"""For each mode, the coordinate in the input of output ``x``, of the type of the scale: linear in ``x``."""


class Places(NamedTuple):
    """The coordinate in the input of each output: ``numerators / denominator``.

    Integers divided by an integer are exact. Other coordinates are float32, divided by 1.
    """

    numerators: Array
    denominator: int = 1

    @property
    def is_exact(self) -> bool:
        """Whether no rounding took part."""
        return self.numerators.dtype.kind != "f"

    def moved_by_half(self, sign: int) -> Places:
        """The coordinates plus or minus 1/2; what is rounded is moved by a little more (`TIE`)."""
        if self.is_exact:
            return Places(2 * self.numerators + sign * self.denominator, 2 * self.denominator)
        return Places(self.numerators.astype(np.float64) + sign * (0.5 + TIE))


TIE = 1e-6
"""Rounded coordinates so near to halfway count as halfway: 7 / 2 must be, however 1 / (2 / 7) is rounded.

Found by comparing with ONNX Runtime over all pairs of sizes up to 44.
"""


def _floor(at: Places, s: Side) -> Array:
    return at.numerators // at.denominator


def _ceil(at: Places, s: Side) -> Array:
    return -(-at.numerators // at.denominator)


NEAREST: dict[str, Callable[[Places, Side], Array]] = {
    "round_prefer_floor": lambda at, s: _ceil(at.moved_by_half(-1), s),
    "round_prefer_ceil": lambda at, s: _floor(at.moved_by_half(1), s),
    "floor": _floor,
    "ceil": _ceil,
    "simple": lambda at, s: _ceil(at, s) if s.scale < 1 else _floor(at, s),
}
"""``simple`` is what Upsample and Resize before opset 11 leave open; as ONNX Runtime does it."""


def cubic_filter(x: Array, a: float) -> Array:
    """Keys, "Cubic convolution interpolation for digital image processing" (1981), equation (4)."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


FILTERS: dict[str, tuple[Callable[[Array, float], Array], int]] = {
    "linear": (lambda x, a: np.maximum(0, 1 - np.abs(x)), 1),
    "cubic": (cubic_filter, 2),
}
"""For each mode with weights: the filter and how far it reaches."""


class Resampler(NamedTuple):
    """How to resample: the attributes of Resize."""

    mode: str = "nearest"
    coordinates: str = "asymmetric"
    nearest: str = "simple"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False

    @property
    def crops(self) -> bool:
        """Whether the region of interest counts, and what lies outside the input gets the extrapolation value."""
        return self.coordinates == "tf_crop_and_resize"

    def resize(self, x: Array, sides: Sequence[Side], out: Array | None = None) -> Array:
        """``x`` with its axes resampled, in ``out`` if given: of the result's shape, in C order."""
        shape = check_size([s.out for s in sides], x.dtype)
        if 0 in shape:
            return np.empty(shape, x.dtype) if out is None else out
        if 0 in x.shape:
            raise Error("IRC421", f"an input of shape {list(x.shape)} has no elements to resize to {list(shape)}")
        # An axis that keeps its size stays, by tf_half_pixel_for_nn too, which would move channels by half a position.
        changed = [i for i, s in enumerate(sides) if self.crops or s.out != s.size or s.scale != 1]
        if self.mode == "nearest":
            result = gather_along(x, {i: _nearest(self, sides[i]) for i in changed}, out)
        else:
            result = weigh(x, {i: _taps(self, sides[i]) for i in changed}, mixing_dtype(x.dtype), out)
        if self.crops:
            beyond = narrow(np.array(self.extrapolation), x.dtype)
            for i in changed:
                at = _places(self, sides[i]).numerators
                outside = (at < 0) | (at > sides[i].size - 1)
                result[(*(slice(None),) * i, outside)] = beyond
        return result


Finder = Callable[[Resampler, Side], T]


def _remembered(find: Finder[T]) -> Finder[T]:
    """``find`` with cached results for short sides: a model needs few, and finding them is slow."""
    kept = lru_cache(maxsize=64)(find)

    def found(how: Resampler, side: Side) -> T:
        return (kept if max(side.size, side.out) <= _SHORT else find)(how, side)

    return found


_SHORT = 1 << 12
"""The longest side for which it is."""


def _places(how: Resampler, side: Side) -> Places:
    """For each output, its coordinate in the input."""
    coordinate = COORDINATES[how.coordinates]
    if not isinstance(side.scale, Fraction):
        return Places(coordinate(np.arange(side.out, dtype=F), side))
    first: Fraction = coordinate(Fraction(0), side)
    step: Fraction = coordinate(Fraction(1), side) - first
    denominator = math.lcm(first.denominator, step.denominator)
    start, stride = int(first * denominator), int(step * denominator)
    fits = 4 * (abs(start) + side.out * abs(stride) + denominator) < 1 << 63
    return Places(start + stride * np.arange(side.out, dtype=np.int64 if fits else object), denominator)


@_remembered
def _nearest(how: Resampler, side: Side) -> Array:
    """For each output, the index of the nearest input."""
    return np.clip(NEAREST[how.nearest](_places(how, side), side), 0, side.size - 1).astype(np.intp)


@_remembered
def _taps(how: Resampler, side: Side) -> Taps:
    """Indices and weights of the inputs of each output: both (taps, out)."""
    function, reach = FILTERS[how.mode]
    # Antialiasing stretches the filter, so that it covers all that becomes one output.
    shrink = min(1.0, float(side.scale)) if how.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    check_size((2 - 2 * first, side.out), np.dtype(np.float64))
    at = _places(how, side)
    low = _floor(at, side)
    beyond: Array = (at.numerators - low * at.denominator).astype(np.float64) / at.denominator
    steps = np.arange(first, 2 - first)[:, None]
    weights = function((steps - beyond) * shrink, how.cubic_a)
    indices = steps + low.astype(np.int64)
    if how.exclude_outside:
        weights = np.where((indices >= 0) & (indices < side.size), weights, 0)
    total = weights.sum(axis=0)
    return np.clip(indices, 0, side.size - 1), weights / np.where(total == 0, 1, total)


def gather_along(x: Array, indices: dict[int, Array], out: Array | None = None) -> Array:
    """``x`` with only the given indices along each axis, in ``out`` if given: of that shape, in C order."""
    factors = [_repeats(indices[i], n) if i in indices else 1 for i, n in enumerate(x.shape)]
    if x.ndim and 2 * x.ndim <= MAX_RANK and all(factors):  # every element so many times in a row: broadcasting copies
        *outer, last = factors
        result = np.empty([n * f for n, f in zip(x.shape, factors, strict=True)], x.dtype) if out is None else out
        pairs = [size for pair in zip(x.shape, outer, strict=False) for size in pair]
        target = result.reshape(*pairs, x.shape[-1], last)
        source = x.reshape(*(size for n in x.shape[:-1] for size in (n, 1)), x.shape[-1])
        for i in range(last):  # one at a time: NumPy is slow where the innermost axis is short
            target[..., i] = source
        return result
    if not indices:
        return x.copy() if out is None else placed(x, out)
    *others, last = sorted(indices, key=lambda i: len(indices[i]) / x.shape[i])
    for i in others:
        x = np.take(x, indices[i], axis=i)
    if out is None:
        return np.asarray(np.take(x, indices[last], axis=last), order="C")
    return np.take(x, indices[last], axis=last, out=out, mode="clip")  # of "raise", NumPy makes a copy first


def _repeats(indices: Array, size: int) -> int:
    """How often ``indices`` repeats each of the ``size`` elements in turn; 0 if that is not what it does."""
    factor, rest = divmod(len(indices), size)
    same = not rest and bool(np.array_equal(indices, np.arange(len(indices), dtype=np.intp) // max(1, factor)))
    return factor if same else 0


def weigh(x: Array, taps: Mapping[int, Taps], wide: np.dtype[Any], out: Array | None = None) -> Array:
    """For each output, the sum of weights times inputs along all axes in ``taps``, computed as ``wide``.

    The result is ``out``, of its shape and in C order, or a new array.
    """
    # What shrinks most comes first; of others the last one, where NumPy reads each number by itself.
    order = sorted(taps, key=lambda i: (taps[i][0].shape[1] / x.shape[i], -i))
    shape = [taps[i][0].shape[1] if i in taps else n for i, n in enumerate(x.shape)]
    result = np.empty(shape, x.dtype) if out is None else out
    lead = min(taps, default=0)
    source = x.reshape(-1, *x.shape[lead:])
    target = result.reshape(-1, *shape[lead:])
    # A few images at a time: memory that the cache holds, and that need not be fetched from the system each time.
    step = max(1, _BLOCK // max(1, math.prod(shape[lead:])))
    for start in range(0, len(source), step):
        part = source[start : start + step].astype(wide, order="C")
        for i in order:
            part = weigh_along(part, i - lead + 1, *taps[i])
        target[start : start + step] = narrow(part, x.dtype)
    return result


_BLOCK = 1 << 17
"""Elements that are made at once; measured."""


def weigh_along(x: Array, i: int, indices: Array, weights: Array) -> Array:
    """For each output along axis ``i``, the sum of ``weights`` times the inputs at ``indices``."""
    column = (-1, *(1,) * (x.ndim - 1 - i))
    result: Array | None = None
    factors: Array = weights.astype(x.dtype)
    for index, weight in zip(indices, factors, strict=True):
        if not weight.any():
            continue
        term = np.take(x, index, axis=i)
        term *= weight.reshape(column)
        result = term if result is None else np.add(result, term, out=result)
    return np.zeros([*x.shape[:i], indices.shape[1], *x.shape[i + 1 :]], x.dtype) if result is None else result


def add_pixels(sums: Array, pixels: Array, index: Array, weight: Array) -> None:
    """Add ``pixels`` [images, channels, n] at ``index`` times ``weight`` to ``sums`` [.., points].

    These are [images, points] each; every index is that of a pixel.
    """
    # An image at a time, with one index for all channels: a fifth of the time of one for each element.
    read = scratch("pixels", sums.shape[1:], sums.dtype)
    weight = weight.astype(sums.dtype, copy=False)
    for image, at, factor, target in zip(pixels, index, weight, sums, strict=True):
        image.take(at, 1, read, "clip")
        target += np.multiply(read, factor, out=read)


def mixing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """In what elements of ``dtype`` are weighed and added up."""
    if dtype.hasobject:
        raise Error("IRC421", "strings cannot be interpolated: only the mode 'nearest' takes them")
    if is_half(dtype) or dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize < 4):
        return np.dtype(F)
    return np.dtype(np.float64) if dtype.kind in "iu" else dtype


def narrow(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` as ``dtype``; integers are truncated, and held in range where cubic weights overshoot."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        whole = np.clip(x, limits.min, limits.max).astype(dtype)
        # the largest integer of 64 bits is not a float, and the next float is beyond it
        return whole if dtype.itemsize < 8 else np.where(x >= limits.max, dtype.type(limits.max), whole)
    return x.astype(dtype, copy=False)


# -- Resize and Upsample -------------------------------------------------------


def _scaled(size: int, scale: float) -> int:
    """The size that ``size`` elements have after scaling.

    The specification of Resize has it depend on the region of interest, too; neither ONNX's own
    shape inference nor ONNX Runtime does.
    """
    # float32, as in ONNX's shape inference: 10 * 0.7 is 7 there, not 6.9999998
    product = float(F(size) * F(scale))
    if not (scale > 0 and product < 1 << 62):
        raise Error("IRC424", f"a scale is {scale}: scales must be greater than 0 and of reasonable size")
    return math.floor(product)


def _by_scales(x: Array, scales: Sequence[float]) -> list[Side]:
    if len(scales) != x.ndim:
        raise Error("IRC421", f"there are {len(scales)} scales for an input of {x.ndim} dimensions")
    outs = [_scaled(n, s) for n, s in zip(x.shape, scales, strict=True)]
    return [Side(n, out, F(s), out) for n, s, out in zip(x.shape, scales, outs, strict=True)]


_MODE = one_of("mode", "nearest", ("nearest", "linear"))


@computes("onnx::Upsample", mode=one_of("mode", "nearest", ("nearest", "bilinear", "linear")))
def upsample_1(
    x: Array, out: Array | None = None, *, mode: str, height_scale: float = 1.0, width_scale: float = 1.0
) -> Array:
    """``height_scale`` and ``width_scale`` of an image; called "bilinear" what is "linear" later."""
    how = Resampler("nearest" if mode == "nearest" else "linear")
    return how.resize(x, _by_scales(x, (1.0, 1.0, height_scale, width_scale)), out)


@computes("onnx::Upsample", since=7, mode=_MODE)
@computes("onnx::Resize", since=10, mode=_MODE)
def resize_by_scales(
    x: Array, given: Array | None = None, out: Array | None = None, *, mode: str, scales: Sequence[float] = ()
) -> Array:
    """The scales are an attribute before version 9, an input since."""
    return Resampler(mode).resize(x, _by_scales(x, scales if given is None else vector(given)), out)


_CHOICES = (
    one_of("mode", "nearest", ("nearest", *FILTERS)),
    one_of("coordinate_transformation_mode", "half_pixel", COORDINATES),
    one_of("nearest_mode", "round_prefer_floor", tuple(NEAREST)[:-1]),
    attribute("cubic_coeff_a", -0.75),
    attribute("exclude_outside", False),
    attribute("extrapolation_value", 0.0),
    attribute("antialias", False),
)
_POLICY = one_of("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))


def _resampler(node: Node) -> Resampler:
    return Resampler(*(read(node) for read in _CHOICES))


@computes("onnx::Resize", since=11, how=_resampler, policy=_POLICY, fractional=always(False))
@computes("onnx::Resize", since=19, how=_resampler, policy=_POLICY, fractional=always(True))
def resize(
    x: Array,
    *inputs: Array | None,
    how: Resampler,
    policy: str,
    fractional: bool,
    axes: list[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Resize by scales or sizes; since version 19, scales may give sizes that are not integers.

    The node suite's expected values for align_corners follow from that. Before, they are taken to be
    whole, as by PyTorch, whose models these are, and ONNX Runtime.
    """
    roi, scales, sizes = filled(inputs, None, None, None)
    over = tuple(range(x.ndim)) if axes is None else axes_in(axes, x.ndim)
    by_scale, by_size = scales is not None and scales.size > 0, sizes is not None and sizes.size > 0
    if by_scale == by_size:
        raise Error("IRC421", "exactly one of scales and sizes must be given")
    given: list[Any] = vector(scales if by_scale else sizes)  # pyright: ignore[reportArgumentType]
    if len(given) != len(over):
        raise Error("IRC421", f"{'scales' if by_scale else 'sizes'} has {len(given)} entries for {len(over)} axes")
    regions = _regions(roi, len(over)) if how.crops else [(ZERO, ONE)] * len(over)
    extents = [x.shape[i] for i in over]
    if by_scale:
        outs = [_scaled(n, s) for n, s in zip(extents, given, strict=True)]
        factors = [F(s) for s in given]
    else:
        outs, exact = _by_sizes(extents, given, policy)
        # Coordinates in a region of interest do not depend on the factors.
        factors = [F(factor) for factor in exact] if how.crops else exact
    sides = [Side(n, n, ONE, n) for n in x.shape]
    for i, size, factor, (start, end) in zip(over, outs, factors, regions, strict=True):
        length = F(factor) * F(x.shape[i]) if by_scale and fractional else size
        sides[i] = Side(x.shape[i], size, factor, length, start, end)
    return how.resize(x, sides, out)


def _regions(roi: Array | None, count: int) -> list[tuple[np.float32, np.float32]]:
    """(start, end) of the region of interest, for each axis, in parts of the input."""
    if roi is None or roi.shape != (2 * count,):
        shape = None if roi is None else list(roi.shape)
        raise Error("IRC421", f"roi has shape {shape}: tf_crop_and_resize of {count} axes needs [{2 * count}]")
    if not np.isfinite(roi).all():
        raise Error("IRC424", f"roi is {roi.tolist()}: all entries must be finite")
    ends: list[float] = roi.astype(F).tolist()
    return [(F(start), F(end)) for start, end in zip(ends[:count], ends[count:], strict=True)]


def _by_sizes(extents: list[int], sizes: list[int], policy: str) -> tuple[list[int], list[Fraction]]:
    """The sizes after resizing, by the aspect ratio policy, and the factors; what is empty stays so, by 1."""
    pairs = list(zip(sizes, extents, strict=True))
    if any(size < 0 or n == 0 < size for size, n in pairs):
        raise Error("IRC421", f"axes of sizes {extents} cannot be resized to {sizes}")
    factors = [Fraction(size, n) if n else Fraction(1) for size, n in pairs]
    if policy == "stretch":
        return sizes, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(factor * n + Fraction(1, 2)) for n in extents], [factor] * len(extents)
