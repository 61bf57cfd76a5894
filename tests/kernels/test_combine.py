"""Combining at places by numbers is what NumPy's ``ufunc.at`` does, to the last bit."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.kernels import numerics
from irc.runtime.kernels.numerics import combine_at

UFUNCS = [np.add, np.multiply, np.maximum, np.minimum]
DTYPES = ["f4", "f8", "f2", "i8", "i4", "u1", "?"]


@given(
    data=st.data(),
    many=st.sampled_from([1, numerics.WORTH_NUMBERING]),
    block=st.sampled_from([1, 7, numerics.NUMBERED]),
)
def test_each_occurrence_counts_in_order(data: st.DataObject, many: int, block: int) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    depth = data.draw(st.integers(1, len(shape)))
    count = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=2))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(DTYPES))
    start = data.draw(st.sampled_from([0, -1]))  # whether places are counted from the end, too
    places = [
        rng.integers(start * d, d, count if a == 0 or rng.random() < 0.5 else count[-1:])
        for a, d in enumerate(shape[:depth])
    ]
    values = (rng.standard_normal((*count, *shape[depth:])) * 5).astype(dtype)
    out = (rng.standard_normal(shape) * 5).astype(dtype)
    expected, ufunc = out.copy(), data.draw(st.sampled_from(UFUNCS))
    with np.errstate(all="ignore"), patch.multiple(numerics, WORTH_NUMBERING=many, NUMBERED=block):
        ufunc.at(expected, tuple(places), values)
        combine_at(ufunc, out, places, values)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("place", [3, -4])
def test_a_place_out_of_range(place: int) -> None:
    out = np.zeros((3, 1000), np.float32)
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0 with size 3"):
        combine_at(np.add, out, [np.array([0, 1, place])], np.ones((3, 1000), np.float32))
    assert not out.any()
