"""Images: other sizes, samples at points, regions, boxes, files."""

from __future__ import annotations

import math

from irc.ir import MAX_ELEMENTS, Dim, DType, Shape, TensorType, Type
from irc.ir.polynomials import times
from irc.ops import Family, checks
from irc.ops.inference import NodeTypes

FAMILY = Family("onnx")
FAMILY.each(
    "Resize",
    changes_meaning=(19,),  # sizes are rounded otherwise
    value_operands=(1, 2, 3),
    attributes={
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
        "mode": ("nearest", "linear", "cubic"),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    },
    requires=(checks.flags("antialias", "exclude_outside"),),
    kernel="resize",
)
FAMILY.each(
    "Upsample", value_operands=(1,), attributes={"mode": ("nearest", "linear", "bilinear", "cubic")}, kernel="resize"
)
FAMILY.each("AffineGrid", value_operands=(1,), requires=(checks.rank("size", 1, 1),), kernel="grid_sample")
FAMILY.each(
    "GridSample",
    attributes={
        "mode": ("linear", "nearest", "cubic", "bilinear", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    kernel="grid_sample",
)
FAMILY.each("MaxRoiPool", kernel="detection")
FAMILY.each(
    "RoiAlign",
    changes_meaning=(16,),  # coordinates are shifted by half a pixel, unless an attribute says no
    attributes={"coordinate_transformation_mode": ("half_pixel", "output_half_pixel"), "mode": ("avg", "max")},
    kernel="detection",
)
FAMILY.each("NonMaxSuppression", value_operands=None, requires=(checks.flags("center_point_box"),), kernel="detection")
FAMILY.each("ImageDecoder", attributes={"pixel_format": ("RGB", "BGR", "Grayscale")}, kernel="signal")


@FAMILY.reshapes("Resize", "Upsample")
def resize(c: NodeTypes, x: Shape) -> Shape:
    old = c.node.kind == "onnx::Upsample" or c.version < 11
    scales_at, sizes_at = (1, None) if old else (2, 3)
    axes = [c.axis(a, len(x)) for a in c.attr("axes") or range(len(x))]
    out: list[Dim] = list(x)
    unknown = tuple([None if i in axes else d for i, d in enumerate(x)])
    if sizes_at is not None and c.has(sizes_at):
        sizes = c.dims(sizes_at)
        if sizes is None or c.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
            return unknown
        for axis, size in zip(axes, sizes, strict=False):
            out[axis] = size
        return tuple(out)
    given = c.constant(scales_at)
    if given is not None and given.ndim > 1:
        c.fail(f"scales must have one dimension, not {given.ndim}")
    scales = c.attr("scales") or (None if given is None else given.reshape(-1).tolist())
    if scales is None or c.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        return unknown
    if len(scales) != len(axes):
        c.fail(f"{len(scales)} scales for {len(axes)} axes")
    for axis, scale in zip(axes, scales, strict=True):
        out[axis] = _scaled(x[axis], scale)
    return tuple(out)


_LARGE_SCALE = 1 << 16
"""Below, sizes of tensors are surely multiplied exactly by whole scales, whatever the type of these."""


def _scaled(size: Dim, scale: float) -> Dim:
    if not isinstance(size, int) or size > MAX_ELEMENTS:
        is_whole = 1 <= scale < _LARGE_SCALE and scale == int(scale)
        return times(size, int(scale)) if is_whole and not isinstance(size, int) else None
    exact = size * scale
    if not math.isfinite(exact):
        return None  # the kernel will say what is wrong with it
    # float32 and float64 may round a product that is almost whole to different sides.
    whole = round(exact)
    return None if exact != whole and abs(exact - whole) < 1e-5 * max(1, whole) else int(exact)


@FAMILY.requires("Resize")
def check_resize(c: NodeTypes) -> None:
    if c.version < 11:
        return
    x, axes = c.shape(0), c.attr("axes")
    scales = c.shape(2)
    if c.has(3) and scales is not None and scales and isinstance(scales[0], int) and scales[0]:
        c.fail("sizes and scales are given, but only one of them may be")
    if c.version > 12 and not c.has(2) and not c.has(3):
        c.fail("neither sizes nor scales are given")
    for scale in () if (given := c.constant(2)) is None else given.reshape(-1).tolist():
        if not scale > 0:
            c.fail(f"scales must be positive, not {scale}")
    if x is not None:
        checks.axes(c, axes, len(x))
        count = len(x) if axes is None else len(axes)
        checks.size(c, "sizes", 3, count, f"{count} axes")


@FAMILY.shape("AffineGrid")
def affine_grid(c: NodeTypes) -> Type:
    theta, size = c.shape(0), c.dims(1)
    if size is None:
        rank = theta[1] if theta is not None and len(theta) == 3 and isinstance(theta[1], int) else None
        return TensorType(c.dtype(0), (theta[0], *[None] * rank, rank) if theta and rank in (2, 3) else None)
    if len(size) not in (4, 5):
        c.fail(f"a grid is for images of 4 or 5 dimensions, not {len(size)}")
    return TensorType(c.dtype(0), (size[0], *size[2:], len(size) - 2))


@FAMILY.shape("GridSample")
def grid_sample(c: NodeTypes) -> Type:
    x, grid = c.shape(0), c.shape(1)
    if x is not None and grid is not None and (len(x) != len(grid) or len(x) < 3):
        c.fail(f"a grid of {len(grid)} dimensions does not fit an input of {len(x)}: both need one rank, at least 3")
    lead: list[Dim] = [None, None] if x is None else list(x[:2])
    if x is not None and grid is None:
        return TensorType(c.dtype(0), (*lead, *[None] * (len(x) - 2)))
    return TensorType(c.dtype(0), None if grid is None else (*lead, *grid[1:-1]))


@FAMILY.shape("RoiAlign", "MaxRoiPool")
def roi(c: NodeTypes) -> Type:
    x, rois = c.shape(0), c.shape(1)
    sizes = c.attr("pooled_shape") or [c.attr("output_height", 1), c.attr("output_width", 1)]
    return TensorType(c.dtype(0), (rois[0] if rois else None, x[1] if x else None, *sizes))


FAMILY.shape("NonMaxSuppression")(lambda c: TensorType(DType.INT64, (None, 3)))
