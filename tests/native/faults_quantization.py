"""Dynamic quantization of arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_quantization import INTEGERS, SINGLE, linear, quantized


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("size", [1, 3, 15, 63, 64, 65, 130])
def test_quantization(size, end):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    found = quantized(guarded(x, end, is_read_only=True), lambda shape, dtype: guarded_empty(shape, dtype, end))
    for made, value in zip(found, quantized(x), strict=True):
        np.testing.assert_array_equal(made, value)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(1,), (63,), (65,), (3, 5), (3, 130)])
@pytest.mark.parametrize("several", [False, True])
def test_linear_quantization(several, shape, dtype, end):
    rng = np.random.default_rng(1)
    count = shape[0] if several else 1
    scale, zero = rng.uniform(0.01, 0.1, count).astype(SINGLE), rng.integers(0, 9, count, dtype)

    def empty(shape, dtype):
        return guarded_empty(shape, dtype, end)

    for x, made in ((rng.standard_normal(shape).astype(SINGLE), dtype), (rng.integers(0, 99, shape, dtype), SINGLE)):
        operands = [guarded(each, end, is_read_only=True) for each in (x, scale, zero)]
        np.testing.assert_array_equal(linear(*operands, 0, made, empty), linear(x, scale, zero, 0, made))
