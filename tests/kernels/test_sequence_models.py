"""RotaryEmbedding and CausalConvWithState beyond the node suite: what they refuse, and steps against whole runs."""

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import run_kernel, values

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
