"""Versions of reductions: axes as an attribute below 18 (ReduceSum: below 13), then as an input."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, integers, ints

X = floats(2, 3, 4, low=0.2, high=2.0)

REDUCE: dict[str, Any] = {
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


def by_attribute(f: Any) -> Any:
    def expected(x: np.ndarray, axes: Any = None, keepdims: int = 1) -> np.ndarray:
        return np.asarray(f(x, axis=None if axes is None else tuple(axes), keepdims=bool(keepdims)), x.dtype)

    return expected


def by_input(f: Any) -> Any:
    def expected(
        x: np.ndarray, axes: np.ndarray | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> np.ndarray:
        axis = None if axes is None or not axes.size else tuple(axes.tolist())
        if axis is None and noop_with_empty_axes:
            axis = ()
        return np.asarray(f(x, axis=axis, keepdims=bool(keepdims)), x.dtype)

    return expected


def reductions() -> list[Row]:
    rows: list[Row] = []
    for op, f in REDUCE.items():
        since = 13 if op == "ReduceSum" else 18
        old, new = ([v for v in Row(op, ()).at() if (v >= since) == is_new] for is_new in (False, True))
        whole = [v for v in (*old, *new) if v < 28 or not op.startswith("ReduceLogSum")]  # of integers
        negative = [v for v in old if v >= 11]
        rows += [
            Row(op, [X], expected=by_attribute(f)),
            Row(op, [X], {"keepdims": 0}, expected=by_attribute(f)),
            Row(op, [X], {"axes": [0, 2]}, old, by_attribute(f)),
            Row(op, [X], {"axes": [1], "keepdims": 0}, old, by_attribute(f)),
            Row(op, [X], {"axes": [-1, 0], "keepdims": 0}, negative, by_attribute(f)),
            Row(op, [X, ints(0, -1)], {}, new, by_input(f)),
            Row(op, [X, ints(1)], {"keepdims": 0}, new, by_input(f)),
            Row(op, [X, ints()], {}, new, by_input(f)),
            Row(op, [X, None], {"noop_with_empty_axes": 1}, new, by_input(f)),
            Row(op, [integers(3, 4, low=1, high=5, dtype=np.int64)], {"keepdims": 0}, whole, by_attribute(f)),
        ]
    return rows


@each(reductions())
def test_reduce(row: Row, version: int) -> None:
    row.check(version)


SMALL = integers(3, 4, low=0, high=2, dtype=np.int8)


@each(
    [
        Row("ReduceMax", [SMALL], {"axes": [0], "keepdims": 0}, [12, 13], by_attribute(np.max)),
        Row("ReduceMin", [SMALL.astype(np.uint8)], {"axes": [0], "keepdims": 0}, [12, 13], by_attribute(np.min)),
        Row("ReduceMax", [SMALL, ints(0)], {}, [18, 20], by_input(np.max)),
        Row("ReduceMax", [SMALL > 0, ints(0)], {}, [20], by_input(np.max)),
        Row("ReduceMin", [SMALL > 0, ints(0)], {}, [20], by_input(np.min)),
        Row(
            "ReduceMax",
            [X[:0], ints(0)],
            {"keepdims": 0},
            [20],
            lambda x, a, keepdims: np.full((3, 4), -np.inf, np.float32),
        ),
    ]
)
def test_other_types(row: Row, version: int) -> None:
    row.check(version)


TIES = np.array([[2, 3, 3], [3, 1, 3]], np.float32)


def arg(f: Any) -> Any:
    def expected(x: np.ndarray, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> np.ndarray:
        found = x.shape[axis] - 1 - f(np.flip(x, axis), axis=axis) if select_last_index else f(x, axis=axis)
        return np.expand_dims(found, axis) if keepdims else found

    return expected


@each(
    [
        row
        for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin))
        for row in (
            Row(op, [TIES], expected=arg(f)),
            Row(op, [TIES], {"axis": 1, "keepdims": 0}, expected=arg(f)),
            Row(op, [TIES], {"axis": -1}, [11, 12, 13], arg(f)),
            Row(op, [TIES], {"axis": 1, "select_last_index": 1}, [12, 13], arg(f)),
            Row(op, [TIES.astype(np.int32)], {"axis": 1}, expected=arg(f)),
        )
    ]
)
def test_arg(row: Row, version: int) -> None:
    row.check(version)


def running(x: np.ndarray, axis: np.ndarray, exclusive: int = 0, reverse: int = 0) -> np.ndarray:
    at = int(axis)
    x = np.flip(x, at) if reverse else x
    found = np.cumsum(x, at, dtype=x.dtype) - (x if exclusive else 0)
    return np.ascontiguousarray(np.flip(found, at) if reverse else found)


@each(
    [
        Row("CumSum", [integers(2, 3), np.array(axis, np.int32)], {"exclusive": e, "reverse": r}, expected=running)
        for axis in (0, -1)
        for e in (0, 1)
        for r in (0, 1)
    ]
)
def test_cumulative(row: Row, version: int) -> None:
    row.check(version)


def flat(f: Any) -> Any:
    """What these operators are below 13: matrices are made of the dimensions before ``axis`` and those from it on."""

    def expected(x: np.ndarray, axis: int = 1) -> np.ndarray:
        matrix = x.reshape(int(np.prod(x.shape[:axis])), -1)
        return f(matrix, -1).reshape(x.shape)

    return expected


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.log(softmax(x, axis))


def hardmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    first = np.expand_dims(np.argmax(x, axis), axis)
    return (np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]) == first).astype(
        x.dtype
    )


@each(
    [
        row
        for op, f in (("Softmax", softmax), ("LogSoftmax", log_softmax), ("Hardmax", hardmax))
        for row in (
            Row(op, [X], {}, [1, 11], flat(f)),
            Row(op, [X], {"axis": 2}, [1, 11], flat(f)),
            Row(op, [X], {"axis": 0}, [1, 11], flat(f)),
            Row(op, [X], {"axis": -2}, [11], flat(f)),
            Row(op, [X], {}, [13], f),
            Row(op, [X], {"axis": 0}, [13], f),
            Row(op, [X], {"axis": -2}, [13], f),
        )
    ]
)
def test_softmax(row: Row, version: int) -> None:
    row.check(version)
