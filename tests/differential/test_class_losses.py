"""Losses by margins and of sequences, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, compare
from tests.differential.test_everyday import INTS, TURNED, X, make


def vector(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_margins(reduction: int) -> None:
    classes = vector(0, 3, 1)
    for x in (X, TURNED, X.astype("float64"), INTS):
        for target in (classes, vector(0, 4, 1), vector(0, -1, 1), vector(0, 1), classes.astype(np.int32)):
            for p, margin in ((1, 1), (2, 0.5), (3, 1)):
                for weight in (None, ramp(4).astype(x.dtype), ramp(3), ramp(4).astype(np.float64)):
                    compare("aten::multi_margin_loss", x, target, p, margin, weight, reduction)
    for target in (vector(1), np.array(1), vector(1, 1), vector(1)[None]):
        compare("aten::multi_margin_loss", X[0], target, 1, 1, None, reduction)
    compare("aten::multi_margin_loss", X[:, :0], vector(0, 0, 0), 1, 1, None, reduction)
    compare("aten::multi_margin_loss", make(2, 3, 4), vector(0, 0), 1, 1, None, reduction)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_sequences(reduction: int) -> None:
    logs, words = -make(6, 2, 4, dtype="float64", low=0.1), np.array([[1, 2, 2], [3, 1, 0]])
    flat = vector(1, 2, 2, 3, 1)
    for scores in (logs, logs.astype("float32"), logs[:, ::-1].copy().transpose(2, 1, 0).copy().T):
        for targets in (words, flat, words.astype(np.int32), words[:1], flat[:4], words.astype(np.float32)):
            for steps in ([6, 5], [6, 1], [0, 5], [7, 5], [6]):
                for zero in (False, True):
                    compare("aten::ctc_loss", scores, targets, steps, [3, 2], 0, reduction, zero)
                compare("aten::ctc_loss", scores, targets, vector(*steps), vector(3, 2), 0, reduction, False)
    for lengths in ([3, 0], [0, 0], [4, 2], [3, -1]):
        compare("aten::ctc_loss", logs, words, [6, 0], lengths, 0, reduction, False)
    for blank in (3, 4, -1):
        compare("aten::ctc_loss", logs, words, [6, 5], [3, 2], blank, reduction, False)
    for targets in (words[0], words[:1], words[0, :2]):
        compare("aten::ctc_loss", logs[:, 0], targets, [6], [3], 0, reduction, False)
        compare("aten::ctc_loss", logs[:, 0], targets, np.array(6), np.array(3), 0, reduction, False)
    compare("aten::ctc_loss", logs[:0], words, [0, 0], [3, 2], 0, reduction, False)
