"""Running totals: NumPy's own to the last bit, whatever way they are taken."""

import numpy as np
import pytest

from irc.runtime.kernels.numerics import SIZE, accumulate


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.logaddexp])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((64, 256), 0),
        ((2, 33, 256), 1),
        ((40, 8, 64), 0),
        ((9, 40, 64), 1),
        ((SIZE,), 0),
        ((0, SIZE), 0),
        ((1, SIZE), 0),
    ],
)
def test_totals_are_those_of_numpy(ufunc, shape, axis):
    x = np.random.default_rng(0).normal(1, 0.1, shape).astype(np.float32)
    for source in (x, np.flip(x, axis), np.asfortranarray(x)):
        expected, found = ufunc.accumulate(source, axis), np.full(shape, 7, np.float32)
        accumulate(ufunc, source, axis, found)
        np.testing.assert_array_equal(found, expected, strict=True)
        backwards = np.flip(np.full(shape, 7, np.float32), axis)
        accumulate(ufunc, source, axis, backwards)
        np.testing.assert_array_equal(backwards, expected)
