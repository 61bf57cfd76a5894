"""Constants, ranges, diagonals, one-hot codes."""

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from tests.kernels.helpers import bind, check_against_ort, run_kernel


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"value": np.array([[1, 2]], np.int16)}, np.array([[1, 2]], np.int16)),
        ({"value_int": 7}, np.array(7)),
        ({"value_ints": [7, 8]}, np.array([7, 8])),
        ({"value_ints": []}, np.array([], np.int64)),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5, 2.0]}, np.array([0.5, 2.0], np.float32)),
        ({"value_string": "a"}, np.array("a", object)),
        ({"value_strings": ["a", "bc"]}, np.array(["a", "bc"], object)),
    ],
)
def test_constant(attrs, expected):
    kernel = bind("Constant", attrs, 13, 0)
    found = kernel()
    assert (found.dtype, found.shape, found.tolist()) == (expected.dtype, expected.shape, expected.tolist())
    assert not np.shares_memory(found, kernel()), "each run's result is its own"


@pytest.mark.parametrize("attrs", [{}, {"value_int": 1, "value_float": 1.0}])
def test_constants_that_say_nothing_or_too_much(attrs):
    with pytest.raises(Error, match="exactly one"):
        bind("Constant", attrs, 13, 0)


def test_ranges_of_floats():
    for limits in ((0, 1, 0.1), (1, 0, -0.3), (0.5, 2.6, 0.7)):
        check_against_ort("Range", [np.array(v, np.float32) for v in limits], {}, 11, rtol=1e-6)
    half = run_kernel("Range", [np.array(v, ml_dtypes.bfloat16) for v in (250, 260, 1)], {}, 27)[0]
    assert half.astype(np.float32).tolist() == [250, 251, 252, 253, 254, 255, 256, 256, 258, 260]
    exact = run_kernel("Range", [np.array(v) for v in (2**62, 2**62 + 3, 1)], {}, 11)[0]
    assert exact.tolist() == [2**62, 2**62 + 1, 2**62 + 2]


def test_bad_ranges():
    for limits in ((0, 1, 0), (0, np.inf, 1), (0, 1e30, 1e-3)):
        with pytest.raises(Error):
            run_kernel("Range", [np.array(v, np.float32) for v in limits], {}, 11)


@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
def test_eye_like(k):
    x = np.zeros((3, 4), np.float32)
    for attrs in ({}, {"dtype": DType.INT64.onnx}, {"dtype": DType.DOUBLE.onnx}):
        check_against_ort("EyeLike", [x], attrs | {"k": k}, 9)
    assert run_kernel("EyeLike", [x.astype(ml_dtypes.bfloat16)], {"k": k}, 22)[0].dtype == ml_dtypes.bfloat16
    with pytest.raises(Error, match="2 dimensions"):
        run_kernel("EyeLike", [x[0]], {}, 9)


def test_bad_one_hot():
    for arguments in (
        (ints(0), ints(-1), ints(0, 1)),
        (ints(0), ints(1 << 50), ints(0, 1)),
        (ints(0), ints(2), ints(0, 1, 2)),
        (ints(0), ints(2, 3), ints(0, 1)),
    ):
        with pytest.raises(Error):
            run_kernel("OneHot", list(arguments), {}, 11)
