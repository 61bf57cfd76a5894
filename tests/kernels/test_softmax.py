"""The softmax family against ONNX Runtime."""

import numpy as np
import pytest

from irc.runtime.kernels import softmax  # noqa: F401
from tests.kernels.helpers import check_against_ort, run_kernel

OPERATORS = ["Softmax", "LogSoftmax", "Hardmax"]


@pytest.mark.parametrize("op_type", OPERATORS)
def test_large_values_do_not_overflow(op_type):
    x = np.array([[1e4, 1e4 - 1, -1e4], [-1e30, 0, 1e30]], np.float32)
    check_against_ort(op_type, [x], {}, 13)


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("version", [11, 13])
def test_sums_beyond_the_range_of_halves(op_type, version):
    x = np.random.default_rng(0).integers(-1, 2, (2, 1 << 17)).astype(np.float16)
    check_against_ort(op_type, [x], {"axis": 1}, version, rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("version", [1, 13])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty(op_type, version, shape):
    (ours,) = run_kernel(op_type, [np.zeros(shape, np.float32)], {"axis": 1}, version)
    assert ours.shape == shape
