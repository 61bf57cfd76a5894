"""Products on arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from irc.native.inner_loops import LOOPS
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from irc.runtime.kernels.support import as_constant, note_origin
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_products import exact, integers, of_codes


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rows", [1, 15, 30])
@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("depth", [63, 64])
@pytest.mark.parametrize("columns", [289, 320])
def test_integers_with_a_zero_point(columns, depth, dtype, rows, end):
    a = guarded(integers((rows, depth), dtype, 1), end, is_read_only=True)
    b = as_constant(guarded(integers((depth, columns), "i1", 2), end, is_read_only=True))
    zero = guarded(np.array([-7 if dtype == "i1" else 200], dtype), end, is_read_only=True)
    out = guarded_empty((rows, columns), np.dtype(np.int32), end)
    multiply = LOOPS.integer_multiplier(a, b, None)
    for own in (zero, None):
        done = multiply is not None and multiply(a, own, out)
        assert done == (current().vector_bytes in MOST_FEATURES)
        if done:
            np.testing.assert_array_equal(out, exact(a, 0 if own is None else int(own.item()), b))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("rows", [1, 14, 15, 30])
@pytest.mark.parametrize("depth", [63, 64])
@pytest.mark.parametrize("columns", [289, 304, 320])
@pytest.mark.parametrize("factor", [1, 2])
def test_integers(factor, columns, depth, rows, end):
    """Of numbers of 8 bits, or 9."""
    a = guarded(integers((rows, depth), "u1", 1), end, is_read_only=True)
    b = factor * integers((depth, columns), "i1", 2).astype(np.float32)
    b = as_constant(guarded(b, end, is_read_only=True))
    out = guarded_empty((rows, columns), np.dtype(np.int32), end)
    done = LOOPS.integers(a, 5, b, out)
    assert done == (current().vector_bytes in MOST_FEATURES)
    if done:
        np.testing.assert_array_equal(out, exact(a, 5, b))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("zeros", ["8", "several"])
@pytest.mark.parametrize("columns", [128, 257, 300])
def test_codes_of_4_bits(columns, zeros, end):
    w, parts = of_codes(256, columns, 32, zeros)
    x = np.random.default_rng(3).standard_normal((1, 256)).astype("f4")
    note_origin(w, [guarded(part, end, is_read_only=True) for part in parts])
    multiply, out = LOOPS.row_multiplier(w), guarded_empty((1, columns), np.dtype(np.float32), end)
    assert (multiply is not None) == (current().vector_bytes in MOST_FEATURES)
    if multiply is None:
        return
    constants = [guarded(each, end, is_read_only=True) for each in multiply.constants]
    for large in (1, 1e37):
        x[0, 7] = large
        assert multiply._replace(constants=tuple(constants))(guarded(x, end, is_read_only=True), out)
        np.testing.assert_allclose(out, x @ w.astype(np.float64), rtol=1e-4, atol=1e-4)
