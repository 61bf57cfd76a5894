"""Operators of object detectors: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size, is_half, scalar

if TYPE_CHECKING:
    from irc.ir import Node


@kernel("onnx::NonMaxSuppression")
def non_max_suppression(node: Node) -> Kernel:
    """Per batch and class: boxes by falling score, without those that overlap one taken before too much.

    Returns triples (batch, class, box), [count, 3].
    """
    centered = bool(node.attributes.get("center_point_box", 0))

    def run(
        boxes: Array,
        scores: Array,
        limit: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
    ) -> Array:
        if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape != (scores.shape[0], scores.shape[2], 4):
            shapes = f"{list(boxes.shape)} and {list(scores.shape)}"
            raise Error("IRC421", f"boxes must be [batch, n, 4] and scores [batch, classes, n]; they are {shapes}")
        most = 0 if limit is None else int(scalar(limit, "max_output_boxes_per_class"))
        overlap = 0.0 if iou_threshold is None else float(scalar(iou_threshold, "iou_threshold"))
        if not 0 <= overlap <= 1:
            raise Error("IRC424", f"iou_threshold is {overlap}; it must be between 0 and 1")
        least = -math.inf if score_threshold is None else float(scalar(score_threshold, "score_threshold"))
        chosen: list[tuple[int, int, int]] = []
        for batch in range(boxes.shape[0] if most > 0 else 0):
            corners = _corners(boxes[batch], centered)
            for label in range(scores.shape[1]):
                score = scores[batch, label]
                order = np.argsort(-score, kind="stable")
                if score_threshold is not None:
                    order = order[score[order] > least]
                chosen += [(batch, label, box) for box in _greedy(corners, order, most, overlap)]
        return np.array(chosen, np.int64).reshape(-1, 3)

    return run


def _corners(boxes: Array, centered: bool) -> Array:
    """Low corner and high corner of each box, [n, 2, 2], from two opposite corners or from centre and size."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if centered:
        first, second = first - second / 2, first + second / 2
    return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _greedy(corners: Array, order: Array, most: int, overlap: float) -> list[int]:
    area = np.prod(corners[:, 1] - corners[:, 0], axis=1)
    taken: list[int] = []
    while order.size and len(taken) < most:
        box, order = int(order[0]), order[1:]
        taken.append(box)
        low = np.maximum(corners[order, 0], corners[box, 0])
        high = np.minimum(corners[order, 1], corners[box, 1])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        # Boxes without area share nothing; comparing products avoids their division by zero.
        suppressed = (shared > 0) & (shared > overlap * (area[order] + area[box] - shared))
        order = order[~suppressed]
    return taken


def _bins(given: list[int]) -> tuple[int, int]:
    if len(given) != 2 or min(given) < 1:
        raise Error("IRC320", f"a region is pooled to {given}; it must be two positive sizes")
    return given[0], given[1]


class _Samples(NamedTuple):
    """Sampling points along one axis: the cells before and after each, and their weights, [output, points]."""

    before: Array
    after: Array
    weight_before: Array
    weight_after: Array


_MOST_SAMPLES = 1 << 24


def _samples(start: float, length: float, cells: int, bins: int, ratio: int) -> _Samples:
    points = ratio if ratio > 0 else max(0, math.ceil(length / bins))
    if bins * points > _MOST_SAMPLES:
        raise Error("IRC422", f"a region {length} cells long would be sampled at {bins * points} points")
    size = length / bins
    at = start + np.arange(bins)[:, None] * size + (np.arange(points) + 0.5) * size / max(points, 1)
    inside = (at >= -1) & (at <= cells)
    at = np.clip(at, 0, cells - 1)
    before = np.minimum(at.astype(np.int64), cells - 1)
    after = np.minimum(before + 1, cells - 1)
    part = at - before
    return _Samples(before, after, (1 - part) * inside, part * inside)


@kernel("onnx::RoiAlign")
def roi_align(node: Node) -> Kernel:
    """Bilinear samples in each bin of each region, averaged; ``max``: the largest single term of any of them.

    He, Gkioxari, Dollár, Girshick, "Mask R-CNN" (2017). What ``max`` takes the
    largest of is what ONNX Runtime and the node suite take it of.
    """
    mode = node.attributes.get("mode", "avg")
    if mode not in ("avg", "max"):
        raise Error("IRC320", f"RoiAlign's mode is {mode!r}; it must be 'avg' or 'max'")
    bins = _bins([node.attributes.get("output_height", 1), node.attributes.get("output_width", 1)])
    ratio: int = node.attributes.get("sampling_ratio", 0)
    spatial_scale: float = node.attributes.get("spatial_scale", 1.0)
    newest = node.version is None or node.version >= 16
    default = "half_pixel" if newest else "output_half_pixel"
    half_pixel = node.attributes.get("coordinate_transformation_mode", default) == "half_pixel"
    pool = _average if mode == "avg" else _largest

    def run(x: Array, rois: Array, batch_indices: Array) -> Array:
        if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
            shapes = f"{list(x.shape)}, {list(rois.shape)} and {list(batch_indices.shape)}"
            raise Error("IRC421", f"RoiAlign needs [n, c, h, w], [rois, 4] and [rois]; the inputs are {shapes}")
        if ((batch_indices < 0) | (batch_indices >= x.shape[0])).any():
            raise Error("IRC423", f"a batch index is not between 0 and {x.shape[0] - 1}")
        wide = x.astype(np.float32) if is_half(x.dtype) else x
        out = np.zeros(check_size((len(rois), x.shape[1], *bins), wide.dtype), wide.dtype)
        regions = rois.astype(np.float64) * spatial_scale - (0.5 if half_pixel else 0.0)
        _check_finite(regions)
        for i, (left, top, right, bottom) in enumerate(regions.tolist()):
            height, width = bottom - top, right - left
            if not half_pixel:
                height, width = max(height, 1.0), max(width, 1.0)
            rows = _samples(top, height, x.shape[2], bins[0], ratio)
            columns = _samples(left, width, x.shape[3], bins[1], ratio)
            if rows.before.size and columns.before.size:
                pool(wide[batch_indices[i]], rows, columns, out[i])
        return out.astype(x.dtype, copy=False)

    return run


def _check_finite(regions: Array) -> None:
    if not np.isfinite(regions).all():
        raise Error("IRC424", "a corner of a region is infinite, or no number")


def _average(x: Array, rows: _Samples, columns: _Samples, out: Array) -> None:
    """Averages are linear and separable: one matrix for the rows, one for the columns."""
    top, by_row = _averaging(rows, x.dtype)
    left, by_column = _averaging(columns, x.dtype)
    part = x[:, top : top + by_row.shape[1], left : left + by_column.shape[1]]
    np.matmul(by_row @ part, by_column.T, out)


def _averaging(samples: _Samples, dtype: np.dtype[np.generic]) -> tuple[int, Array]:
    """First cell touched, and the matrix [output, cells touched] that averages the samples of each output."""
    first = int(samples.before.min())
    matrix = np.zeros((samples.before.shape[0], int(samples.after.max()) + 1 - first))
    row = np.arange(matrix.shape[0])[:, None]
    np.add.at(matrix, (row, samples.before - first), samples.weight_before)
    np.add.at(matrix, (row, samples.after - first), samples.weight_after)
    return first, (matrix / samples.before.shape[1]).astype(dtype)


def _largest(x: Array, rows: _Samples, columns: _Samples, out: Array) -> None:
    bins, points = rows.before.shape, columns.before.shape
    largest = np.full((x.shape[0], rows.before.size, columns.before.size), -np.inf, x.dtype)
    for row, row_weight in ((rows.before, rows.weight_before), (rows.after, rows.weight_after)):
        for column, weight in ((columns.before, columns.weight_before), (columns.after, columns.weight_after)):
            term = x[:, row.reshape(-1, 1), column.reshape(1, -1)]
            scaled = term * (row_weight.reshape(-1, 1) * weight.reshape(1, -1)).astype(x.dtype)
            np.maximum(largest, scaled, out=largest)
    np.max(largest.reshape(-1, *bins, *points), axis=(2, 4), out=out)


@kernel("onnx::MaxRoiPool")
def max_roi_pool(node: Node) -> Kernel:
    """The largest pixel in each bin of each region; bins on whole pixels, 0 where there is none.

    Girshick, "Fast R-CNN" (2015).
    """
    bins = _bins(node.attributes["pooled_shape"])
    spatial_scale: float = node.attributes.get("spatial_scale", 1.0)

    def run(x: Array, rois: Array) -> Array:
        if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
            shapes = f"{list(x.shape)} and {list(rois.shape)}"
            raise Error("IRC421", f"MaxRoiPool needs [n, c, h, w] and [rois, 5]; the inputs are {shapes}")
        images = rois[:, 0].astype(np.int64)
        if ((images < 0) | (images >= x.shape[0])).any():
            raise Error("IRC423", f"a batch index is not between 0 and {x.shape[0] - 1}")
        scaled = rois[:, 1:].astype(np.float64) * spatial_scale
        _check_finite(scaled)
        corners = np.clip(np.copysign(np.floor(np.abs(scaled) + 0.5), scaled), -_FAR, _FAR).astype(np.int64)
        out = np.zeros(check_size((len(rois), x.shape[1], *bins), x.dtype), x.dtype)
        for i, (left, top, right, bottom) in enumerate(corners.tolist()):
            rows = _whole_bins(top, bottom, x.shape[2], bins[0])
            columns = _whole_bins(left, right, x.shape[3], bins[1])
            for r, row in enumerate(rows):
                for c, column in enumerate(columns):
                    part = x[images[i], :, row, column]
                    if part.size:
                        out[i, :, r, c] = part.max(axis=(1, 2))
        return out

    return run


_FAR = float(1 << 40)


def _whole_bins(first: int, last: int, cells: int, bins: int) -> list[slice]:
    size = max(last - first + 1, 1) / bins
    edges = [(first + math.floor(i * size), first + math.ceil((i + 1) * size)) for i in range(bins)]
    return [slice(min(max(a, 0), cells), min(max(b, 0), cells)) for a, b in edges]
