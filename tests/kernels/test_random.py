"""Random tensors and Dropout: distributions, seeds, types."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from tests.kernels.helpers import bind, run_kernel


def draw(op: str, attrs: dict[str, Any], *inputs: Any) -> np.ndarray:
    return run_kernel(op, list(inputs), attrs, None)[0]


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_probabilities_are_between_0_and_1(bad):
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
