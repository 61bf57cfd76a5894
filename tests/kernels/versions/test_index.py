"""Versions of operators that read and write at indices, sort, and select."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, integers, ints, since

X = floats(3, 4, 5)
TABLE = floats(4, 3)


def taken(x: np.ndarray, indices: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.take(x, indices, axis)


def gathered_nd(x: np.ndarray, indices: np.ndarray, batch_dims: int = 0) -> np.ndarray:
    lead = indices.shape[:-1]
    out = [x[(*i[:batch_dims], *indices[i])] for i in np.ndindex(*lead)]
    return np.stack(out).reshape(*lead, *out[0].shape)


COMBINE = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scattered(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int = 0, reduction: str = "none") -> Any:
    out = x.copy()
    for i in np.ndindex(*indices.shape):
        at = list(i)
        at[axis] = int(indices[i])
        out[tuple(at)] = COMBINE[reduction](out[tuple(at)], updates[i])
    return out


def scattered_nd(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str = "none") -> np.ndarray:
    out = x.copy()
    for i in np.ndindex(*indices.shape[:-1]):
        at = tuple(indices[i].tolist())
        out[at] = COMBINE[reduction](out[at], updates[i])
    return out


@each(
    [
        Row("Gather", [X, ints(2, 0)], expected=taken),
        Row("Gather", [X, np.array([[3, 0], [1, 1]], np.int32)], {"axis": 1}, expected=taken),
        Row("Gather", [X, ints(-1, 0)], {"axis": -1}, since("Gather", 11), taken),
        Row("GatherElements", [TABLE, integers(2, 3, low=0, high=4)],
            expected=lambda x, i: np.take_along_axis(x, i, 0)),
        Row("GatherElements", [TABLE, integers(4, 2, low=-3, high=3)], {"axis": 1},
            expected=lambda x, i, axis: np.take_along_axis(x, i, 1)),
        Row("GatherND", [X, integers(2, 2, low=-3, high=3)], expected=gathered_nd),
        Row("GatherND", [X, integers(3, 2, 1, low=0, high=4)], {"batch_dims": 1}, since("GatherND", 12), gathered_nd),
        Row("Scatter", [TABLE, integers(1, 3, low=0, high=4), floats(1, 3, seed=1)], expected=scattered),
        Row("ScatterElements", [TABLE, integers(1, 3, low=0, high=4), floats(1, 3, seed=1)], expected=scattered),
        Row("ScatterElements", [TABLE, ints(2, 0, 1, 2).reshape(4, 1), floats(4, 1)], {"axis": 1}, expected=scattered),
        Row("ScatterElements", [TABLE, ints(-1, 0, -2, 2).reshape(4, 1), floats(4, 1)], {"axis": 1},
            expected=scattered),
        Row("ScatterND", [X, ints(2, 0).reshape(2, 1), floats(2, 4, 5, seed=1)], expected=scattered_nd),
        Row("ScatterND", [X, ints(2, 0, 1, 3).reshape(2, 2), floats(2, 5, seed=1)], expected=scattered_nd),
    ]
    + [
        row
        for reduction, first in (("add", 16), ("mul", 16), ("max", 18), ("min", 18))
        for row in (
            Row("ScatterElements", [TABLE, ints(1, 1, 1).reshape(1, 3), floats(1, 3, seed=1)],
                {"reduction": reduction}, since("ScatterElements", first), scattered),
            Row("ScatterND", [X, ints(1, 1).reshape(2, 1), floats(2, 4, 5, seed=1)],
                {"reduction": reduction}, since("ScatterND", first), scattered_nd),
        )
    ]
)  # fmt: skip
def test_gather_and_scatter(row: Row, version: int) -> None:
    row.check(version)


def reversed_sequences(x: np.ndarray, lengths: np.ndarray, batch_axis: int = 1, time_axis: int = 0) -> np.ndarray:
    y = np.moveaxis(x, (batch_axis, time_axis), (0, 1)).copy()
    for row, length in zip(y, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.ascontiguousarray(np.moveaxis(y, (0, 1), (batch_axis, time_axis)))


@each(
    [
        Row("ReverseSequence", [X, ints(3, 1, 2, 0)], expected=reversed_sequences),
        Row("ReverseSequence", [X, ints(4, 1, 2)], {"batch_axis": 0, "time_axis": 1}, expected=reversed_sequences),
        Row("Compress", [TABLE, np.array([1, 0, 1], np.bool_)], expected=lambda x, c: x.reshape(-1)[[0, 2]]),
        Row("Compress", [TABLE, np.array([0, 1, 1], np.bool_)], {"axis": 1},
            expected=lambda x, c, axis: x[:, 1:].copy()),
        Row("Compress", [TABLE, np.array([0, 1], np.bool_)], {"axis": -1}, since("Compress", 11),
            lambda x, c, axis: x[:, 1:2].copy()),
        Row("NonZero", [integers(3, 4, low=0, high=2)], expected=lambda x: np.stack(np.nonzero(x))),
        Row("NonZero", [np.zeros((2, 2), np.float32)], expected=lambda x: np.zeros((2, 0), np.int64)),
    ]
)  # fmt: skip
def test_select(row: Row, version: int) -> None:
    row.check(version)


def top(x: np.ndarray, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-x if largest else x, axis, kind="stable")
    at = np.take(order, np.arange(int(np.reshape(k, ()))), axis)
    return np.take_along_axis(x, at, axis), at


@each(
    [
        Row("TopK", [TABLE], {"k": 2}, [1], top, 2),
        Row("TopK", [TABLE], {"k": 3, "axis": 0}, [1], top, 2),
        Row("TopK", [TABLE, ints(2)], {}, since("TopK", 10), top, 2),
        Row("TopK", [TABLE, ints(3)], {"axis": 0}, since("TopK", 10), top, 2),
        Row("TopK", [TABLE, ints(2)], {"largest": 0, "axis": -2}, since("TopK", 11), top, 2),
        Row("TopK", [integers(3, 4), ints(2)], {}, since("TopK", 11), top, 2),
    ]
)
def test_top(row: Row, version: int) -> None:
    row.check(version)


NAMES = np.array(["b", "a", "b", "c"], object)
NUMBERS = np.array([3, 1, 3, 2], np.float32)


def distinct(x: np.ndarray, sorted: int = 1) -> tuple[np.ndarray, ...]:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(values.size) if sorted else np.argsort(first)
    return values[order], first[order], np.argsort(order)[inverse], counts[order]


def one_hot(indices: np.ndarray, depth: np.ndarray, values: np.ndarray, axis: int = -1) -> np.ndarray:
    size = int(np.reshape(depth, ()))
    at = np.where(indices < 0, indices + size, indices).astype(np.int64)
    hot = (np.expand_dims(at, -1) == np.arange(size)).astype(np.int64)
    return np.ascontiguousarray(np.moveaxis(values[hot], -1, axis if axis >= 0 else axis + indices.ndim + 1))


PAIR = np.array([2, 5], np.float32)


@each(
    [
        Row("Unique", [NUMBERS], expected=distinct, outputs=4),
        Row("Unique", [NUMBERS], {"sorted": 0}, expected=distinct, outputs=4),
        Row("Unique", [NAMES], expected=distinct, outputs=4),
        Row("Unique", [NAMES.reshape(2, 2)[[1, 0, 1]]], {"axis": 0}, None,
            lambda x, axis: (x[[1, 0]], ints(1, 0), ints(1, 0, 1), ints(1, 2)), 4),
        Row("Unique", [np.repeat(TABLE, 2, 1)], {"axis": 1}, expected=lambda x, axis: np.unique(x, axis=1)),
        Row("OneHot", [ints(0, 2, 1), np.array(3), PAIR], expected=one_hot),
        Row("OneHot", [integers(2, 3, low=0, high=4), ints(4), PAIR], {"axis": 1}, expected=one_hot),
        Row("OneHot", [integers(2, 3, low=-4, high=4), ints(4), PAIR], {"axis": 0}, since("OneHot", 11), one_hot),
        Row("EyeLike", [floats(3, 4)], {"k": 1}, expected=lambda x, k: np.eye(3, 4, 1, np.float32)),
        Row("EyeLike", [floats(3, 3)], {"dtype": 7}, expected=lambda x, dtype: np.eye(3, dtype=np.int64)),
        Row("Range", [np.array(1.0, np.float32), np.array(4.0, np.float32), np.array(0.5, np.float32)],
            expected=lambda a, b, c: np.arange(1, 4, 0.5, dtype=np.float32)),
        Row("Trilu", [X, np.array(1)], {"upper": 0}, expected=lambda x, k, upper: np.tril(x, 1)),
    ]
)  # fmt: skip
def test_generate(row: Row, version: int) -> None:
    row.check(version)
