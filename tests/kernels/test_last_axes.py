"""Sums and maxima along the last axes are those of NumPy, whatever way is taken."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.kernels import numerics
from irc.runtime.kernels.numerics import add_reduce
from tests.effort import Tune

TYPES = ["float32", "float64", "int32", "uint8", "bool", "float16"]


@pytest.fixture(autouse=True, scope="module")
def of_small_arrays() -> Iterator[None]:
    """Arrays of a few elements are cut, transposed and added in parts as large ones are."""
    with patch.multiple(numerics, MANY_ROWS=2, SHORT=3, _PART=4, _BLOCK=5):
        yield


@st.composite
def arrays(draw: st.DrawFn, types: list[str] = TYPES) -> np.ndarray[Any, Any]:
    """Whole numbers, whose sums are exact, in some order in memory, with a NaN or infinity among floats."""
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 9, 17]), min_size=1, max_size=3)))
    dtype = np.dtype(draw(st.sampled_from(types)))
    x = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    if dtype.kind == "f" and x.size and draw(st.booleans()):
        x.reshape(-1)[draw(st.integers(0, x.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -7]))
    if draw(st.booleans()):
        x = np.asfortranarray(x)
    return x[..., ::2] if draw(st.integers(0, 5)) == 0 else x


def axes_of(x: np.ndarray[Any, Any]) -> st.SearchStrategy[tuple[int, ...]]:
    """Some axes of ``x``, in any order."""
    return st.lists(st.integers(0, x.ndim - 1), unique=True, max_size=x.ndim).map(tuple)


@given(arrays(), st.data(), st.booleans(), st.booleans())
def test_sums(x: np.ndarray[Any, Any], data: st.DataObject, keepdims: bool, given_out: bool) -> None:
    axes = data.draw(axes_of(x))
    dtype = data.draw(st.sampled_from([None, np.dtype(np.float32), np.dtype(np.int64)]))
    with np.errstate(all="ignore"):
        expected = np.asarray(np.add.reduce(x, axes, dtype=dtype or x.dtype, keepdims=keepdims))
        out = np.full_like(expected, 9) if given_out else None
        found = add_reduce(x, axes, keepdims, dtype, out)
    assert out is None or found is out
    np.testing.assert_array_equal(found, expected, strict=True) if expected.ndim else np.testing.assert_equal(
        found, expected
    )


@pytest.mark.parametrize("shape", [(1, 1_000_001), (4, 1_000_001), (64, 4096), (64, 8191)])
def test_many_numbers_lose_few_digits(shape: tuple[int, int], tune: Tune) -> None:
    tune("irc.runtime.kernels.numerics._PART", 1 << 16)
    x = np.random.default_rng(0).random(shape, np.float32)
    exact = x.astype(np.float64).sum(1)
    assert (np.abs(add_reduce(x, (1,)) / exact - 1) < 4e-7).all()
