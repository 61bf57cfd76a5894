"""Resize and Upsample, in all their versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.resampling import COORDINATES, FILTERS, NEAREST, ONE, ZERO, F, Resampler, Side
from irc.runtime.kernels.support import Array, axes_in, vector

if TYPE_CHECKING:
    from irc.ir import Node


def _choice(node: Node, name: str, default: str, choices: Sequence[str]) -> str:
    value = node.attributes.get(name, default)
    if value not in choices:
        raise Error("IRC320", f"{name} is {value!r}: it must be one of {', '.join(choices)}")
    return value


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


@kernel("onnx::Upsample")
def upsample_1(node: Node) -> Kernel:
    """``height_scale`` and ``width_scale`` of an image; called "bilinear" what is "linear" later."""
    mode = _choice(node, "mode", "nearest", ("nearest", "bilinear", "linear"))
    how = Resampler("nearest" if mode == "nearest" else "linear")
    sides = [float(node.attributes.get(name, 1.0)) for name in ("height_scale", "width_scale")]

    def run(x: Array) -> Array:
        return how.resize(x, _by_scales(x, (1.0, 1.0, *sides)))

    return run


@kernel("onnx::Upsample", since=7)
def upsample_7(node: Node) -> Kernel:
    how = Resampler(_choice(node, "mode", "nearest", ("nearest", "linear")))
    scales: list[float] = list(node.attributes.get("scales") or ())

    def run(x: Array) -> Array:
        return how.resize(x, _by_scales(x, scales))

    return run


@kernel("onnx::Upsample", since=9)
@kernel("onnx::Resize", since=10)
def resize_10(node: Node) -> Kernel:
    how = Resampler(_choice(node, "mode", "nearest", ("nearest", "linear")))

    def run(x: Array, scales: Array) -> Array:
        return how.resize(x, _by_scales(x, vector(scales)))

    return run


@kernel("onnx::Resize", since=11)
def resize_11(node: Node) -> Kernel:
    return _resize(node, fractional=False)


@kernel("onnx::Resize", since=19)
def resize_19(node: Node) -> Kernel:
    """Since 19 the size after resizing "can be a fractional number when it is calculated out of a scale factor".

    The node suite's expected values for align_corners follow from that. Before, they are taken to be
    whole, as by PyTorch, whose models these are, and ONNX Runtime.
    """
    return _resize(node, fractional=True)


def _resize(node: Node, *, fractional: bool) -> Kernel:
    get = node.attributes.get
    how = Resampler(
        _choice(node, "mode", "nearest", ("nearest", *FILTERS)),
        _choice(node, "coordinate_transformation_mode", "half_pixel", tuple(COORDINATES)),
        _choice(node, "nearest_mode", "round_prefer_floor", tuple(NEAREST)[:-1]),
        float(get("cubic_coeff_a", -0.75)),
        bool(get("exclude_outside", 0)),
        float(get("extrapolation_value", 0.0)),
        bool(get("antialias", 0)),
    )
    policy = _choice(node, "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    axes = get("axes")

    def run(x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None) -> Array:
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
        for i, out, factor, (start, end) in zip(over, outs, factors, regions, strict=True):
            length = F(factor) * F(x.shape[i]) if by_scale and fractional else out
            sides[i] = Side(x.shape[i], out, factor, length, start, end)
        return how.resize(x, sides)

    return run


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
