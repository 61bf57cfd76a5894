"""RotaryEmbedding and CausalConvWithState beyond the node suite: what they refuse, and steps against whole runs."""

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import run_kernel, values


def test_a_causal_convolution_in_steps_is_that_of_the_whole():
    x, weight, bias = values(2, 3, 9), values(3, 1, 4), values(3)
    whole, state = run_kernel("CausalConvWithState", [x, weight, bias], {"activation": "silu"}, 27, 2)
    past, parts = None, []
    for part in np.split(x, [1, 2, 6], axis=2):
        y, past = run_kernel(
            "CausalConvWithState", [np.ascontiguousarray(part), weight, bias, past], {"activation": "silu"}, 27, 2
        )
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, axis=2), whole, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(past, state)
    np.testing.assert_array_equal(state, x[:, :, -3:])


def test_rotation_by_position_keeps_lengths_and_relative_angles():
    angles = np.outer(np.arange(16), [1.0, 0.1]).astype(np.float32)
    q = np.tile(values(1, 1, 1, 4), (1, 1, 3, 1))
    (y,) = run_kernel("RotaryEmbedding", [q, np.cos(angles), np.sin(angles), np.array([[2, 5, 8]])], {}, 23)
    lengths = np.linalg.norm(y, axis=-1)
    np.testing.assert_allclose(lengths, np.linalg.norm(q, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(np.dot(y[0, 0, 0], y[0, 0, 1]), np.dot(y[0, 0, 1], y[0, 0, 2]), rtol=1e-5)


TABLE = np.ones((4, 2), np.float32)


@pytest.mark.parametrize(
    ("op_type", "version", "inputs", "attributes"),
    [
        ("RotaryEmbedding", 23, [values(1, 2, 4), TABLE, TABLE, np.array([[0, 1]])], {}),  # no num_heads
        ("RotaryEmbedding", 23, [values(1, 2, 4), TABLE, TABLE, np.array([[0, 1]])], {"num_heads": 3}),
        ("RotaryEmbedding", 23, [values(4, 4), TABLE, TABLE], {"num_heads": 1}),
        ("RotaryEmbedding", 23, [values(1, 2, 4), TABLE, TABLE, np.array([[0, 4]])], {"num_heads": 1}),
        ("RotaryEmbedding", 23, [values(1, 2, 4), TABLE, TABLE, np.array([[-1, 0]])], {"num_heads": 1}),
        ("RotaryEmbedding", 23, [values(1, 2, 6), TABLE, TABLE, np.array([[0, 1]])], {"num_heads": 1}),
        ("RotaryEmbedding", 23, [values(1, 2, 4), TABLE[None], TABLE[None]], {"num_heads": 1}),
        (
            "RotaryEmbedding",
            23,
            [values(1, 2, 4), TABLE, TABLE, np.array([[0, 1]])],
            {"num_heads": 1, "rotary_embedding_dim": 3},
        ),
        (
            "RotaryEmbedding",
            23,
            [values(1, 2, 4), TABLE, TABLE, np.array([[0, 1]])],
            {"num_heads": 1, "rotary_embedding_dim": 8},
        ),
        ("CausalConvWithState", 27, [values(1, 3, 4), values(2, 1, 3)], {}),
        ("CausalConvWithState", 27, [values(1, 3, 4), values(3, 1, 0)], {}),
        ("CausalConvWithState", 27, [values(3, 4), values(3, 1, 3)], {}),
        ("CausalConvWithState", 27, [values(1, 3, 4), values(3, 1, 3), values(2)], {}),
        ("CausalConvWithState", 27, [values(1, 3, 4), values(3, 1, 3), None, values(1, 3, 3)], {}),
        ("CausalConvWithState", 27, [values(1, 3, 4), values(3, 1, 3)], {"activation": "relu"}),
    ],
)
def test_what_does_not_fit(op_type, version, inputs, attributes):
    with pytest.raises(Error):
        run_kernel(op_type, inputs, attributes, version)
