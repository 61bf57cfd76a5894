"""Constants, ranges, diagonals, one-hot codes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from irc.ir.types import DType
from irc.runtime.kernels.support import counting
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


def test_constant_of_shape():
    for opset in (9, 20, 21):
        for shape in ((2, 3), (0, 4), ()):
            check_against_ort("ConstantOfShape", [ints(*shape)], {}, opset)
            for dtype in (np.int64, np.float32, np.uint8, bool):
                check_against_ort("ConstantOfShape", [ints(*shape)], {"value": np.array([1], dtype)}, opset)
    for shape in ((-1,), (1 << 30, 1 << 30)):
        with pytest.raises(Error):
            run_kernel("ConstantOfShape", [ints(*shape)], {}, 21)


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


def test_negative_indices_of_one_hot_before_version_11():
    assert run_kernel("OneHot", [ints(-1, 1), ints(2), ints(0, 1)], {}, 9)[0].tolist() == [[0, 0], [0, 1]]
    assert run_kernel("OneHot", [ints(-1, 1), ints(2), ints(0, 1)], {}, 11)[0].tolist() == [[0, 1], [0, 1]]


def test_bad_one_hot():
    for arguments in (
        (ints(0), ints(-1), ints(0, 1)),
        (ints(0), ints(1 << 50), ints(0, 1)),
        (ints(0), ints(2), ints(0, 1, 2)),
        (ints(0), ints(2, 3), ints(0, 1)),
    ):
        with pytest.raises(Error):
            run_kernel("OneHot", list(arguments), {}, 11)


@pytest.mark.parametrize("strip", [(1, 3), (2, 100), (64, 16)])
@pytest.mark.parametrize("dtype", [np.float32, bool, np.complex128, ml_dtypes.bfloat16, object])
def test_trilu_strip_by_strip(strip, dtype, tune):
    tune("irc.runtime.kernels.generate._STRIP", strip[0])
    tune("irc.runtime.kernels.generate._STRIPS", strip[1])
    for shape in ((2, 11, 7), (7, 11), (150, 3), (3, 150), (1, 2, 70, 70)):
        x: Any = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
        x = x.astype(str).astype(object) if dtype is object else x.astype(dtype)
        rows, columns = counting(shape[-2])[:, None], counting(shape[-1])
        for k in (-200, -6, -1, 0, 1, 5, 68, 200):
            for upper in (0, 1):
                kept = columns >= rows + k if upper else columns <= rows + k
                expected = np.where(kept, x, "" if dtype is object else np.zeros((), dtype))
                for laid in (x, x[..., ::-1].copy()[..., ::-1]):
                    found = run_kernel("Trilu", [laid, np.array(k)], {"upper": upper}, 14)[0]
                    assert found.dtype == x.dtype
                    np.testing.assert_array_equal(found, expected)


def test_trilu_of_strings_fills_with_empty_ones():
    found = run_kernel("Trilu", [np.array([["a", "b"], ["c", "d"]], object)], {}, 14)[0]
    assert found.tolist() == [["a", "b"], ["", "d"]]


def test_a_triangle_is_of_matrices():
    with pytest.raises(Error, match="2 dimensions"):
        run_kernel("Trilu", [ints(1, 2, 3)], {}, 14)
