"""The native mathematical functions: their errors, in units in the last place, and what they give of special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from benchmarks.native.accuracy import WIDE, errors, operands, references
from benchmarks.native.harness import PLAIN, compiled
from irc.native.functions import BOUNDS, FUNCTIONS

COUNT = 1 << 16
CPUS = (None, PLAIN)


def test_each_function_has_a_bound_and_a_reference():
    assert BOUNDS.keys() == FUNCTIONS.keys() == references().keys()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name: str, dtype: Any, cpu: str | None):
    if dtype is np.float64 and not WIDE:
        pytest.skip("extended precision is no wider than float64")
    reference = references()[name]
    given = operands(reference, dtype, COUNT, seed=1)
    found = compiled(FUNCTIONS[name], dtype, len(given), cpu=cpu)(*given)
    result = errors(name, given, found)
    assert not result.wrong_nans, result
    assert not result.wrong_signs, result
    assert result.ratio <= 1, result


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lanes_do_not_matter(name: str, lanes: int):
    given = operands(references()[name], np.float32, 1 << 10, seed=2)
    few, many = (compiled(FUNCTIONS[name], np.float32, len(given), count)(*given) for count in (lanes, 32))
    np.testing.assert_array_equal(few, many)
