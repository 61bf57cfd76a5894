"""Loops over windows of arrays next to pages that may not be touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.native.inner_loops import LOOPS
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.pool import maxima, means
from irc.runtime.kernels.support import as_constant
from irc.runtime.kernels.windows import columns
from tests.effort import examples
from tests.native.guarded import ENDS, End, guarded, guarded_empty
from tests.native.test_convolutions import check_convolution
from tests.native.test_windows import LAYOUTS, laid, random, windows

Array = np.ndarray[Any, Any]

SINGLE = np.dtype("f4")
DTYPES = [np.dtype(t) for t in ("f4", "f8", "f2")]
of_many = examples(25)


def result(x: Array, axes: Any, channels: int, end: End) -> Array:
    return guarded_empty((x.shape[0], channels, *[a.out for a in axes]), x.dtype, end)


@pytest.mark.parametrize("end", ENDS)
@of_many
@given(windows(), st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.integers(1, 2), st.booleans())
def test_depthwise_convolution(end, axes, dtype, layout, sharing, biased):
    x = guarded(laid(random((2, 3, *[a.size for a in axes]), dtype, 1), layout), end, is_read_only=True)
    w = guarded(random((3 * sharing, 1, *[a.kernel for a in axes]), dtype, 2), end, is_read_only=True)
    b = guarded(random((3 * sharing,), dtype, 3), end, is_read_only=True) if biased else None
    out = result(x, axes, 3 * sharing, end)
    assert LOOPS.depthwise(x, w, b, axes, out)
    np.testing.assert_allclose(out.astype("f8"), convolve(x, w, b, 3, axes).astype("f8"), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("end", ENDS)
@of_many
@given(windows(), st.sampled_from(LAYOUTS), st.integers(1, 40), st.integers(1, 20), st.integers(1, 2), st.booleans())
def test_convolution(end, axes, layout, features, channels, group, biased):
    shape = 2, channels * group, *[a.size for a in axes]
    x = guarded(laid(random(shape, SINGLE, 1), layout), end, is_read_only=True)
    w = random((features * group, channels, *[a.kernel for a in axes]), SINGLE, 2)
    w = as_constant(guarded(w, end, is_read_only=True))
    b = as_constant(guarded(random((features * group,), SINGLE, 3), end, is_read_only=True)) if biased else None
    out = result(x, axes, features * group, end)
    if LOOPS.convolution(x, w, b, group, axes, out):
        check_convolution(x, w, b, group, axes, out)


@pytest.mark.parametrize("end", ENDS)
@of_many
@given(windows(), st.sampled_from([*DTYPES, *map(np.dtype, ("i1", "u2", "i8"))]), st.sampled_from(LAYOUTS))
def test_maxima(end, axes, dtype, layout):
    x = guarded(laid(random((2, 3, *[a.size for a in axes]), dtype, 1), layout), end, is_read_only=True)
    out = result(x, axes, 3, end)
    assert LOOPS.maxima(x, axes, out)
    np.testing.assert_array_equal(out, maxima(x, axes))


@pytest.mark.parametrize("end", ENDS)
@of_many
@given(windows(), st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.booleans())
def test_means(end, axes, dtype, layout, include):
    x = guarded(laid(random((2, 3, *[a.size for a in axes]), dtype, 1), layout), end, is_read_only=True)
    out = result(x, axes, 3, end)
    assert LOOPS.means(x, axes, include, None, out)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out.astype("f8"), means(x, axes, include).astype("f8"), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("end", ENDS)
@of_many
@given(windows(), st.sampled_from([*DTYPES, np.dtype("i1")]), st.data())
def test_columns(end, axes, dtype, data):
    x = guarded(random((3, *[a.size for a in axes]), dtype, 1), end, is_read_only=True)
    start = data.draw(st.integers(0, axes[0].out - 1))
    expected = columns(x, axes, start, axes[0].out - start)
    out = guarded_empty(expected.shape, dtype, end)
    assert LOOPS.columns(x, axes, start, out)
    np.testing.assert_array_equal(out, expected)
