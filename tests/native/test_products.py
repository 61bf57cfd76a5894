"""Products by native loops: of integers, which are exact, and of floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples

pytest.importorskip("llvmlite")

from irc.native.inner_loops import LEAST_PRODUCTS, LOOPS
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.quantized import columns, matmul_sums
from irc.runtime.kernels.support import as_constant
from irc.runtime.threads import share

Array = np.ndarray[Any, Any]

FLOAT8 = ml_dtypes.float8_e4m3fn

natively = pytest.mark.skipif(current().vector_bytes not in MOST_FEATURES, reason="there is no code for this processor")


def integers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def product(a: Array, zero: int, b: Array) -> Array | None:
    out = np.full((*a.shape[:-1], b.shape[1]), 7, np.int32)
    return out if LOOPS.integers(a, zero, b, out) else None


def exact(a: Array, zero: int, b: Array) -> Array:
    return (a.astype(np.int64) - zero) @ b.astype(np.int64)


@examples(100)
@given(
    st.lists(st.integers(1, 4), max_size=2),
    st.integers(1, 40),
    st.integers(1, 150),
    st.integers(1, 100),
    st.sampled_from(["u1", "i1"]),
    st.integers(0, 127),
    st.sampled_from([127, 255]),
)
def test_sums_are_exact(batch, rows, depth, columns, dtype, zero, most):
    a = integers((*batch, rows, depth), dtype, 1)
    b = as_constant(np.random.default_rng(2).integers(-most, most + 1, (depth, columns)).astype(np.float32))
    found = product(a, zero, b)
    if found is not None:
        np.testing.assert_array_equal(found, exact(a, zero, b))


@natively
@pytest.mark.parametrize("value", [-255, -128, 127, 255])
@pytest.mark.parametrize(("factor", "zero"), [(255, 0), (0, 255), (-128, 127), (127, -128)])
def test_the_largest_numbers(factor, zero, value):
    a = np.full((20, 999), factor, np.int8 if min(factor, zero) < 0 else np.uint8)
    b = as_constant(np.full((999, 40), value, np.float32))
    found = product(a, zero, b)
    assert found is not None
    np.testing.assert_array_equal(found, exact(a, zero, b))


@natively
def test_what_does_not_fit_is_left():
    a = integers((40, 40_000), "u1", 1)
    assert product(a, 0, as_constant(np.full((40_000, 2), 255, np.float32))) is None
    small = as_constant(np.ones((40_000, 2), np.float32))
    assert product(a, 0, small) is not None
    assert product(a, 0, np.ones((40_000, 2), np.float32)) is None  # may change
    assert product(a.astype(np.uint16), 0, small) is None
    assert a.size * 2 > LEAST_PRODUCTS


@pytest.mark.usefixtures("slow_blas")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(4, 300, 257), (15, 130, 160), (60, 64, 128), (1200, 200, 150)])
def test_floats(rows, depth, columns, has_gaps, is_turned):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((2, rows, 2 * depth)).astype(np.float32)[..., : depth * (1 + (not has_gaps))]
    a = a[:, ::-1] if is_turned else a
    b = as_constant(rng.standard_normal((a.shape[-1], columns)).astype(np.float32))
    out = np.empty((2, rows, columns), np.float32)
    done = LOOPS.product(a, b, out)
    assert done == (current().vector_bytes in MOST_FEATURES)
    if done:
        wide = a.astype(np.float64), b.astype(np.float64)
        bound = np.abs(wide[0]) @ np.abs(wide[1])
        assert (np.abs(out - wide[0] @ wide[1]) <= 4 * 2.0**-24 * bound).all()


@natively
def test_results_do_not_depend_on_threads():
    a = integers((100, 300), "u1", 1)
    b = as_constant(integers((300, 700), "i1", 2).astype(np.float32))
    one = product(a, 3, b)
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        two = product(a, 3, b)
    finally:
        CURRENT.scope.share = before
    assert one is not None and two is not None and one.tobytes() == two.tobytes()


@natively
def test_sums_of_kernels_are_the_same_in_both_ways():
    a, b = integers((3, 20, 64), "u1", 1), integers((64, 50), "i1", 2)
    weights = columns(b, np.array(4, np.int8))
    as_constant(weights.values)
    scope = CURRENT.scope
    expected = matmul_sums(a, weights, np.array(9, np.uint8))
    before, scope.loops = scope.loops, LOOPS
    try:
        found = matmul_sums(a, weights, np.array(9, np.uint8))
    finally:
        scope.loops = before
    assert found.dtype == np.int32 and expected.dtype.kind == "f"
    np.testing.assert_array_equal(found, expected)


@natively
@pytest.mark.parametrize("dtypes", [("u1", FLOAT8), (FLOAT8, "u1"), (FLOAT8, FLOAT8), ("u1", "i1")])
def test_floats_of_8_bits_are_no_integers(dtypes):
    rng = np.random.default_rng(1)
    a, b = ((4 * rng.random(shape)).astype(dtype) for shape, dtype in zip(((40, 64), (64, 50)), dtypes))
    weights = columns(b)
    as_constant(weights.values)
    zero = np.zeros((), a.dtype)
    scope = CURRENT.scope
    expected = matmul_sums(a, weights, zero)
    before, scope.loops = scope.loops, LOOPS
    try:
        found = matmul_sums(a, weights, zero)
    finally:
        scope.loops = before
    np.testing.assert_array_equal(found, expected)


@natively
def test_zero_points_of_another_type():
    """Only of the first operand's own type, differences have 9 bits."""
    a, b = integers((40, 64), "u1", 1), integers((64, 50), "i1", 2)
    weights = columns(b)
    as_constant(weights.values)
    scope = CURRENT.scope
    before, scope.loops = scope.loops, LOOPS
    try:
        found = matmul_sums(a, weights, np.array(100_000, np.int32))
    finally:
        scope.loops = before
    np.testing.assert_array_equal(found, exact(a, 100_000, b))


@natively
def test_long_calls_pause(pacing):
    """Also of one panel of columns."""
    a, b = integers((200_000, 64), "u1", 1), as_constant(integers((64, 16), "i1", 2).astype(np.float32))
    assert product(a, 3, b) is not None
    assert pacing.times > 4
