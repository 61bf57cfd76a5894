"""Dynamic quantization by native loops, against NumPy's, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("llvmlite")

from irc.native.inner_loops import LOOPS
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.quantized import dynamically_quantized
from tests.native.helpers import Pacing

Array = np.ndarray[Any, Any]

SINGLE, BYTE = np.dtype("f4"), np.dtype("u1")


def quantized(x: Array, empty: Any = np.empty) -> tuple[Array, ...]:
    """The integers, the scale and the zero point of ``x``, in arrays that ``empty`` makes, by machine code."""
    made = empty(x.shape, BYTE), empty((), SINGLE), empty((), BYTE)
    assert LOOPS.quantize(x, *made)
    return made


def check(x: Array) -> None:
    with np.errstate(all="ignore"):
        expected = dynamically_quantized(x)
    for found, value in zip(quantized(x), expected, strict=True):
        assert found.dtype == value.dtype and found.tobytes() == value.tobytes()


@settings(max_examples=200, deadline=None)
@given(arrays(SINGLE, st.integers(1, 150), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_any_numbers(x):
    check(x)


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1e-3, 1, 1e30])
@pytest.mark.parametrize("shift", [-10, -1, 0, 1, 10])
@pytest.mark.parametrize("size", [1, 15, 63, 64, 65, 1000])
def test_random_numbers(size, shift, scale):
    x = np.random.default_rng(size).standard_normal(size)
    check(((x + shift) * scale).astype(SINGLE))


@pytest.mark.parametrize("x", [[0.0], [-0.0, 0.0], [1.0], [-1.0], [0.5] * 70, [3e38, -3e38]])
def test_ranges_of_one_number(x):
    check(np.array(x, SINGLE))


def test_ties_go_to_even():
    check(np.array([*np.arange(-128, 128) + 0.5, 255.0], SINGLE))


def test_arrays_in_any_order():
    x = np.random.default_rng(1).standard_normal((20, 30)).astype(SINGLE)
    for each in (x.T, x[::2, ::-1], x[:, ::3], np.asfortranarray(x)):
        codes, scale, zero = quantized(each)
        expected = dynamically_quantized(each)
        np.testing.assert_array_equal(codes, expected[0])
        assert (scale, zero) == expected[1:]


@pytest.mark.parametrize("size", [2, 100])
def test_nan_makes_zeros(size):
    x = np.ones(size, SINGLE)
    x[1] = np.nan
    codes, scale, zero = quantized(x)
    assert np.isnan(scale) and not zero and not codes.any()


def test_others_are_left():
    codes, scale, zero = np.empty(3, BYTE), np.empty((), SINGLE), np.empty((), BYTE)
    assert not LOOPS.quantize(np.ones(3), codes, scale, zero)
    assert not LOOPS.quantize(np.ones(0, SINGLE), codes[:0], scale, zero)


def test_long_calls_pause(monkeypatch):
    guard = Pacing()
    monkeypatch.setattr(CURRENT.scope, "guard", guard)
    quantized(np.ones(1 << 22, SINGLE))
    assert guard.times > 4
