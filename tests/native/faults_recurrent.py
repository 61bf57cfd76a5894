"""Loops of recurrent cells on arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.guarded import ENDS, guarded
from tests.native.test_recurrent import CELLS, QUANTIZED, recur


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("hidden", [1, 3, 15, 17, 64, 70])
@pytest.mark.parametrize("apart", [1, -2])
def test_cells(apart, kind, hidden, end):
    done, out, states = recur(kind, 4, 3, hidden, lambda x: guarded(x, end), apart=apart)
    assert done
    _, expected, others = recur(kind, 4, 3, hidden)
    for found, value in zip((out, *states), (expected, *others), strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize("hidden", [1, 3, 15, 17, 64, 70])
def test_quantized_cells(hidden, zero, end):
    """Less a zero point, weights have 8 bits or 9."""
    done, out, states = recur(QUANTIZED, 4, 1, hidden, lambda x: guarded(x, end), zero=zero)
    assert done
    _, expected, others = recur(QUANTIZED, 4, 1, hidden, zero=zero)
    for found, value in zip((out, *states), (expected, *others), strict=True):
        np.testing.assert_array_equal(found, value)
