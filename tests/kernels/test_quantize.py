"""Linear quantization against ONNX Runtime, and by the formula."""

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import run_kernel


def values(*shape: int) -> np.ndarray:
    return (np.random.default_rng(shape).standard_normal(shape) * 40).astype(np.float32)


@pytest.mark.parametrize("saturate", [0, 1])
def test_to_small_floats(saturate):
    x = np.array([1000, -1000, 3, 0.5], np.float32)
    zero = np.array(0, ml_dtypes.float8_e4m3fn)
    found = run_kernel("QuantizeLinear", [x, np.array(2, np.float32), zero], {"saturate": saturate}, 19)[0]
    beyond = 448 if saturate else np.nan
    np.testing.assert_array_equal(found.astype(np.float32), [beyond, -beyond, 1.5, 0.25])
    back = run_kernel("DequantizeLinear", [found, np.array(2, np.float16), zero], {}, 19)[0]
    assert back.dtype == np.float16
    np.testing.assert_array_equal(back, [2 * beyond, -2 * beyond, 3, 0.5])


def test_scales_that_do_not_fit():
    x, blocks = values(1, 4), {"axis": 1, "block_size": 2}
    for scale, attrs in ((np.ones(3), {"axis": 1}), (np.ones((1, 1)), blocks), (np.ones((3, 2)), blocks)):
        with pytest.raises(Error, match="scales"):
            run_kernel("QuantizeLinear", [x, scale.astype(np.float32)], attrs, 21)
    for op_type, element in (("QuantizeLinear", np.float32), ("DequantizeLinear", np.uint8)):
        with pytest.raises(Error, match="must not be negative"):
            run_kernel(op_type, [x.astype(element), np.ones((1, 2), np.float32)], blocks | {"block_size": -1}, 21)
