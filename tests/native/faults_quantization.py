"""Dynamic quantization of arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_quantization import quantized


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("size", [1, 3, 15, 63, 64, 65, 130])
def test_quantization(size, end):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    found = quantized(guarded(x, end, is_read_only=True), lambda shape, dtype: guarded_empty(shape, dtype, end))
    for made, value in zip(found, quantized(x), strict=True):
        np.testing.assert_array_equal(made, value)
