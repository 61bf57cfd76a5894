"""Operators of object detectors: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_work, pace
from irc.runtime.kernels.registry import Reader, attribute, computes, one_of
from irc.runtime.kernels.support import Array, check_size, counting, filled, is_half, scalar, shapes_of

GROUP = 256
"""How many boxes are compared with as many others at once; for several classes, as many as make no more pairs."""


@computes("onnx::NonMaxSuppression")
def non_max_suppression(boxes: Array, scores: Array, *options: Array | None, center_point_box: bool = False) -> Array:
    """Per batch and class: boxes by falling score, without those that overlap one taken before too much.

    Returns triples (batch, class, box), [count, 3].
    """
    limit, iou_threshold, score_threshold = filled(options, None, None, None)
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape != (scores.shape[0], scores.shape[2], 4):
        wanted = "boxes must be [batch, n, 4] and scores [batch, classes, n]"
        raise Error("IRC421", f"{wanted}; they are {shapes_of(boxes, scores)}")
    most = 0 if limit is None else min(int(scalar(limit, "max_output_boxes_per_class")), boxes.shape[1])
    overlap = 0.0 if iou_threshold is None else float(scalar(iou_threshold, "iou_threshold"))
    if not 0 <= overlap <= 1:
        raise Error("IRC424", f"iou_threshold is {overlap}; it must be between 0 and 1")
    least = -math.inf if score_threshold is None else float(scalar(score_threshold, "score_threshold"))
    found = [np.empty((0, 3), np.int64)]
    for batch in range(boxes.shape[0] if most > 0 else 0):
        order, starts = _by_score(scores[batch], None if score_threshold is None else least)
        taken = _greedy(_extents(boxes[batch], center_point_box), order, starts, most, overlap)
        labels = np.repeat(counting(len(starts) - 1), np.diff(starts))[taken]
        found.append(np.stack([np.full_like(labels, batch), labels, order[taken]], axis=1))
    return np.concatenate(found)


def _by_score(scores: Array, least: float | None) -> tuple[Array, Array]:
    """The boxes with scores [classes, n] above ``least``, by falling score a class; class starts."""
    check_size(scores.shape, np.dtype(np.int64))
    flat = counting(scores.size) if least is None else np.flatnonzero(scores > least)
    starts = np.searchsorted(flat, list(range(0, scores.size + 1, max(1, scores.shape[1]))))
    falling = -scores.reshape(-1)[flat]
    order = np.empty_like(flat)
    for start, end in pairwise(starts.tolist()):
        if start < end:
            pace()
            order[start:end] = flat[falling[start:end].argsort(kind="stable") + start]
    return order % max(1, scores.shape[1]), starts


def _extents(boxes: Array, centered: bool) -> Array:
    """Low corner, high corner and area of each box, [5, n + 1], from corners or centre and size.

    The last box, of NaNs, stands for a missing box: it overlaps with none.
    """
    first, second = boxes.T[:2], boxes.T[2:]
    if centered:
        first, second = first - second / 2, first + second / 2
    extents = np.full((5, len(boxes) + 1), np.nan, first.dtype)
    low, high = np.minimum(first, second, out=extents[:2, :-1]), np.maximum(first, second, out=extents[2:4, :-1])
    np.multiply(*(high - low), out=extents[4, :-1])
    return extents


def _greedy(extents: Array, order: Array, starts: Array, most: int, overlap: float) -> Array:
    """The boxes of ``order`` kept: a class's first ``most`` that overlap no kept one too much.

    Group by group, and of many classes at once: NumPy compares two groups in about the time of two boxes, and the last
    ones often need no look.
    """
    none = len(order)
    boxes = np.append(order, extents.shape[1] - 1)
    is_taken = np.zeros(none, np.bool_)
    at, counts = starts[:-1].copy(), np.zeros(len(starts) - 1, np.int64)
    while len(classes := np.flatnonzero((at < starts[1:]) & (counts < most))):
        taken, firsts, earlier = np.flatnonzero(is_taken), counts.cumsum() - counts, counts.copy()
        widths = np.minimum(starts[1:] - at, np.minimum(GROUP, 2 * (most - counts)))
        classes = classes[np.argsort(-widths[classes])]  # those of about one width, so that little is padding
        while len(classes):
            several = max(1, GROUP**2 // int(widths[classes[0]]) ** 2)
            part, classes = classes[:several], classes[several:]
            group = _rows(at[part], widths[part], none)
            for start in range(0, earlier[part].max(), GROUP):
                pace()
                before = _rows(firsts[part] + start, np.minimum(earlier[part] - start, GROUP), len(taken))
                overlapping = _overlapping(extents, boxes[np.append(taken, none)[before]], boxes[group], overlap)
                group = np.sort(np.where(overlapping.any(axis=1), none, group), axis=1)
                group = group[:, : (group < none).sum(axis=1).max()]
            pace()
            is_left = _undisturbed(_overlapping(extents, boxes[group], boxes[group], overlap)) & (group < none)
            is_left &= is_left.cumsum(axis=1) <= (most - counts[part])[:, None]
            is_taken[group[is_left]] = True
            counts[part] += is_left.sum(axis=1)
            at[part] += widths[part]
    return is_taken


def _rows(firsts: Array, counts: Array, none: int) -> Array:
    """In each row, ``count`` numbers from ``first`` on, and ``none`` behind them."""
    step = counting(max(0, counts.max()))
    return np.where(step < counts[:, None], firsts[:, None] + step, none)


def _undisturbed(overlapping: Array) -> Array:
    """Which of the boxes in each row are left, [row, box]: no earlier one that is left overlaps them."""
    rows, count, _ = overlapping.shape
    pairs = np.flatnonzero(overlapping & (counting(count)[:, None] < counting(count)))
    earlier, later = pairs // count, pairs // count**2 * count + pairs % count
    is_left = np.ones(rows * count, np.bool_)
    while True:  # each time, at least the first box of a row that was wrong becomes right
        was_left, is_left = is_left, np.ones(rows * count, np.bool_)
        is_left[later[was_left[earlier]]] = False
        if (is_left == was_left).all():
            return is_left.reshape(rows, count)


def _overlapping(extents: Array, first: Array, second: Array, overlap: float) -> Array:
    """Whether boxes ``first`` and ``second`` have an IoU above ``overlap``, [row, first, second]."""
    one, other = extents.take(first, 1)[..., None], extents.take(second, 1)[:, :, None]
    nothing = np.zeros_like(other[0])  # two arrays are compared at many times the pace of an array and a number
    shared = np.minimum(one[2:4], other[2:4])
    shared -= np.maximum(one[:2], other[:2])
    shared = np.multiply(*np.maximum(shared, nothing, out=shared))
    # Boxes without area share nothing; comparing products avoids their division by zero.
    covered = one[4] + other[4]
    covered -= shared
    covered *= overlap
    return shared > covered


def _bins(given: list[int]) -> tuple[int, int]:
    if len(given) != 2 or min(given) < 1:
        raise Error("IRC320", f"a region is pooled to {given}; it must be two positive sizes")
    return given[0], given[1]


class _Samples(NamedTuple):
    """Sampling points along one axis: neighbouring cells of each and weights, [output, points]."""

    before: Array
    after: Array
    weight_before: Array
    weight_after: Array


_MOST_SAMPLES = 1 << 20


class _Axis(NamedTuple):
    """One axis of a region: its start and length in cells, ``points`` samples a bin."""

    start: np.floating[Any]
    length: np.floating[Any]
    cells: int
    bins: int
    points: int

    def slices(self, most: int) -> Iterator[slice]:
        """All bins in slices of at most ``most`` samples, but at least one bin."""
        step = max(1, most // max(1, self.points))
        return (slice(i, min(i + step, self.bins)) for i in range(0, self.bins, step))

    def samples(self, part: slice) -> _Samples:
        """Of the bins in ``part``, at places that are computed in the precision of ``start``."""
        dtype = self.start.dtype
        size = self.length / dtype.type(self.bins)
        at = self.start + np.arange(part.start, part.stop, dtype=dtype)[:, None] * size
        at = at + (np.arange(self.points, dtype=dtype) + dtype.type(0.5)) * size / dtype.type(self.points)
        inside = (at >= -1) & (at <= self.cells)
        at = np.clip(at, 0, self.cells - 1)
        before = np.minimum(at.astype(np.int64), self.cells - 1)
        after = np.minimum(before + 1, self.cells - 1)
        weight = at - before
        return _Samples(before, after, (1 - weight) * inside, weight * inside)


def _axis(start: np.floating[Any], length: np.floating[Any], cells: int, bins: int, ratio: int) -> _Axis:
    points = ratio if ratio > 0 else max(0, math.ceil(length / start.dtype.type(bins)))
    if points > _MOST_SAMPLES:
        raise Error("IRC422", f"a bin of a region {length} cells long would be sampled at {points} points")
    return _Axis(start, length, cells, bins, points)


_ROI_ALIGN: dict[str, Reader] = {
    "mode": one_of("mode", "avg", ("avg", "max")),
    "bins": lambda node: _bins([node.attributes.get(name, 1) for name in ("output_height", "output_width")]),
}
_TRANSFORMATION = "coordinate_transformation_mode"


@computes("onnx::RoiAlign", transformation=attribute(_TRANSFORMATION, "output_half_pixel"), read=_ROI_ALIGN)
@computes("onnx::RoiAlign", since=16, transformation=attribute(_TRANSFORMATION, "half_pixel"), read=_ROI_ALIGN)
def roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    mode: str,
    bins: tuple[int, int],
    transformation: str,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Bilinear samples in each bin of each region, averaged; ``max``: their largest single term.

    He, Gkioxari, Dollár, Girshick, "Mask R-CNN" (2017). What ``max`` takes the
    largest of is what ONNX Runtime and the node suite take it of.
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
        shapes = shapes_of(x, rois, batch_indices)
        raise Error("IRC421", f"RoiAlign needs [n, c, h, w], [rois, 4] and [rois]; the inputs are {shapes}")
    if ((batch_indices < 0) | (batch_indices >= x.shape[0])).any():
        raise Error("IRC423", f"a batch index is not between 0 and {x.shape[0] - 1}")
    half_pixel = transformation == "half_pixel"
    pool, most = (_average, 1 << 10) if mode == "avg" else (_largest, 1 << 7)
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    out = np.zeros(check_size((len(rois), x.shape[1], *bins), wide.dtype), wide.dtype)
    # In the operands' precision, as others do: it decides what is inside of the image.
    number = wide.dtype.type
    regions = rois.astype(wide.dtype) * number(spatial_scale) - number(0.5 if half_pixel else 0)
    _check_finite(regions)
    images = wide if mode == "avg" else _channels_last(wide)
    for i, (left, top, right, bottom) in enumerate(regions):
        height, width = bottom - top, right - left
        if not half_pixel:
            height, width = max(height, number(1)), max(width, number(1))
        rows = _axis(top, height, x.shape[2], bins[0], sampling_ratio)
        columns = _axis(left, width, x.shape[3], bins[1], sampling_ratio)
        if not (x.size and rows.points and columns.points):
            continue
        # Part by part, so that work memory stays small and time is looked at, however many bins there are.
        for part in rows.slices(most):
            samples = rows.samples(part)
            for other in columns.slices(most):
                pace()
                pool(images[batch_indices[i]], samples, columns.samples(other), out[i, :, part, other])
    return out.astype(x.dtype, copy=False)


def _channels_last(x: Array) -> Array:
    """``x`` (N, C, H, W) as (N, H, W, C): maxima of vectors are many times faster than of scalars."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _check_finite(regions: Array) -> None:
    if not np.isfinite(regions).all():
        raise Error("IRC424", "a corner of a region is infinite, or no number")


def _average(x: Array, rows: _Samples, columns: _Samples, out: Array) -> None:
    """Averages are linear and separable: one matrix for the rows, one for the columns."""
    top, by_row = _averaging(rows, x.dtype)
    left, by_column = _averaging(columns, x.dtype)
    part = x[:, top : top + by_row.shape[1], left : left + by_column.shape[1]]
    check_size((len(x), len(by_row), part.shape[2]), x.dtype)
    check_work(part.size * len(by_row))
    np.matmul(by_row @ part, by_column.T, out)


def _averaging(samples: _Samples, dtype: np.dtype[np.generic]) -> tuple[int, Array]:
    """First cell touched, and the matrix [output, cells touched] that averages the samples of each output."""
    first = int(samples.before.min())
    matrix = np.zeros((samples.before.shape[0], int(samples.after.max()) + 1 - first))
    row = counting(matrix.shape[0])[:, None]
    np.add.at(matrix, (row, samples.before - first), samples.weight_before)
    np.add.at(matrix, (row, samples.after - first), samples.weight_after)
    return first, (matrix / samples.before.shape[1]).astype(dtype)


def _largest(x: Array, rows: _Samples, columns: _Samples, out: Array) -> None:
    """The largest term of a bin is that of the largest ones in its columns, for no weight is negative."""
    check_size((rows.before.size, columns.before.size, x.shape[2]), x.dtype)  # as it is for all samples of a bin
    top, left = int(rows.before.min()), int(columns.before.min())
    part = x[top : int(rows.after.max()) + 1, left : int(columns.after.max()) + 1]
    np.copyto(out, _largest_along(_largest_along(part, 1, columns, left), 0, rows, top).transpose(2, 0, 1))


def _largest_along(x: Array, axis: int, samples: _Samples, first: int) -> Array:
    """The largest term of each bin's samples along ``axis`` of ``x``, beginning with cell ``first``."""
    cells = np.concatenate([samples.before, samples.after], 1) - first
    weights = np.concatenate([samples.weight_before, samples.weight_after], 1).astype(x.dtype)
    shape = check_size((*x.shape[:axis], *cells.shape, *x.shape[axis + 1 :]), x.dtype)
    terms = x.take(cells.reshape(-1), axis).reshape(shape)
    terms *= weights.reshape(*weights.shape, *(1,) * (x.ndim - axis - 1))
    return terms.max(axis + 1)


@computes("onnx::MaxRoiPool", bins=lambda node: _bins(node.attributes["pooled_shape"]))
def max_roi_pool(x: Array, rois: Array, *, bins: tuple[int, int], spatial_scale: float = 1.0) -> Array:
    """The largest pixel in each bin of each region; bins on whole pixels, 0 where there is none.

    Girshick, "Fast R-CNN" (2015).
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise Error("IRC421", f"MaxRoiPool needs [n, c, h, w] and [rois, 5]; the inputs are {shapes_of(x, rois)}")
    numbers = rois[:, 0].astype(np.int64)
    if ((numbers < 0) | (numbers >= x.shape[0])).any():
        raise Error("IRC423", f"a batch index is not between 0 and {x.shape[0] - 1}")
    scaled = rois[:, 1:].astype(np.float64) * spatial_scale
    _check_finite(scaled)
    corners = np.clip(np.copysign(np.floor(np.abs(scaled) + 0.5), scaled), -_FAR, _FAR).astype(np.int64)
    out = np.zeros(check_size((len(rois), x.shape[1], *bins), x.dtype), x.dtype)
    images = _channels_last(x)
    for i, (left, top, right, bottom) in enumerate(corners.tolist()):
        columns = _whole_bins(left, right, x.shape[3], bins[1])
        for r, row in enumerate(_whole_bins(top, bottom, x.shape[2], bins[0])):
            strip = images[numbers[i], slice(*row)]
            if not strip.size:
                continue
            strip = strip.max(axis=0)
            for c, column in enumerate(columns):
                pace()
                part = strip[slice(*column)]
                if part.size:
                    out[i, :, r, c] = part.max(axis=0)
    return out


_FAR = float(1 << 40)


def _whole_bins(first: int, last: int, cells: int, bins: int) -> Array:
    """First cell, and the one after the last, of each bin, [bins, 2]; exact: no bin leaves the region."""
    whole, rest = divmod(max(last - first + 1, 1), bins)  # apart, so that products fit into 64 bits
    at = np.arange(bins + 1)
    edges = np.stack([at[:-1] * whole + at[:-1] * rest // bins, at[1:] * whole - at[1:] * -rest // bins], axis=1)
    return np.clip(edges + first, 0, cells)
