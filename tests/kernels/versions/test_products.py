"""Versions of products, normalisation and recurrence."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, integers, since

A, B, C = floats(3, 4), floats(4, 5, seed=1), floats(3, 5, seed=2)


def gemm(
    a: np.ndarray, b: np.ndarray, c: Any = 0, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
    **_: Any,
) -> np.ndarray:  # fmt: skip
    a, b = a.T if transA else a, b.T if transB else b
    return (alpha * (a @ b) + beta * c).astype(a.dtype)


@each(
    [
        Row("Gemm", [A, B, C], expected=gemm),
        Row("Gemm", [A.T.copy(), B.T.copy(), C], {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}, None, gemm),
        Row("Gemm", [A, B, C[0]], {"broadcast": 1}, [6], gemm),
        Row("Gemm", [A, B, C[0]], {}, since("Gemm", 7), gemm),
        Row("Gemm", [A, B, C[:, :1]], {"beta": 0.5}, since("Gemm", 7), gemm),
        Row("Gemm", [integers(3, 4), integers(4, 2), integers(3, 2)], {}, since("Gemm", 9), gemm),
        Row("Gemm", [A, B], {}, since("Gemm", 11), gemm),
        Row("MatMul", [A, B], expected=np.matmul),
        Row("MatMul", [floats(2, 1, 3, 4), floats(3, 4, 2)], expected=np.matmul),
        Row("MatMul", [A, B[:, 0]], expected=np.matmul),
        Row("MatMul", [integers(3, 4), integers(4, 2)], {}, since("MatMul", 9), np.matmul),
        Row("Einsum", [A, B], {"equation": "ij,jk->ki"}, None, lambda a, b, equation: (a @ b).T.copy()),
        Row("Einsum", [floats(2, 3, 3)], {"equation": "...ii->...i"}, None,
            lambda a, equation: np.diagonal(a, 0, 1, 2).copy()),
        Row("Det", [floats(2, 3, 3)], expected=lambda x: np.linalg.det(x).astype(np.float32)),
    ]
)  # fmt: skip
def test_products(row: Row, version: int) -> None:
    row.check(version)


X = floats(2, 3, 4, 5)
SCALE, SHIFT, MEAN, VARIANCE = (floats(3, seed=i, low=0.5, high=1.5) for i in range(4))


def column(v: np.ndarray) -> np.ndarray:
    return v[:, None, None]


def with_statistics(x: np.ndarray, s: Any, b: Any, m: Any, v: Any, epsilon: float = 1e-5, **_: Any) -> np.ndarray:
    return (x - column(m)) / np.sqrt(column(v) + np.float32(epsilon)) * column(s) + column(b)


def by_element(x: np.ndarray, s: Any, b: Any, m: Any, v: Any, **_: Any) -> np.ndarray:
    return (x - m) / np.sqrt(v + np.float32(1e-5)) * s + b


def trained(x: np.ndarray, s: Any, b: Any, m: Any, v: Any, momentum: float, **_: Any) -> tuple[np.ndarray, ...]:
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    kept = np.float32(momentum)
    return with_statistics(x, s, b, mean, variance), m * kept + mean * (1 - kept), v * kept + variance * (1 - kept)


STATISTICS = [SCALE, SHIFT, MEAN, VARIANCE]
ELEMENTS = [floats(3, 4, 5, seed=i, low=0.5, high=1.5) for i in range(4)]


@each(
    [
        Row("BatchNormalization", [X, *STATISTICS], {"is_test": 1, "epsilon": 0.1}, [6], with_statistics),
        Row("BatchNormalization", [X, *ELEMENTS], {"is_test": 1, "spatial": 0}, [6], by_element),
        Row("BatchNormalization", [X, *STATISTICS], {"epsilon": 0.1}, since("BatchNormalization", 7), with_statistics),
        Row("BatchNormalization", [X, *ELEMENTS], {"spatial": 0}, [7], by_element),
        Row("BatchNormalization", [X, *STATISTICS], {"training_mode": 1, "momentum": 0.7},
            since("BatchNormalization", 14), trained, 3),
    ]
)  # fmt: skip
def test_batch_normalization(row: Row, version: int) -> None:
    row.check(version)


def local(x: np.ndarray, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> np.ndarray:
    squares = np.stack(
        [(x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(1) for c in range(x.shape[1])], 1
    )
    return x / (bias + alpha / size * squares).astype(np.float32) ** np.float32(beta)


def instance(x: np.ndarray, s: np.ndarray, b: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(epsilon)) * column(s) + column(b)


def lp(x: np.ndarray, axis: int = -1, p: int = 2) -> np.ndarray:
    return x / np.linalg.norm(x, p, axis, keepdims=True)


@each(
    [
        Row("LRN", [X], {"size": 3}, expected=local),
        Row("LRN", [X], {"size": 2, "alpha": 0.3, "beta": 0.5, "bias": 2.0}, expected=local),
        Row("InstanceNormalization", [X, SCALE, SHIFT], {"epsilon": 0.01}, expected=instance),
        Row("GroupNormalization", [floats(2, 4, 3), floats(2, seed=1), floats(2, seed=2)], {"num_groups": 2},
            versions=[18]),
        Row("LpNormalization", [floats(3, 4)], expected=lp),
        Row("LpNormalization", [floats(3, 4)], {"axis": 0, "p": 1}, expected=lp),
        Row("MeanVarianceNormalization", [X],
            expected=lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9)),
    ]
)  # fmt: skip
def test_normalization(row: Row, version: int) -> None:
    row.check(version)


STEPS, BATCH, SIZE, HIDDEN = 3, 2, 4, 5
SEQUENCE = floats(STEPS, BATCH, SIZE)


def weights(gates: int, directions: int = 1) -> list[np.ndarray]:
    w, r = floats(directions, gates * HIDDEN, SIZE, seed=1), floats(directions, gates * HIDDEN, HIDDEN, seed=2)
    return [w / 2, r / 2, floats(directions, 2 * gates * HIDDEN, seed=3)]


def recurrent(op: str, gates: int, outputs: int) -> list[Row]:
    lengths, start = np.array([3, 2], np.int32), floats(1, BATCH, HIDDEN, seed=4)
    both = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    return [
        Row(op, [SEQUENCE, *weights(gates)], {"hidden_size": HIDDEN}, None, None, outputs),
        Row(op, [SEQUENCE, *weights(gates), lengths, start], {"hidden_size": HIDDEN}, None, None, outputs),
        Row(op, [SEQUENCE, *weights(gates, 2)], both, None, None, outputs),
        Row(op, [SEQUENCE, *weights(gates)[:2]], {"hidden_size": HIDDEN, "direction": "reverse", "clip": 0.3}, None,
            None, outputs),
    ]  # fmt: skip


@each(
    [
        *recurrent("RNN", 1, 2),
        *recurrent("GRU", 3, 2),
        *recurrent("LSTM", 4, 3),
        Row("RNN", [SEQUENCE, *weights(1)], {"hidden_size": HIDDEN, "activations": ["Relu"]}, None, None, 2),
        Row("GRU", [SEQUENCE, *weights(3)], {"hidden_size": HIDDEN, "linear_before_reset": 1}, None, None, 2),
        Row("LSTM", [SEQUENCE, *weights(4), None, None, None, floats(1, 3 * HIDDEN)], {"hidden_size": HIDDEN}, None,
            None, 3),
    ]
)  # fmt: skip
def test_recurrent(row: Row, version: int) -> None:
    row.check(version)
