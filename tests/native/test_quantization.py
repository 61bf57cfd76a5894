"""Dynamic quantization by native loops, against NumPy's, to the bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.effort import examples
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

from irc.native.inner_loops import LOOPS
from irc.runtime.kernels.quantized import dequantize_linear, dynamically_quantized, quantize_linear

Array = np.ndarray[Any, Any]

SINGLE, BYTE = np.dtype("f4"), np.dtype("u1")


def quantized(x: Array) -> tuple[Array, ...]:
    """The integers, the scale and the zero point of ``x``, by machine code."""
    made = fresh(x.shape, BYTE), fresh((), SINGLE), fresh((), BYTE)
    assert LOOPS.quantize(placed(x), *made)
    return made


def check(x: Array) -> None:
    with np.errstate(all="ignore"):
        expected = dynamically_quantized(x)
    for found, value in zip(quantized(x), expected, strict=True):
        assert found.dtype == value.dtype and found.tobytes() == value.tobytes()


@examples(200)
@given(arrays(SINGLE, st.integers(1, 150), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_any_numbers(x):
    check(x)


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1e-3, 1, 1e30])
@pytest.mark.parametrize("shift", [-10, -1, 0, 1, 10])
@pytest.mark.parametrize("size", [1, 15, 63, 64, 65, 1000])
def test_random_numbers(size, shift, scale):
    x = np.random.default_rng(size).standard_normal(size)
    check(((x + shift) * scale).astype(SINGLE))


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


def test_long_calls_pause(pacing):
    quantized(np.ones(1 << 22, SINGLE))
    assert pacing.times > 4


INTEGERS = [np.dtype(name) for name in ("i1", "u1", "i2", "u2")]


def linear(x: Array, scale: Array, zero: Array | None, axis: int, dtype: np.dtype[Any]) -> Array:
    """What machine code makes of ``x``."""
    out = fresh(x.shape, dtype)
    assert LOOPS.linear(placed(x), placed(scale), None if zero is None else placed(zero), axis, out)
    return out


@st.composite
def operands(draw: st.DrawFn) -> tuple[Array, Array, Array, Array | None, int]:
    """Floats, integers, scales and zero points of one axis or of all elements, and the axis."""
    shape = draw(st.sampled_from([(1,), (5,), (63,), (64,), (3, 70), (2, 3, 4), (2, 3, 65), (4, 1, 9), (2, 3, 80, 80)]))
    axis = draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(INTEGERS))
    limits = np.iinfo(dtype)
    count = shape[axis] if draw(st.booleans()) else 1
    scale = (10.0 ** rng.uniform(-6, 3, count)).astype(SINGLE)
    zero = rng.integers(limits.min, limits.max, count, dtype, endpoint=True) if draw(st.booleans()) else None
    codes = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = (rng.standard_normal(shape) * 10.0 ** rng.uniform(-6, 6)).astype(SINGLE)
    x.flat[0] = draw(st.sampled_from([0.0, -0.0, np.inf, -np.inf, 1e-45, 3e38, float(x.flat[0])]))
    return x, codes, scale, zero, axis


@examples(150)
@given(operands())
def test_linear_quantization_and_back(given_):
    x, codes, scale, zero, axis = given_
    with np.errstate(all="ignore"):
        expected = quantize_linear(x, scale, np.zeros(1, codes.dtype) if zero is None else zero, axis=axis)
        back = dequantize_linear(codes, scale, zero, axis=axis)
    assert linear(x, scale, zero, axis, codes.dtype).tobytes() == expected.tobytes()
    assert linear(codes, scale, zero, axis, SINGLE).tobytes() == back.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_halves_go_to_even(dtype):
    limits = np.iinfo(dtype)
    x = np.arange(limits.min - 2, limits.max + 2, dtype=SINGLE) + SINGLE.type(0.5)
    one = np.ones((), SINGLE)
    np.testing.assert_array_equal(linear(x, one, None, 0, dtype), quantize_linear(x, one, np.zeros((), dtype)))


def test_not_a_number_becomes_zero():
    x = np.full(70, np.nan, SINGLE)
    assert not linear(x, np.ones((), SINGLE), np.array(3, np.int8), 0, np.dtype("i1")).any()
