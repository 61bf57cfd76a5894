"""Products of quantized tensors against exact arithmetic and ONNX Runtime."""

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.kernels import quantized  # noqa: F401
from tests.kernels.helpers import assert_same, run_kernel, run_ort


def test_conv_integer_zero_point_for_each_output():
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8), rng.integers(0, 255, (3, 2, 3, 3)).astype(np.uint8)
    zeros = np.array([1, 2, 250], np.uint8)
    (ours,) = run_kernel("ConvInteger", [x, w, None, zeros], {}, 10)
    centred = w.astype(np.float64) - zeros.reshape(3, 1, 1, 1)
    assert_same([ours], [run_kernel("Conv", [x.astype(np.float64), centred], {}, 11)[0].astype(np.int32)])


def one(value, dtype=np.float32) -> np.ndarray:
    return np.array(value, dtype)


def close_quanta(ours: np.ndarray, exact: np.ndarray, dtype: type) -> None:
    """Within rounding of float32 the nearest quantum: one off only where the exact value is almost halfway."""
    limits = np.iinfo(dtype)
    exact = np.clip(exact, limits.min, limits.max)
    assert ours.dtype == dtype
    assert np.abs(ours - exact).max() <= 0.5 + 1e-3
    assert len(np.unique(ours)) > 20  # not all saturated


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_conv(dtype, bias, per_channel):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (2, 6, 8, 7), endpoint=True).astype(dtype)
    w = rng.integers(limits.min, limits.max, (4, 3, 3, 3), endpoint=True).astype(dtype)
    w_scale = np.array([0.02, 0.01, 0.03, 0.015], np.float32) if per_channel else one(0.02)
    middle = (limits.min + limits.max + 1) // 2
    w_zero = np.full(4, middle, dtype) if per_channel else one(middle, dtype)
    b = rng.integers(-20000, 20000, 4).astype(np.int32)
    inputs = [x, one(0.05), one(9, dtype), w, w_scale, w_zero, one(0.9), one(5, dtype), *([b] if bias else [])]
    attrs = {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    (ours,) = run_kernel("QLinearConv", inputs, attrs, 10)
    (sums,) = run_kernel("Conv", [x.astype(np.float64) - 9, w.astype(np.float64) - middle], attrs, 11)
    if bias:
        sums += b.reshape(-1, 1, 1)
    close_quanta(ours, sums * (np.float64(0.05) * w_scale.reshape(-1, 1, 1) / 0.9) + 5, dtype)
    (theirs,) = run_ort("QLinearConv", inputs, attrs, 10)
    assert np.abs(ours.astype(int) - theirs).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("rows", [False, True])
def test_qlinear_matmul(dtype, rows):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, s, endpoint=True).astype(dtype) for s in ((5, 300), (300, 4)))
    a_scale = np.linspace(0.01, 0.05, 5, dtype=np.float32) if rows else one(0.03)
    a_zero = np.arange(5).astype(dtype) if rows else one(3, dtype)
    b_scale, b_zero = np.array([0.01, 0.02, 0.03, 0.04], np.float32), np.array([1, 2, 3, 4], dtype)
    (ours,) = run_kernel("QLinearMatMul", [a, a_scale, a_zero, b, b_scale, b_zero, one(30), one(20, dtype)], {}, 10)
    column = np.reshape(a_zero, (-1, 1)).astype(np.float64)
    sums = (a - column) @ (b.astype(np.float64) - b_zero)
    exact = sums * (np.reshape(a_scale, (-1, 1)).astype(np.float64) * b_scale / 30) + 20
    limits = np.iinfo(dtype)
    assert np.abs(ours - np.clip(exact, limits.min, limits.max)).max() <= 0.5 + 1e-3
    if not rows:
        scalars = [a, a_scale, a_zero, b, one(0.02), one(2, dtype), one(30), one(20, dtype)]
        (theirs,) = run_ort("QLinearMatMul", scalars, {}, 10)
        assert np.abs(run_kernel("QLinearMatMul", scalars, {}, 10)[0].astype(int) - theirs).max() <= 1


def test_rounding_is_half_to_even_and_saturates():
    a = np.array([[1], [3], [5], [255]], np.uint8)
    ours = run_kernel(
        "QLinearMatMul",
        [a, one(1), one(0, np.uint8), one([[1]], np.uint8), one(1), one(0, np.uint8), one(2), one(250, np.uint8)],
        {},
        10,
    )
    assert ours[0].ravel().tolist() == [250, 252, 252, 255]


U8 = np.ones((2, 3), np.uint8)
ZERO = one(0, np.uint8)
BAD = {
    "zero point": ("MatMulInteger", [U8, U8.T.copy(), None, np.ones(5, np.uint8)], "zero point"),
    "shapes": ("MatMulInteger", [U8, U8], "multiplied"),
    "scale": ("QLinearMatMul", [U8, np.ones(7, np.float32), ZERO, U8.T.copy(), one(1), ZERO, one(1), ZERO], "scales"),
    "bias": (
        "QLinearConv",
        [
            np.ones((1, 1, 3), np.uint8),
            one(1),
            ZERO,
            np.ones((2, 1, 2), np.uint8),
            one(1),
            ZERO,
            one(1),
            ZERO,
            np.ones(3, np.int32),
        ],
        "bias",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, {}, 10)


@pytest.mark.parametrize("depth", [257, 258, 259, 516, 518, 1030, 70000])
@pytest.mark.parametrize(("x", "w"), [(255, 255), (254, 255), (255, 1), (0, 255), (128, 254)])
@pytest.mark.parametrize("zero", [0, 128, 255])
def test_sums_are_exact_however_long(depth: int, x: int, w: int, zero: int) -> None:
    """Whether float32 is enough is decided by the weights that are there."""
    a, b = np.full((2, depth), x, np.uint8), np.full((depth, 3), w, np.uint8)
    a[1, ::2], b[::3, 1], b[5:, 2] = 1, 254, 1
    zeros = [np.array(zero, np.uint8), np.array(zero, np.uint8)]
    (found,) = run_kernel("MatMulInteger", [a, b, *zeros], {}, 10)
    expected = (a.astype(np.int64) - zero) @ (b.astype(np.int64) - zero)
    np.testing.assert_array_equal(found, expected.astype(np.int32))
    (found,) = run_kernel("ConvInteger", [a[:1, :, None], b.T[:, :, None], *zeros], {}, 10)
    np.testing.assert_array_equal(found.ravel(), expected[0].astype(np.int32))


def test_a_large_bias_is_added_exactly() -> None:
    x, w = np.full((1, 300, 1), 255, np.uint8), np.full((2, 300, 1), 127, np.int8)
    scale, zeros = np.array(1, np.float32), (np.array(0, np.uint8), np.array(0, np.int8))
    sums = 300 * 255 * 127
    bias = np.array([5 - sums, (1 << 24) + 1 - sums], np.int32)
    inputs = [x, scale, zeros[0], w, scale, zeros[1], scale, zeros[0], bias]
    assert run_kernel("QLinearConv", inputs, {}, 10)[0].ravel().tolist() == [5, 255]
    bias = np.array([-(1 << 24) - 1, -(1 << 24) - 3], np.int32)
    inputs = [x, scale, zeros[0], np.zeros_like(w), scale, zeros[1], scale, np.array(255, np.uint8), bias]
    assert run_kernel("QLinearConv", inputs, {}, 10)[0].ravel().tolist() == [0, 0]
