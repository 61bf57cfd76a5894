"""Steps of optimisers: several of them towards the least of a square; what they compute, the node suite tests."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import run_kernel

TRAINING = "ai.onnx.preview.training"
OPTIMIZERS: dict[str, tuple[int, dict[str, Any], float]] = {
    "Adagrad": (1, {}, 1.0),
    "Adam": (2, {}, 0.1),
    "Momentum": (1, {"alpha": 0.5, "beta": 0.5, "norm_coefficient": 0.0, "mode": "nesterov"}, 0.1),
}


@pytest.mark.parametrize("op", OPTIMIZERS)
def test_steps_lead_down(op: str) -> None:
    """Two tensors at once: of |x - 1|^2 and |y + 2|^2."""
    states, attributes, rate = OPTIMIZERS[op]
    targets = [np.ones((2, 2), np.float32), np.full(3, -2, np.float32)]
    values = [np.zeros_like(t) for t in targets] * (1 + states)
    for step in range(200):
        gradients = [2 * (x - t) for x, t in zip(values, targets, strict=False)]
        inputs = [np.array(rate), np.array(step), *values[:2], *gradients, *values[2:]]
        values = run_kernel(op, inputs, attributes, 1, 2 * (1 + states), TRAINING)
    for x, target in zip(values, targets, strict=False):
        np.testing.assert_allclose(x, target, atol=0.05)


def test_coefficients_that_overflow_give_no_exception() -> None:
    x = np.ones(2, np.float32)
    inputs = [np.array(0.1), np.array(5), x, x, x, x]
    found = run_kernel("Adam", inputs, {"alpha": 1.0, "beta": 1e300}, 1, 3, TRAINING)
    assert all(y.shape == (2,) for y in found)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes", "words"),
    [
        ("Adagrad", [(2,), (2,)], {}, "3 for each"),
        ("Adam", [(2,), (2,), (2,), (3,)], {}, "different shapes"),
        ("Momentum", [(2,), (2,), (2,)], {"mode": "fast"}, "mode is"),
    ],
)
def test_bad_steps(op: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], words: str) -> None:
    inputs = [np.array(0.1), np.array(1), *(np.zeros(s, np.float32) for s in shapes)]
    with pytest.raises(Error, match=words):
        run_kernel(op, inputs, attributes, 1, 2, TRAINING)
