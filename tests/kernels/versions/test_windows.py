"""Versions of operators that slide windows or sample: convolution, pooling, regions, grids.

Their versions added attributes (ceil_mode and dilations at 10, padding modes at 11) and types (22), so ONNX Runtime is
the oracle; where it has no such version, the newest that computes the same, or loops over the window.
"""

from itertools import product
from typing import Any

import numpy as np

from tests.kernels.helpers import run_ort
from tests.kernels.versions.rows import Row, each, floats, integers, since

X = floats(2, 3, 7, 8)


PAIR: dict[str, Any] = {"kernel_shape": [2, 3], "strides": [2, 1]}
PADDED: dict[str, Any] = PAIR | {"pads": [1, 0, 0, 2]}
SAME: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 3]}


def pools() -> list[Row]:
    rows: list[Row] = []
    for op in ("MaxPool", "AveragePool", "LpPool"):
        rows += [
            Row(op, [X], PAIR),
            Row(op, [X], PADDED),
            Row(op, [X], SAME | {"auto_pad": "SAME_UPPER"}),
            Row(op, [X], SAME | {"auto_pad": "SAME_LOWER"}),
            Row(op, [X], SAME | {"auto_pad": "VALID"}),
        ]
    for op, ceil, dilations in (("MaxPool", 10, 10), ("AveragePool", 10, 19), ("LpPool", 18, 18)):
        rows.append(Row(op, [X], SAME | {"ceil_mode": 1}, since(op, ceil)))
        rows.append(Row(op, [X], PAIR | {"dilations": [3, 2]}, since(op, dilations)))
    rows += [
        Row("MaxPool", [X[:, :, :5, :6]], {"kernel_shape": [2, 2], "strides": [2, 2]}, since("MaxPool", 8), None, 2),
        Row("MaxPool", [X], PAIR | {"storage_order": 1}, since("MaxPool", 8), None, 2),
        Row("MaxPool", [integers(1, 2, 5, 5, dtype=np.int8)], {"kernel_shape": [2, 2]}, since("MaxPool", 12)),
        Row("AveragePool", [X], PADDED | {"count_include_pad": 1}, since("AveragePool", 7)),
        Row("LpPool", [np.abs(X)], PAIR | {"p": 3}),
    ]
    for op in ("GlobalMaxPool", "GlobalAveragePool"):
        rows.append(Row(op, [X]))
    rows.append(Row("GlobalLpPool", [X], {"p": 3}, expected=norm))
    rows.append(Row("GlobalLpPool", [X], {}, expected=norm))
    return rows


def norm(x: np.ndarray, p: int = 2) -> np.ndarray:
    return (np.abs(x) ** p).sum((2, 3), keepdims=True) ** np.float32(1 / p)


@each(pools())
def test_pool(row: Row, version: int) -> None:
    row.check(version)


PLACES = np.array([[[[0, 10], [20, 23]]]], np.int64)


def unpooled(x: np.ndarray, indices: np.ndarray, shape: Any = None, **attributes: Any) -> np.ndarray:
    """Indices are positions in what the windows cover; ``shape`` adds zeros behind that."""
    out = np.zeros((1, 1, *(2 * k for k in attributes["strides"])), np.float32)
    out.reshape(-1)[indices.reshape(-1)] = x.reshape(-1)
    return out if shape is None else np.pad(out, [(0, int(s) - n) for s, n in zip(shape, out.shape, strict=True)])


WEIGHT, BIAS = floats(6, 3, 2, 3, seed=1), floats(6, seed=2)
TRANSPOSED = floats(3, 2, 2, 3, seed=1)


@each(
    [
        Row("MaxUnpool", [floats(1, 1, 2, 2), PLACES], {"kernel_shape": [2, 3], "strides": [2, 3]}, expected=unpooled),
        Row("MaxUnpool", [floats(1, 1, 2, 2), PLACES // 2, np.array([1, 1, 5, 6])], {"kernel_shape": [2, 2],
            "strides": [2, 2]}, expected=unpooled),
        Row("Conv", [X, WEIGHT]),
        Row("Conv", [X, WEIGHT, BIAS], {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [2, 1]}),
        Row("Conv", [X, WEIGHT], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        Row("Conv", [X, WEIGHT], {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 3]}),
        Row("Conv", [X, floats(6, 1, 3, 3, seed=1)], {"group": 3}),
        Row("Conv", [X[..., 0], floats(4, 3, 2, seed=1)]),
        Row("ConvTranspose", [X, TRANSPOSED]),
        Row("ConvTranspose", [X, TRANSPOSED, BIAS[:2]], {"pads": [1, 0, 0, 1], "strides": [2, 3], "dilations": [2, 1]}),
        Row("ConvTranspose", [X, TRANSPOSED], {"strides": [3, 2], "output_padding": [2, 1]}),
        Row("ConvTranspose", [X, TRANSPOSED], {"strides": [2, 2], "output_shape": [15, 17]}),
        Row("ConvTranspose", [X, TRANSPOSED], {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
            since("ConvTranspose", 11)),
        Row("ConvTranspose", [X, floats(3, 2, 3, 3, seed=1)], {"group": 3}),
    ]
)  # fmt: skip
def test_convolution(row: Row, version: int) -> None:
    row.check(version)


def deformed(
    x: np.ndarray,
    w: np.ndarray,
    offset: np.ndarray,
    bias: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    **_: Any,
) -> np.ndarray:
    """Stride 1, no padding, one group, by loops; samples are bilinear, and zero outside."""
    (n, _, height, width), (m, _, kh, kw) = x.shape, w.shape
    out = np.zeros((n, m, height - kh + 1, width - kw + 1), np.float32)
    for b, i, j, (t, (u, v)) in product(
        range(n), range(out.shape[2]), range(out.shape[3]), enumerate(np.ndindex(kh, kw))
    ):
        r, s = i + u + offset[b, 2 * t, i, j], j + v + offset[b, 2 * t + 1, i, j]
        weight = 1 if mask is None else mask[b, t, i, j]
        for p, q in product((np.floor(r), np.floor(r) + 1), (np.floor(s), np.floor(s) + 1)):
            if 0 <= p < height and 0 <= q < width:
                share = (1 - abs(r - p)) * (1 - abs(s - q)) * weight
                out[b, :, i, j] += share * w[:, :, u, v] @ x[b, :, int(p), int(q)]
    return out + (0 if bias is None else bias[:, None, None])


SMALL = floats(1, 2, 4, 5)
KERNEL, OFFSETS, MASK = floats(3, 2, 2, 2, seed=1), floats(1, 8, 3, 4, seed=2), floats(1, 4, 3, 4, seed=3)


@each(
    [
        Row("DeformConv", [SMALL, KERNEL, OFFSETS], {"kernel_shape": [2, 2]}, expected=deformed),
        Row("DeformConv", [SMALL, KERNEL, OFFSETS, BIAS[:3], MASK], {"pads": [0, 0, 0, 0]}, expected=deformed),
    ]
)
def test_deformed(row: Row, version: int) -> None:
    row.check(version)


BOXES = np.array([[0, 1, 1, 5, 4], [1, 0, 2, 6, 6]], np.float32)
LARGER = BOXES * np.array([1, 2, 2, 2, 2], np.float32)
REGIONS, IMAGES = np.array([[1, 1, 5, 4], [0, 2, 6, 6]], np.float32), np.array([0, 1])


def max_regions(x: np.ndarray, rois: np.ndarray, pooled_shape: Any, spatial_scale: float = 1.0) -> np.ndarray:
    """As Fast R-CNN defines it: bins of rounded corners, which overlap where they do not divide."""
    (height, width), out = pooled_shape, np.zeros((len(rois), x.shape[1], *pooled_shape), np.float32)
    for r, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (int(np.round(c * spatial_scale)) for c in corners)
        high, wide = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for i, j in np.ndindex(height, width):
            rows = slice(top + int(np.floor(i * high)), top + int(np.ceil((i + 1) * high)))
            columns = slice(left + int(np.floor(j * wide)), left + int(np.ceil((j + 1) * wide)))
            out[r, :, i, j] = x[int(image), :, rows, columns].max((1, 2))
    return out


@each(
    [
        Row("MaxRoiPool", [X, BOXES], {"pooled_shape": [2, 2]}, expected=max_regions),
        Row("MaxRoiPool", [X, LARGER], {"pooled_shape": [1, 3], "spatial_scale": 0.5}, expected=max_regions),
        Row("RoiAlign", [X, REGIONS, IMAGES], {"output_height": 2, "output_width": 3, "sampling_ratio": 2}),
        Row("RoiAlign", [X, REGIONS, IMAGES], {"output_height": 2, "output_width": 2, "mode": "max"},
            since("RoiAlign", 16)),
        Row("RoiAlign", [X, REGIONS, IMAGES], {"output_height": 2, "output_width": 2,
            "coordinate_transformation_mode": "output_half_pixel"}, since("RoiAlign", 16)),
        Row("RoiAlign", [X, REGIONS, IMAGES], {"output_height": 2, "output_width": 2, "spatial_scale": 0.5}),
    ]
)  # fmt: skip
def test_regions(row: Row, version: int) -> None:
    row.check(version)


LETTERS = np.array(list("abcdef"), object).reshape(1, 1, 3, 2)


def halfway(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Of integers what there is of the floats, which ONNX Runtime has."""
    (found,) = run_ort("GridSample", [x.astype(np.float32), grid], {}, 22)
    return np.trunc(found).astype(x.dtype)


GRID = floats(2, 3, 4, 2, seed=5, low=-1.2, high=1.2)


@each(
    [
        Row("GridSample", [X, GRID], {"mode": mode, "padding_mode": pad, "align_corners": corners}, versions)
        for names, versions in ((("bilinear", "nearest", "bicubic"), [16]), (("linear", "nearest", "cubic"), [20, 22]))
        for mode in names
        for pad, corners in (("zeros", 0), ("border", 1), ("reflection", 0))
    ]
    + [
        Row("GridSample", [integers(2, 3, 7, 8, dtype=dtype), GRID], {}, None, halfway)
        for dtype in (np.int32, np.uint8)
    ]
    + [
        Row(
            "GridSample",
            [LETTERS, np.array([[[[-1, -1], [1, 0], [9, 9]]]], np.float32)],
            {"mode": "nearest", "align_corners": 1},
            None,
            lambda x, grid, **_: np.array([[[["a", "d", ""]]]], object),
        )
    ]
    + [Row("GridSample", [floats(1, 2, 3, 4, 5), floats(1, 2, 2, 3, 3, low=-1, high=1)], {}, [20, 22])]
)
def test_grid_sample(row: Row, version: int) -> None:
    row.check(version)


SCALES = np.array([1, 1, 2.0, 1.5], np.float32)
DOWN = np.array([1, 1, 0.6, 0.75], np.float32)
NONE = np.array([], np.float32)


@each(
    [
        Row("Upsample", [X], {"scales": [1.0, 1.0, 2.0, 3.0]}, [7]),
        Row("Upsample", [X], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"}, [7]),
        Row("Upsample", [X, np.array([1, 1, 2, 3], np.float32)], {"mode": "linear"}, [9]),
        Row("Upsample", [X], {"height_scale": 2.0, "width_scale": 3.0}, [1],
            lambda x, **_: x.repeat(2, 2).repeat(3, 3)),
        Row("Resize", [X, SCALES], {}, [10]),
        Row("Resize", [X, DOWN], {}, [10]),
        Row("Resize", [X, SCALES], {"mode": "linear"}, [10]),
        Row("Resize", [X, None, SCALES], {}, since("Resize", 13)),
        Row("Resize", [X, NONE, SCALES], {}, since("Resize", 11)),
        Row("Resize", [X, NONE, DOWN], {"mode": "linear"}, since("Resize", 11)),
        Row("Resize", [X, NONE, DOWN], {"mode": "cubic"}, since("Resize", 11)),
        Row("Resize", [X, NONE, NONE, np.array([2, 3, 5, 11])], {"mode": "linear",
            "coordinate_transformation_mode": "align_corners"}, since("Resize", 11)),
        Row("Resize", [X, NONE, NONE, np.array([2, 3, 5, 11])], {"nearest_mode": "floor",
            "coordinate_transformation_mode": "asymmetric"}, since("Resize", 11)),
        Row("Resize", [X, np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.7], np.float32), NONE, np.array([2, 3, 5, 4])],
            {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}, since("Resize", 11)),
        Row("Resize", [X, None, DOWN[2:]], {"mode": "linear", "antialias": 1, "axes": [2, 3]}, since("Resize", 18)),
        Row("Resize", [X, None, None, np.array([5, 5])], {"axes": [2, 3],
            "keep_aspect_ratio_policy": "not_larger"}, since("Resize", 18)),
    ]
)  # fmt: skip
def test_resize(row: Row, version: int) -> None:
    row.check(version)
