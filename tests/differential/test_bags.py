"""Embeddings of bags, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, compare
from tests.differential.test_everyday import INTS, make

WEIGHT = make(5, 3)


def vector(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_bags(mode: int) -> None:
    words = vector(3, 1, 1, 4, 0, 2)
    sources = (
        WEIGHT,
        WEIGHT.astype("float64"),
        WEIGHT.astype("float16"),
        make(3, 5).T,
        make(5, 6)[:, ::2],
        INTS,
        WEIGHT[0],
    )
    for weight in sources:
        for starts in (vector(0), vector(0, 2, 2, 5), vector(0, 6), vector(1), vector(0, 7)):
            for padding in (None, 1, -1, 9):
                compare(
                    "aten::embedding_bag", weight, words, starts, False, mode, False, None, False, padding, outputs=4
                )
            compare("aten::embedding_bag", weight, words, starts, False, mode, False, None, False, outputs=4)
    for starts in (vector(0, 6), vector(0, 2, 2, 6)):
        compare("aten::embedding_bag", WEIGHT, words, starts, False, mode, False, None, True, outputs=4)
        compare("aten::embedding_bag", WEIGHT, words, starts, False, mode, False, None, True, 1, outputs=4)
    for more in (vector(5), vector(-1), words.astype(np.int32), words.astype(np.float32)):
        compare("aten::embedding_bag", WEIGHT, more, vector(0), False, mode, False, None, False, outputs=4)
    nothing = np.zeros(0, np.int64)
    for starts in (nothing, vector(0, 0)):
        compare("aten::embedding_bag", WEIGHT, nothing, starts, False, mode, False, None, False, outputs=4)


def test_weights_of_words() -> None:
    words, starts = vector(3, 1, 1, 4), vector(0, 3)
    for factors in (ramp(4), ramp(8)[::2], ramp(4).astype(np.float64), ramp(3), ramp(2, 2)):
        for mode in (0, 1):
            for padding in (None, 1):
                compare(
                    "aten::embedding_bag", WEIGHT, words, starts, False, mode, False, factors, False, padding, outputs=4
                )
