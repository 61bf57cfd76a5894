"""Gathering and scattering."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from tests.kernels.helpers import check_against_ort, run_kernel, values


def indices(*shape: int, size: int, seed: int = 0, dtype: Any = np.int64) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(-size, size, shape).astype(dtype)


@pytest.mark.parametrize(
    ("op", "shape", "of", "attrs"),
    [
        ("GatherElements", (3, 4), (3,), {"axis": 0}),
        ("GatherElements", (3, 4), (2, 5), {"axis": 0}),
        *[("GatherND", (2, 2), of, {"batch_dims": n}) for of, n in (((2, 3), 0), ((3, 1), 1), ((2,), 1), ((), 0))],
    ],
)
def test_indices_that_do_not_fit(op, shape, of, attrs):
    with pytest.raises(Error, match="do not fit"):
        run_kernel(op, [values(*shape), np.zeros(of, np.int64)], attrs, 13)


# -- scattering ---------------------------------------------------------------------


@given(st.data())
def test_gather_is_that_of_numpy(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    of = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    at = np.asarray(indices(*of, size=shape[axis]))
    x = values(*shape)
    np.testing.assert_array_equal(run_kernel("Gather", [x, at], {"axis": axis}, 13)[0], np.take(x, at, axis))


# -- TensorScatter, ReverseSequence ----------------------------------------------------


def test_bad_tensor_scatter():
    cache = values(2, 4, 3)
    for update, starts, attrs in (
        (values(2, 2, 3), np.array([0, 3]), {}),
        (values(2, 2, 4), None, {}),
        (values(2, 2, 3), None, {"axis": 0}),
        (values(2, 2, 3), None, {"mode": "spiral"}),
        (values(2, 2, 3), np.array([0, 2**63 - 1]), {}),
        (values(2, 2, 3), np.array([0]), {}),
        (values(2, 2, 3), np.array(0), {}),
        (values(3), None, {}),
        (values(2, 2, 3, 1), None, {"axis": 2}),
    ):
        with pytest.raises(Error):
            run_kernel("TensorScatter", [cache, update, starts], attrs, 24)
    with pytest.raises(Error, match="a cache of 0"):
        run_kernel("TensorScatter", [cache[:, :0], values(2, 2, 3), None], {"mode": "circular"}, 24)


def test_circular_starts_of_any_size():
    cache, update, starts = values(2, 5, 3), values(2, 2, 3, seed=1), np.array([2**63 - 1, -(2**63)])
    inputs = [cache, update, np.array([int(i) % 5 for i in starts])]
    expected = run_kernel("TensorScatter", inputs, {"mode": "circular"}, 24)[0]
    found = run_kernel("TensorScatter", [cache, update, starts], {"mode": "circular"}, 24)[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("batch_axis", "time_axis"), [(1, 0), (0, 1)])
def test_reverse_sequence(batch_axis, time_axis):
    x = values(4, 4, 3)
    attrs = {"batch_axis": batch_axis, "time_axis": time_axis}
    check_against_ort("ReverseSequence", [x, np.array([4, 1, 3, 2])], attrs, 10)
    assert (run_kernel("ReverseSequence", [x, np.zeros(4, np.int64)], attrs, 28)[0] == x).all()
    for lengths in ([5, 1, 1, 1], [-1, 1, 1, 1], [1, 1]):
        with pytest.raises(Error):
            run_kernel("ReverseSequence", [x, np.array(lengths)], attrs, 10)
    with pytest.raises(Error, match="must be 0 and 1"):
        run_kernel("ReverseSequence", [x, np.zeros(4, np.int64)], {"batch_axis": 0, "time_axis": 0}, 10)
