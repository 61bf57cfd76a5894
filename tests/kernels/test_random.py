"""Random tensors and Dropout: distributions, seeds, types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from tests.kernels.helpers import bind, check_against_ort, run_kernel

MANY = [200, 300]


def draw(op: str, attrs: dict[str, Any], *inputs: Any) -> np.ndarray:
    return run_kernel(op, list(inputs), attrs, None)[0]


@pytest.mark.parametrize("like", [False, True])
def test_normal(like):
    attrs: dict[str, Any] = {"mean": 3.0, "scale": 2.0, "seed": 1.0}
    x = draw("RandomNormalLike", attrs, np.zeros(MANY)) if like else draw("RandomNormal", attrs | {"shape": MANY})
    assert x.shape == tuple(MANY)
    assert x.dtype == (np.float64 if like else np.float32)
    assert abs(x.mean() - 3) < 0.05
    assert abs(x.std() - 2) < 0.05


@pytest.mark.parametrize("like", [False, True])
def test_uniform(like):
    attrs: dict[str, Any] = {"low": -1.0, "high": 3.0, "seed": 1.0, "dtype": DType.FLOAT16.onnx}
    x = draw("RandomUniformLike", attrs, np.zeros(MANY)) if like else draw("RandomUniform", attrs | {"shape": MANY})
    assert x.dtype == np.float16
    assert -1 <= x.min() < -0.99
    assert 2.99 < x.max() <= 3
    assert abs(x.astype(np.float64).mean() - 1) < 0.05


def test_bernoulli():
    p = np.array([0.0, 1.0, 0.3] * 10_000).reshape(-1, 3)
    x = draw("Bernoulli", {"dtype": DType.INT32.onnx}, p)
    assert x.dtype == np.int32
    np.testing.assert_allclose(x.mean(axis=0), [0, 1, 0.3], atol=0.03)
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(Error, match="probability"):
            draw("Bernoulli", {}, np.array([bad]))


def test_multinomial():
    p = np.array([[0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    with np.errstate(divide="ignore"):
        x = draw("Multinomial", {"sample_size": 20_000, "seed": 3.0}, np.log(p) + np.array([[500], [0]]))
    assert (x.dtype, x.shape) == (np.int32, (2, 20_000))
    found = np.stack([np.bincount(row, minlength=3) / row.size for row in x])
    np.testing.assert_allclose(found, p, atol=0.02)
    assert draw("Multinomial", {"dtype": DType.INT64.onnx}, np.zeros((2, 1))).tolist() == [[0], [0]]
    with pytest.raises(Error, match="classes"):
        draw("Multinomial", {}, np.zeros(3))


CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("RandomNormal", {"shape": [50]}, []),
    ("RandomUniform", {"shape": [50]}, []),
    ("RandomNormalLike", {}, [np.zeros(50)]),
    ("RandomUniformLike", {}, [np.zeros(50)]),
    ("Bernoulli", {}, [np.full(50, 0.5)]),
    ("Multinomial", {"sample_size": 50}, [np.zeros((1, 9))]),
    ("Dropout", {}, [np.ones(50), np.array(0.5), np.array(True)]),
]


@pytest.mark.parametrize(("op", "attrs", "inputs"), CASES, ids=[c[0] for c in CASES])
def test_seeds(op, attrs, inputs):
    """A seed gives the same numbers at each run; without one every run and every node differs."""
    seeds: list[float] = [1, 2] if op == "Dropout" else [1.0, 2.0]
    first, other = (bind(op, attrs | {"seed": s}, None, len(inputs)) for s in seeds)
    np.testing.assert_array_equal(first(*inputs), first(*inputs))
    assert (first(*inputs) != other(*inputs)).any()
    free, too = (bind(op, attrs, None, len(inputs)) for _ in range(2))
    assert (free(*inputs) != free(*inputs)).any()
    assert (free(*inputs) != too(*inputs)).any()


def test_shapes_are_checked():
    for shape in ([-1], [1 << 30, 1 << 30]):
        with pytest.raises(Error):
            bind("RandomNormal", {"shape": shape}, None, 0)


# -- Dropout --------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [7, 10, 12, 13])
def test_dropout_at_inference(opset):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    attrs = {"ratio": 0.3} if opset < 12 else {}
    check_against_ort("Dropout", [x], attrs, opset)
    if opset >= 12:  # before, what the mask holds at inference was not specified
        check_against_ort("Dropout", [x], attrs, opset, n_outputs=2)
    out, mask = run_kernel("Dropout", [x], attrs, 7 if opset == 7 else opset, n_outputs=2)
    np.testing.assert_array_equal(out, x)
    assert mask.all()


def test_dropout_before_opset_7():
    """What a framework left in a model that it exported: nothing is dropped."""
    x = np.ones((2, 3), np.float32)
    for attrs in ({"is_test": 1}, {"is_test": 0, "ratio": 0.9}):
        np.testing.assert_array_equal(run_kernel("Dropout", [x], attrs, 6)[0], x)
    assert run_kernel("Dropout", [x], {}, 6, n_outputs=2)[1].dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_dropout_in_training(dtype):
    x = np.full((100, 100), 3, dtype)
    inputs = [x, np.array(0.25, np.float32), np.array(True)]
    out, mask = run_kernel("Dropout", inputs, {}, 13, n_outputs=2)
    assert out.dtype == dtype
    assert mask.dtype == bool
    assert abs(mask.mean() - 0.75) < 0.03
    np.testing.assert_allclose(out, np.where(mask, 4, 0))
    kept = run_kernel("Dropout", [x, np.array(0.0), np.array(True)], {}, 13)[0]
    np.testing.assert_array_equal(kept, x)
    for ratio in (1.0, -0.5):
        with pytest.raises(Error, match="ratio"):
            run_kernel("Dropout", [x, np.array(ratio), np.array(True)], {}, 13)
