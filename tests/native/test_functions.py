"""The native mathematical functions: their errors, in units in the last place, and what they give of special values."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from benchmarks.goldens.references import L
from benchmarks.native.accuracy import WIDE, errors, expected, operands, references
from benchmarks.native.harness import PLAIN, compiled
from irc.native.functions import BOUNDS, FUNCTIONS
from irc.ops.algebra import PRIMITIVES

COUNT = 1 << 14


def test_each_function_has_a_bound_and_a_reference():
    assert BOUNDS.keys() == FUNCTIONS.keys() == references().keys()


def test_bounds_are_those_of_the_primitives_or_less():
    for name, bound in BOUNDS.items():
        if name in PRIMITIVES:
            assert bound <= PRIMITIVES[name].ulp, name


@pytest.mark.covering(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name: str, dtype: Any):
    if dtype is np.float64 and not WIDE:
        pytest.skip("extended precision is no wider than float64")
    given = operands(references()[name], dtype, COUNT, seed=1)
    exact = expected(name, given)
    for cpu in (None, PLAIN):
        found = compiled(FUNCTIONS[name], dtype, len(given), cpu=cpu)(*given)
        result = errors(name, given, found, exact)
        assert not result.wrong_nans, (cpu, result)
        assert not result.wrong_signs, (cpu, result)
        assert result.ratio <= 1, (cpu, result)


@pytest.mark.covering(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_number_of_lanes_does_not_matter(name: str, dtype: Any):
    given = operands(references()[name], dtype, 1 << 8, seed=2)
    results = [compiled(FUNCTIONS[name], dtype, len(given), count)(*given) for count in (8, 16, 32)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_two_are_exact(dtype: Any):
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    powers = np.ldexp(dtype(1), exponents)
    np.testing.assert_array_equal(compiled(FUNCTIONS["exp2"], dtype)(exponents.astype(dtype)), powers)
    np.testing.assert_array_equal(compiled(FUNCTIONS["log2"], dtype)(powers), exponents)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_angles_next_to_multiples_of_half_pi(dtype: Any):
    """Numbers whose rest modulo π/2 is small have the fewest bits to spare."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    size = np.ldexp(1 + rng.random(1 << 20), rng.integers(8, info.maxexp, 1 << 20)).astype(dtype)
    near = size[np.argsort(np.abs(np.sin(2 * size.astype(L))))[:2000]]
    for name in ("sin", "cos"):
        found = compiled(FUNCTIONS[name], dtype)(near)
        assert errors(name, [near], found, expected(name, [near])).ratio <= 1
