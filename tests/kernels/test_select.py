"""Compress, NonZero, Unique, TopK."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.kernels import index
from tests.effort import Tune
from tests.kernels.helpers import check_against_ort, run_kernel


def values(*shape: int, levels: int = 5, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, levels, shape).astype(dtype)


@pytest.mark.parametrize("sort", [0, 1, None])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique(sort, axis):
    x = np.array([[2, 1, 1, 2], [1, 3, 3, 1], [2, 1, 1, 2]], np.float32)
    for outputs in (1, 2, 3, 4):
        check_against_ort("Unique", [x], {"sorted": sort, "axis": axis}, 11, n_outputs=outputs)
    if axis is None:
        check_against_ort("Unique", [np.array(["b", "a", "b"], object)], {"sorted": sort}, 11, n_outputs=4)


@pytest.mark.parametrize("columns", [1, 3, 8])
@pytest.mark.parametrize("shape", [(60, 3), (40, 20), (9, 2, 3), (30, 1), (5, 0), (0, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_distinct_rows(columns, shape, dtype, tune):
    """As NumPy finds them; of those with NaNs, none equals another."""
    tune("irc.runtime.kernels.index._COLUMNS", columns)
    for levels in (2, 3, 50):
        x = np.random.default_rng(levels).integers(0, levels, shape).astype(dtype)
        if dtype is np.float32:
            x[x == 1] = -0.0
            x.flat[::7], x.flat[1::11] = np.nan, np.inf
        found = run_kernel("Unique", [x], {"axis": 0}, 11, n_outputs=4)
        values, first, inverse, counts = np.unique(x, True, True, True, axis=0)
        for ours, expected in zip(found, (values, first, inverse.reshape(-1), counts), strict=True):
            assert ours.dtype == expected.dtype
            assert ours.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_top_k_of_extremes(dtype):
    """Nothing is negated, which the smallest integer and unsigned numbers would not survive."""
    info = np.iinfo(dtype)
    x = np.array([info.max, info.min, 0, info.min, info.max], dtype)
    found = run_kernel("TopK", [x, np.array([5])], {}, 24, n_outputs=2)
    assert found[0].tolist() == sorted(x.tolist(), reverse=True)
    assert found[1].tolist()[:2] == [0, 4]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_what_is_no_number_comes_last(dtype):
    x = np.array([1, np.nan, -2, 5], dtype)
    for largest, order in ((1, [1, 3, 0, 2]), (0, [2, 0, 3, 1])):
        found, indices = run_kernel("TopK", [x, np.array([4])], {"largest": largest}, 24, n_outputs=2)
        assert indices.tolist() == order
        np.testing.assert_array_equal(found.view(np.uint8), x[order].view(np.uint8))
    for axis in (None, 0):
        found, first, _, counts = run_kernel("Unique", [x], {"axis": axis}, 11, n_outputs=4)
        assert (first.tolist(), counts.tolist()) == ([2, 0, 3, 1], [1] * 4)
        np.testing.assert_array_equal(found.view(np.uint8), x[first].view(np.uint8))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.data())
def test_top_k_is_a_stable_sort(numbers, data):
    k = data.draw(st.integers(0, len(numbers)))
    largest = data.draw(st.booleans())
    x = np.array(numbers)
    found, indices = run_kernel("TopK", [x, np.array(k)], {"largest": int(largest)}, 11, n_outputs=2)
    order = sorted(range(len(numbers)), key=lambda i: -numbers[i] if largest else numbers[i])[:k]
    assert indices.tolist() == order
    assert found.tolist() == [numbers[i] for i in order]


@pytest.mark.covering(2)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8])
@pytest.mark.parametrize("parts", [4, 512])
@pytest.mark.parametrize("kind", ["distinct", "equal", "few values", "NaNs", "all NaN"])
def test_few_of_many_are_those_that_sorting_gives(kind: str, dtype: type, largest: int, parts: int, tune: Tune) -> None:
    tune("irc.runtime.kernels.index._PARTS", parts)
    rng = np.random.default_rng(0)
    x = rng.permutation(6000).reshape(3, 500, 4) % (256 if dtype is np.uint8 else 9999)
    x = {"equal": np.zeros_like(x), "few values": x % 5}.get(kind, x).astype(dtype)
    if "NaN" in kind and np.dtype(dtype).kind == "f":
        x[rng.random(x.shape) < (0.01 if kind == "NaNs" else 2)] = np.nan
    for k in (1, 2, 7, 62):
        inputs, attributes = [x, np.array([k])], {"axis": 1, "largest": largest}
        found = run_kernel("TopK", inputs, attributes, 11, 2)
        few = index._FEW
        tune("irc.runtime.kernels.index._FEW", 1 << 30)
        expected = run_kernel("TopK", inputs, attributes, 11, 2)
        tune("irc.runtime.kernels.index._FEW", few)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
