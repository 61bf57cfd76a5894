"""Versions of operators that draw: what is drawn from, its type and shape, and what a seed does."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import irc
from tests.kernels.versions.rows import Row, covers, each, floats, opset_for

MANY = (200, 300)


def drawn(row: Row, version: int, passes: str = "default") -> list[np.ndarray]:
    model, feeds = row.model(opset_for(row.op, version), weights=False)
    return list(irc.compile(model, passes=passes).run(feeds).values())


def check_normal(row: Row, version: int, dtype: Any) -> None:
    (x,) = drawn(row, version)
    assert (x.dtype, x.shape) == (dtype, MANY)
    wide = x.astype(np.float64)
    assert abs(wide.mean() - 3) < 0.05
    assert abs(wide.std() - 2) < 0.05
    assert abs((wide < 3 + 2).mean() - 0.8413) < 0.01  # one standard deviation above the mean


def check_uniform(row: Row, version: int, dtype: Any) -> None:
    (x,) = drawn(row, version)
    assert (x.dtype, x.shape) == (dtype, MANY)
    wide = x.astype(np.float64)
    assert -1 <= wide.min() < -0.99
    assert 2.99 < wide.max() <= 3
    np.testing.assert_allclose(np.histogram(wide, 4)[0] / wide.size, 0.25, atol=0.01)


NORMAL: dict[str, Any] = {"mean": 3.0, "scale": 2.0, "seed": 1.0}
UNIFORM: dict[str, Any] = {"low": -1.0, "high": 3.0, "seed": 1.0}


@covers("RandomNormal")
def test_normal(version: int) -> None:
    check_normal(Row("RandomNormal", [], NORMAL | {"shape": MANY}), version, np.float32)
    half = NORMAL | {"shape": MANY, "dtype": TensorProto.FLOAT16}
    check_normal(Row("RandomNormal", [], half), version, np.float16)


@covers("RandomNormalLike")
def test_normal_like(version: int) -> None:
    check_normal(Row("RandomNormalLike", [np.zeros(MANY)], NORMAL), version, np.float64)
    check_normal(Row("RandomNormalLike", [np.zeros(MANY, np.int32)], NORMAL | {"dtype": 1}), version, np.float32)


@covers("RandomUniform")
def test_uniform(version: int) -> None:
    check_uniform(Row("RandomUniform", [], UNIFORM | {"shape": MANY}), version, np.float32)


@covers("RandomUniformLike")
def test_uniform_like(version: int) -> None:
    check_uniform(Row("RandomUniformLike", [np.zeros(MANY, np.float32)], UNIFORM), version, np.float32)
    double = UNIFORM | {"dtype": TensorProto.DOUBLE}
    check_uniform(Row("RandomUniformLike", [np.zeros(MANY, np.float32)], double), version, np.float64)


@covers("Bernoulli")
def test_bernoulli(version: int) -> None:
    p = np.tile(np.array([0.0, 0.25, 1.0], np.float32), (20_000, 1))
    (x,) = drawn(Row("Bernoulli", [p], {"dtype": TensorProto.INT32}), version)
    assert x.dtype == np.int32
    np.testing.assert_allclose(x.mean(0), [0, 0.25, 1], atol=0.02)


@covers("Multinomial")
def test_multinomial(version: int) -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        (x,) = drawn(Row("Multinomial", [np.log(p)], {"sample_size": 20_000, "seed": 1.0}), version)
    assert (x.dtype, x.shape) == (np.int32, (2, 20_000))
    np.testing.assert_allclose(np.stack([np.bincount(row, minlength=3) for row in x]) / 20_000, p, atol=0.02)


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform"])
def test_a_seed_fixes_what_is_drawn(op: str) -> None:
    for version in (1, 22):
        row = Row(op, [], {"shape": MANY, "seed": 3.0})
        first, again = (drawn(row, version, passes)[0] for passes in ("none", "default"))
        np.testing.assert_array_equal(first, again)


X = floats(*MANY, low=1, high=2)


def kept(dtype: Any) -> Any:
    return lambda x, *_, **attributes: (x, np.ones(x.shape, dtype))


@each(
    [
        Row("Dropout", [X], {"is_test": 1}, [6], lambda x, is_test: x),
        Row("Dropout", [X], {"ratio": 0.3}, [6], lambda x, ratio: x),  # irc does not train unless told to by an input
        Row("Dropout", [X], {"ratio": 0.3}, [7, 10], lambda x, ratio: x),
        Row("Dropout", [X], {}, [7], kept(np.float32), 2),
        Row("Dropout", [X], {}, [10, 12, 13, 22], kept(np.bool_), 2),
        Row("Dropout", [X, np.array(0.3, np.float32)], {}, [12, 13, 22], kept(np.bool_), 2),
        Row("Dropout", [X, np.array(0, np.float32), np.array(True)], {}, [12, 13, 22], kept(np.bool_), 2),
    ]
)
def test_dropout_keeps_all(row: Row, version: int) -> None:
    row.check(version)


@pytest.mark.parametrize("version", [12, 13, 22])
def test_dropout_in_training(version: int) -> None:
    """A share of elements is dropped, and the others are scaled up by as much."""
    y, mask = drawn(Row("Dropout", [X, np.array(0.25, np.float32), np.array(True)], outputs=2), version)
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - 0.75) < 0.01
    np.testing.assert_allclose(y, np.where(mask, X / np.float32(0.75), 0), rtol=1e-6)
