"""NonMaxSuppression, RoiAlign, MaxRoiPool."""

import math

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.bounds import in_own_scope, in_turn
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel, run_ort

RANDOM = np.random.default_rng(0)


def boxes(batch: int, n: int, *, centered: bool = False) -> np.ndarray:
    first, size = RANDOM.uniform(0, 10, (batch, n, 2)), RANDOM.uniform(-6, 6, (batch, n, 2))
    second = np.abs(size) if centered else first + size  # corners come in any order
    return np.concatenate([first, second], axis=2).astype(np.float32)


def scores(batch: int, classes: int, n: int) -> np.ndarray:
    return (RANDOM.integers(0, 20, (batch, classes, n)) / 20).astype(np.float32)  # some are equal


@pytest.mark.parametrize("centered", [0, 1])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_non_max_suppression(centered, overlap, limit):
    inputs = [boxes(2, 30, centered=bool(centered)), scores(2, 3, 30), np.array([limit])]
    inputs += [np.array([overlap], np.float32), np.array([0.35], np.float32)]
    for opset in (10, 11):
        check_against_ort("NonMaxSuppression", inputs, {"center_point_box": centered}, opset)
        check_against_ort("NonMaxSuppression", inputs[:4], {"center_point_box": centered}, opset)


@pytest.mark.parametrize("group", [3, 32, 256])
@pytest.mark.parametrize("limit", [1, 7, 1000])
@pytest.mark.parametrize("overlap", [0.0, 0.2, 1.0])
def test_groups_of_boxes_are_chosen_as_one_by_one(group, limit, overlap, tune):
    tune("irc.runtime.kernels.detection.GROUP", group)
    given = boxes(1, 150)
    given[0, 50:60] = given[0, :10]
    given[0, 7, 3] = np.nan
    inputs = [given, scores(1, 1, 150), np.array(limit), np.array(overlap)]
    assert run_kernel("NonMaxSuppression", inputs, {}, 11)[0][:, 2].tolist() == one_by_one(
        given[0], inputs[1][0, 0], limit, overlap
    )


def one_by_one(given: np.ndarray, score: np.ndarray, limit: int, overlap: float, least: float = -np.inf) -> list[int]:
    """The boxes of one class that are taken, as the specification has it."""
    corners = np.stack([np.minimum(given[:, :2], given[:, 2:]), np.maximum(given[:, :2], given[:, 2:])])
    chosen: list[int] = []

    def shares_too_much(one: int, other: int) -> bool:
        sides = np.minimum(corners[1, one], corners[1, other]) - np.maximum(corners[0, one], corners[0, other])
        area = sum(np.prod(corners[1, n] - corners[0, n]) for n in (one, other))
        shared = np.prod(np.maximum(sides, 0))
        return bool(shared > 0 and shared > overlap * (area - shared))

    for box in np.argsort(-score, kind="stable"):
        eligible = least == -np.inf or score[box] > least
        if eligible and len(chosen) < limit and not any(shares_too_much(box, other) for other in chosen):
            chosen.append(int(box))
    return chosen


@pytest.mark.parametrize("least", [0.001, 0.9, 0.999])
def test_many_classes(least):
    score = RANDOM.uniform(0, 1, (1, 80, 900)).astype(np.float32)
    inputs = [boxes(1, 900) * 30, score, np.array([20]), np.array([0.45], np.float32), np.array([least], np.float32)]
    check_against_ort("NonMaxSuppression", inputs, {}, 11)


def test_bad_boxes():
    for arguments in ((boxes(1, 5), scores(1, 2, 4)), (boxes(1, 5)[0], scores(1, 2, 5))):
        with pytest.raises(Error, match="boxes must be"):
            run_kernel("NonMaxSuppression", list(arguments), {}, 11)
    with pytest.raises(Error, match="iou_threshold"):
        run_kernel("NonMaxSuppression", [boxes(1, 5), scores(1, 2, 5), np.array(1), np.array(1.5)], {}, 11)


def regions(n: int, size: float) -> np.ndarray:
    corner = RANDOM.uniform(-2, size, (n, 2))
    return np.concatenate([corner, corner + RANDOM.uniform(0.2, size, (n, 2))], axis=1).astype(np.float32)


X = RANDOM.standard_normal((2, 3, 9, 11)).astype(np.float32)


def test_roi_align_of_odd_regions():
    inside_out = np.array([[5, 5, 2, 2], [-40, -40, -30, -30], [3, 3, 3, 3]], np.float32)
    batch = np.zeros(3, np.int64)
    for opset in (10, 16):
        check_against_ort("RoiAlign", [X, inside_out, batch], {"output_height": 2, "output_width": 2}, opset)
    assert run_kernel("RoiAlign", [X, inside_out[:0], batch[:0]], {}, 16)[0].shape == (0, 3, 1, 1)
    half = run_kernel("RoiAlign", [X.astype(np.float16), regions(2, 5).astype(np.float16), batch[:2]], {}, 16)[0]
    assert half.dtype == np.float16


def test_max_roi_pool_outside():
    """Bins that hold no pixel are zero."""
    rois = np.array([[0, 20, 20, 30, 30], [1, -9, -9, 2, 2]], np.float32)
    check_against_ort("MaxRoiPool", [X, rois], {"pooled_shape": [2, 2]}, 7)
    for bad in ([[2, 0, 0, 1, 1]], [[0, 1, 1]]):
        with pytest.raises(Error):
            run_kernel("MaxRoiPool", [X, np.array(bad, np.float32)], {"pooled_shape": [2, 2]}, 22)
    for shape in ([2], [0, 2]):
        with pytest.raises(Error, match="two positive sizes"):
            run_kernel("MaxRoiPool", [X, rois], {"pooled_shape": shape}, 22)


@pytest.mark.parametrize(("op", "mode"), [("RoiAlign", "avg"), ("RoiAlign", "max"), ("MaxRoiPool", "")])
@pytest.mark.parametrize("size", [(1 << 14, 1), (1, 3000)])
def test_very_many_bins(op, mode, size):
    """They are computed part by part: time is looked at in between, and work memory does not grow with them."""
    rois = [regions(2, 9), np.array([1, 0])]
    attributes = {"mode": mode, "output_height": size[0], "output_width": size[1], "sampling_ratio": 3}
    if op == "MaxRoiPool":
        rois, attributes = [np.insert(regions(2, 9), 0, [1, 0], axis=1)], {"pooled_shape": list(size)}
    guard = Recorder()
    since = 16 if op == "RoiAlign" else 1
    (found,) = in_own_scope(guard, in_turn, run_kernel, op, [X, *rois], attributes, since)
    if op == "MaxRoiPool":  # in float32, as ONNX Runtime computes them, some of so many bins reach beyond the region
        np.testing.assert_array_equal(found, exact_max_roi_pool(X, rois[0], size))
    else:
        assert_same([found], run_ort(op, [X, *rois], attributes, 16, 1))
    assert guard.paces > 10
    assert guard.most <= 2 * 3 * math.prod(size) * 4


def exact_max_roi_pool(x: np.ndarray, rois: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The definition, with integers."""
    out = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    for n, roi in enumerate(rois):
        number, left, top, right, bottom = (math.floor(c + 0.5) for c in roi.tolist())
        ends = []
        for first, last, cells, bins in ((top, bottom, x.shape[2], size[0]), (left, right, x.shape[3], size[1])):
            extent = max(last - first + 1, 1)
            edges = [(first + i * extent // bins, first - (i + 1) * extent // -bins) for i in range(bins)]
            ends.append([(min(max(a, 0), cells), min(max(b, 0), cells)) for a, b in edges])
        for r, (top_row, after_rows) in enumerate(ends[0]):
            for c, (left_column, after_columns) in enumerate(ends[1]):
                part = x[number, :, top_row:after_rows, left_column:after_columns]
                if part.size:
                    out[n, :, r, c] = part.max(axis=(1, 2))
    return out


class Recorder:
    def __init__(self) -> None:
        self.paces = self.most = 0
        self.most_bytes = math.inf

    def allocate(self, size: int) -> None:
        self.most = max(self.most, size)

    def work(self, products: int) -> None:
        pass

    def pace(self) -> None:
        self.paces += 1


def test_bins_of_very_many_samples():
    far = np.float32([[0, 0, 1e9, 1e9]])
    with pytest.raises(Error, match="sampled at"):
        run_kernel("RoiAlign", [X, far, np.array([0])], {}, 16)
    attributes = {"mode": "max", "sampling_ratio": 1 << 20}
    with pytest.raises(Error, match="would take more than"):
        in_own_scope(Recorder(), in_turn, run_kernel, "RoiAlign", [X, far, np.array([0])], attributes, 16)
