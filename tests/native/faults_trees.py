"""Loops over trees on arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from irc.native.inner_loops import LOOPS
from irc.runtime.bounds import NONE
from irc.runtime.kernels.ml_trees import TreeTables
from tests.native.guarded import ENDS, guarded
from tests.native.test_trees import forest, inputs, totals


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("seed", range(5))
def test_forests(seed, dtype, end):
    made, x = forest(seed, 4, 5, 3, 2, [0, 3], dtype), inputs(seed, 6, 3, dtype)
    assert made.tables is not None
    *arrays, modes, depth = made.tables
    tables = TreeTables(*[guarded(array, end, is_read_only=True) for array in arrays], modes, depth)
    found = guarded(np.zeros((6, 2), dtype), end)
    x = guarded(x, end, is_read_only=True)
    vote = LOOPS.voter(x, tables, found)
    assert vote is not None and vote(x, found)
    np.testing.assert_array_equal(found, totals(made, x, 2, "SUM", NONE))
