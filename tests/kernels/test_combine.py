"""Combining at places by numbers is what NumPy's ``ufunc.at`` does, to the last bit."""

import numpy as np
import pytest

from irc.runtime.kernels.numerics import combine_at


@pytest.mark.parametrize("place", [3, -4])
def test_a_place_out_of_range(place: int) -> None:
    out = np.zeros((3, 1000), np.float32)
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0 with size 3"):
        combine_at(np.add, out, [np.array([0, 1, place])], np.ones((3, 1000), np.float32))
    assert not out.any()
