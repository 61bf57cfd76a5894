"""Versions of operators that move elements about: shapes, pieces, joins."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, integers, ints, since

X = floats(2, 3, 4)
FOUR = floats(2, 8, 4, 6)


def squeezed(x: np.ndarray, axes: Any = None) -> np.ndarray:
    return np.squeeze(x, None if axes is None else tuple(int(a) for a in axes))


def unsqueezed(x: np.ndarray, axes: Any) -> np.ndarray:
    return np.expand_dims(x, tuple(int(a) for a in axes))


ONES = floats(1, 3, 1, 2)


@each(
    [
        Row("Squeeze", [ONES], expected=squeezed),
        Row("Squeeze", [ONES], {"axes": [2]}, since("Squeeze", 1, 13), squeezed),
        Row("Squeeze", [ONES], {"axes": [-2, 0]}, [11], squeezed),
        Row("Squeeze", [ONES, ints(-2)], {}, since("Squeeze", 13), squeezed),
        Row("Unsqueeze", [X], {"axes": [0, 4]}, since("Unsqueeze", 1, 13), unsqueezed),
        Row("Unsqueeze", [X], {"axes": [-1, 1]}, [11], unsqueezed),
        Row("Unsqueeze", [X, ints(-1, 1)], {}, since("Unsqueeze", 13), unsqueezed),
        Row("Flatten", [X], expected=lambda x: x.reshape(2, 12)),
        Row("Flatten", [X], {"axis": 0}, expected=lambda x, axis: x.reshape(1, 24)),
        Row("Flatten", [X], {"axis": 3}, expected=lambda x, axis: x.reshape(24, 1)),
        Row("Flatten", [X], {"axis": -1}, since("Flatten", 11), lambda x, axis: x.reshape(6, 4)),
        Row("Flatten", [integers(2, 3, 4)], {}, since("Flatten", 9), lambda x: x.reshape(2, 12)),
        Row("Reshape", [X, ints(0, -1, 2)], expected=lambda x, s: x.reshape(2, 6, 2)),
        Row(
            "Reshape",
            [X[:0], ints(0, 4, 3)],
            {"allowzero": 1},
            since("Reshape", 14),
            lambda x, s, allowzero: x.reshape(0, 4, 3),
        ),
        Row("Transpose", [X], expected=lambda x: x.transpose().copy()),
        Row("Transpose", [X], {"perm": [1, 0, 2]}, expected=lambda x, perm: x.transpose(perm).copy()),
        Row("Identity", [X], expected=np.copy),
        Row("Identity", [[X, X[0]]], {}, since("Identity", 14), list),
        Row("Shape", [X], expected=lambda x: ints(2, 3, 4)),
        Row("Shape", [X], {"start": -2}, since("Shape", 15), lambda x, start: ints(3, 4)),
        Row("Shape", [X], {"start": 0, "end": -1}, since("Shape", 15), lambda x, start, end: ints(2, 3)),
        Row("Size", [X], expected=lambda x: np.array(24)),
        Row("Expand", [X[:, :1], ints(2, 2, 1, 4)], expected=lambda x, s: np.broadcast_to(x, (2, 2, 1, 4))),
        Row("Tile", [X[0], ints(2, 3)], expected=lambda x, r: np.tile(x, (2, 3))),
    ]
)
def test_shapes(row: Row, version: int) -> None:
    row.check(version)


def depth_to_space(x: np.ndarray, blocksize: int, mode: str = "DCR") -> np.ndarray:
    n, c, h, w = x.shape
    b, deep = blocksize, c // blocksize**2
    if mode == "DCR":
        y = x.reshape(n, b, b, deep, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, deep, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, deep, h * b, w * b)


def space_to_depth(x: np.ndarray, blocksize: int) -> np.ndarray:
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * b * b, h // b, w // b)


@each(
    [
        Row("DepthToSpace", [FOUR], {"blocksize": 2}, expected=depth_to_space),
        Row("DepthToSpace", [FOUR], {"blocksize": 2, "mode": "CRD"}, since("DepthToSpace", 11), depth_to_space),
        Row("DepthToSpace", [FOUR], {"blocksize": 2, "mode": "DCR"}, since("DepthToSpace", 11), depth_to_space),
        Row("SpaceToDepth", [FOUR], {"blocksize": 2}, expected=space_to_depth),
    ]
)
def test_blocks(row: Row, version: int) -> None:
    row.check(version)


def sliced(x: np.ndarray, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> np.ndarray:
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    at = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at[int(axis)] = slice(int(start), int(end), int(step))
    return x[tuple(at)].copy()


BIG = 2**62


@each(
    [
        Row("Slice", [X], {"starts": [1, -3], "ends": [BIG, -1], "axes": [1, 2]}, [1], sliced),
        Row("Slice", [X], {"starts": [0, 1], "ends": [1, 3]}, [1], sliced),
        Row("Slice", [X, ints(1, -3), ints(BIG, -1), ints(1, 2)], {}, [10, 11, 13], sliced),
        Row("Slice", [X, ints(0, 1), ints(1, 3)], {}, [10, 11, 13], sliced),
        Row("Slice", [X, ints(-1), ints(0), ints(2), ints(-2)], {}, [10, 11, 13], sliced),
        Row("Slice", [X, ints(0), ints(9), ints(-1), ints(3)], {}, [11, 13], sliced),
        Row("Split", [FOUR], {"axis": 3}, [2, 11], lambda x, axis: tuple(np.split(x, 2, 3)), 2),
        Row("Split", [FOUR], {"axis": 1, "split": [5, 3]}, [2, 11], lambda x, **_: (x[:, :5], x[:, 5:]), 2),
        Row("Split", [FOUR], {"axis": -1, "split": [1, 5]}, [11], lambda x, **_: (x[..., :1], x[..., 1:]), 2),
        Row("Split", [FOUR, ints(5, 3)], {"axis": -3}, [13, 18], lambda x, s, axis: (x[:, :5], x[:, 5:]), 2),
        Row("Split", [FOUR], {}, [2, 11, 13], lambda x: (x[:1], x[1:]), 2),
        Row(
            "Split",
            [FOUR],
            {"axis": 3, "num_outputs": 4},
            [18],
            lambda x, **_: (x[..., :2], x[..., 2:4], x[..., 4:], x[..., 6:]),
            4,
        ),
        Row("Concat", [X, X[:1]], {"axis": 0}, expected=lambda a, b, axis: np.concatenate([a, b])),
        Row("Concat", [X, X[:, :1]], {"axis": 1}, expected=lambda a, b, axis: np.concatenate([a, b], 1)),
        Row(
            "Concat", [X, X[..., :1]], {"axis": -1}, since("Concat", 11), lambda a, b, axis: np.concatenate([a, b], -1)
        ),
    ]
)
def test_pieces(row: Row, version: int) -> None:
    row.check(version)


def padded(x: np.ndarray, pads: Any, value: Any = 0.0, axes: Any = None, mode: str = "constant") -> np.ndarray:
    axes = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in axes]
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (int(pads[i]), int(pads[i + len(axes)]))
    if mode != "constant":
        return np.pad(x, widths, mode)  # type: ignore[call-overload]
    cut = tuple(slice(-min(a, 0), x.shape[i] + min(b, 0)) for i, (a, b) in enumerate(widths))
    return np.pad(x[cut], [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=0 if value is None else value)


PADS = [0, 1, 2, 1, 0, 3]


@each(
    [
        Row("Pad", [X], {"pads": PADS, "value": 1.5}, [2], padded),
        Row("Pad", [X], {"pads": PADS}, [2], padded),
        Row("Pad", [X], {"pads": [0, -1, 2, 1, 0, -2]}, [2], padded),
        Row("Pad", [X], {"pads": [0, 1, 2, 1, 0, 3], "mode": "edge"}, [2], padded),
        Row("Pad", [X], {"pads": [0, 1, 2, 1, 2, 3], "mode": "reflect"}, [2], padded),
        Row("Pad", [X, ints(*PADS), np.array(1.5, np.float32)], {}, since("Pad", 11), padded),
        Row("Pad", [X, ints(*PADS)], {}, since("Pad", 11), padded),
        Row("Pad", [X, ints(*PADS)], {"mode": "edge"}, since("Pad", 11), padded),
        Row("Pad", [X, ints(0, 1, 2, 1, 2, 3)], {"mode": "reflect"}, since("Pad", 11), padded),
        Row("Pad", [integers(2, 3), ints(1, 0, 0, 1), np.array(7)], {}, since("Pad", 11), padded),
        Row("Pad", [X > 0, ints(*PADS), np.array(True)], {}, since("Pad", 13), padded),
        Row("Pad", [X, ints(1, 2), None, ints(-1)], {}, since("Pad", 18), padded),
        Row("Pad", [X, ints(0, 1, 5, 1, 2, 6)], {"mode": "wrap"}, since("Pad", 19), padded),
    ]
)
def test_pad(row: Row, version: int) -> None:
    row.check(version)
