"""float16: by bits and in float32, what NumPy makes of it one by one, to the last bit."""

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.runtime.kernels.numerics import HALF, narrowed, of_halves, rounded, widened
from tests.kernels.helpers import check_against_ort, run_kernel

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
NUMBERS = EVERY[~np.isnan(EVERY)]
RANDOM = np.random.default_rng(0)


def same_bits(found: Any, expected: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)
    )


ROUNDED = [np.ceil, np.floor, np.reciprocal, np.rint, np.sqrt, np.square]
OF_TWO = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum]
OF_TWO += [np.less, np.less_equal, np.greater, np.greater_equal]


def function_of(ufunc: Any) -> Callable[..., Array]:
    found = of_halves(ufunc)
    assert found is not None
    return found


@pytest.mark.parametrize("ufunc", ROUNDED, ids=lambda u: u.__name__)
def test_functions_of_one(ufunc):
    for x in (EVERY, NUMBERS, NUMBERS[::-3], EVERY.reshape(2, 4, 8, -1).transpose(2, 0, 3, 1), NUMBERS[:0]):
        same_bits(function_of(ufunc)(x), ufunc(x, order="C"))
    x = NUMBERS.copy()
    assert function_of(ufunc)(x, out=x) is x
    same_bits(x, ufunc(NUMBERS))


@pytest.mark.parametrize("ufunc", OF_TWO, ids=lambda u: u.__name__)
def test_functions_of_two(ufunc):
    """Of all kinds of numbers with each other: infinities, NaNs of all bits, subnormals, zeros of both signs.

    Of two NaNs, NumPy takes the one or the other.
    """
    odd = np.array([0, -0.0, np.inf, -np.inf, 65504, -65504, 6e-8, 6e-5, 1, -1, 3.14], np.float16)
    for given in (NUMBERS, EVERY):
        for other in (RANDOM.permutation(NUMBERS.repeat(2)[: given.size]), given, -given):
            if given is EVERY:
                other = np.where(np.isnan(given), np.float16(1.5), other)
            same_bits(function_of(ufunc)(given, other), ufunc(given, other))
        pairs = np.array(list(itertools.product(odd, odd)), np.float16).T
        same_bits(function_of(ufunc)(*pairs), ufunc(*pairs))
        same_bits(function_of(ufunc)(odd[:, None], given), ufunc(odd[:, None], given))
        same_bits(function_of(ufunc)(given, odd[:, None, None]), ufunc(given, odd[:, None, None]))


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.less], ids=lambda u: u.__name__)
@pytest.mark.parametrize("block", [1, 7, 64, 1 << 15])
def test_shapes_and_strides(ufunc, block, tune):
    tune("irc.runtime.kernels.numerics.BLOCK", block)
    tune("irc.runtime.kernels.numerics._BY_BITS", 1)
    x = RANDOM.standard_normal((5, 6, 7)).astype(np.float16)
    for shape in ((5, 6, 7), (7,), (6, 1), (5, 1, 1), (1,), (), (2, 5, 6, 7), (1, 5, 1, 7)):
        y = RANDOM.standard_normal(shape).astype(np.float16)
        for one, other in ((x, y), (y, x), (x[::-1, ::2, ::3][:, :1, :1], y), (x.T, y.T if y.ndim < 4 else y[0].T)):
            if len(one.shape) and len(other.shape):
                try:
                    expected = ufunc(one, other, order="C")
                except ValueError:
                    continue
                same_bits(function_of(ufunc)(one, other), expected)
    if ufunc is not np.less:
        for place, y in ((0, x[0]), (1, x[0]), (0, x), (1, RANDOM.permutation(x))):
            operands = [x.copy(), y.copy()][:: 1 - 2 * place]
            expected = ufunc(*operands)
            same_bits(function_of(ufunc)(*operands, out=operands[place]), expected)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "GreaterOrEqual"])
def test_operators_of_two_as_in_onnx_runtime(op_type):
    x, y = RANDOM.standard_normal((2, 4, 70, 80)).astype(np.float16)
    for other in (y, y[:1], y[0, :1], y[0, :, :1]):
        check_against_ort(op_type, [x, other], {}, 14, rtol=0, atol=0)


def test_many_elements_and_none():
    x = np.ones((9000, 1), np.float16)
    assert run_kernel("Add", [x, np.ones((1, 0), np.float16)], {}, 14)[0].shape == (9000, 0)


@pytest.mark.parametrize("op_type", ["Relu", "Sqrt", "Floor", "Ceil"])
def test_operators_of_one_as_in_onnx_runtime(op_type):
    x = np.abs(RANDOM.standard_normal((3, 70, 80))).astype(np.float16)
    check_against_ort(op_type, [x if op_type == "Sqrt" else x - 1], {}, 14, rtol=0, atol=0)


def test_bounds_keep_what_the_function_of_two_gives():
    """Zeros of both signs, and what is not a number, as where there are few elements."""
    x = np.concatenate([EVERY, EVERY])
    for bound in (0.0, -0.0, 1.5, -np.inf, np.nan):
        low = np.array(bound, np.float16)
        same_bits(run_kernel("Clip", [x, low], {}, 13)[0], np.maximum(x, low))
        same_bits(run_kernel("Clip", [x, None, low], {}, 13)[0], np.minimum(x, low))


@pytest.mark.parametrize("op_type", ["Sigmoid", "LeakyRelu", "HardSwish", "Softplus"])
def test_functions_of_several_steps(op_type):
    x = EVERY[np.isfinite(EVERY)][:61440].reshape(8, -1)
    whole = run_kernel(op_type, [x], {}, None)[0]
    for i in range(8):
        for part in (slice(0, 100), slice(-4000, None)):
            same_bits(run_kernel(op_type, [x[i, part]], {}, None)[0], whole[i, part])


def test_rounding_keeps_float32():
    finite = EVERY[np.isfinite(EVERY)].astype(np.float32)
    between = (finite[:, None] * np.linspace(0.999, 1.001, 37, dtype=np.float32)).ravel()
    ties = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2])
    for x in (between, ties, np.array([np.nan, np.inf, -np.inf], np.float32)):
        x = x[~(np.abs(x) >= 65520) | np.isinf(x)]
        np.testing.assert_array_equal(rounded(x.copy(), HALF), x.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(rounded(np.array([65519, 65520, 1e6, -7e4], np.float32), HALF)[:2], [65504, 65536])
    brain = np.dtype(ml_dtypes.bfloat16)
    x = np.linspace(-3, 3, 99, dtype=np.float32)
    np.testing.assert_array_equal(rounded(x, brain), x.astype(brain).astype(np.float32))


def stepwise_softmax(x: Array, axis: int, logarithm: bool) -> Array:
    """Each step rounded to float16."""
    to = lambda a: a.astype(np.float16).astype(np.float32)  # noqa: E731
    wide = x.astype(np.float32)
    differences = to(wide - wide.max(axis, keepdims=True))
    powers = to(np.exp(differences))
    sums = to(powers.sum(axis, keepdims=True))
    return (differences - to(np.log(sums)) if logarithm else powers / sums).astype(np.float16)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e5])
@pytest.mark.parametrize("shape", [(3, 50, 120), (2, 70000), (1, 40, 3)])
def test_softmax_rounds_at_each_step(op_type, scale, shape):
    """Also where differences or sums are beyond the range of float16."""
    x = (RANDOM.standard_normal(shape) * scale).clip(-65504, 65504).astype(np.float16)
    x[0, :7] = 65504 if scale > 1000 else 0
    for axis in range(x.ndim):
        found = run_kernel(op_type, [x], {"axis": axis}, 13)[0]
        same_bits(found, stepwise_softmax(np.ascontiguousarray(x), axis, op_type == "LogSoftmax"))
    x.flat[::999] = np.inf
    x.flat[1::999] = np.nan
    found = run_kernel(op_type, [x], {"axis": 1}, 13)[0]
    np.testing.assert_array_equal(found, stepwise_softmax(x, 1, op_type == "LogSoftmax"))


def test_conversions_write_where_they_are_told():
    for order in ("C", "F"):
        for odd in ([], [np.nan, np.inf, -1e9, 1e-6]):
            x = np.array(RANDOM.standard_normal((70, 90)), np.float32, order=order)
            x.flat[: len(odd)] = odd
            for y, into in ((x, np.float16), (x.astype(np.float16), np.float32)):
                expected = y.astype(into)
                for out in (np.empty(y.shape, into), np.empty(y.shape[::-1], into).T, np.empty((140, 90), into)[::2]):
                    found = narrowed(y, HALF, out) if into is np.float16 else widened(y, out)
                    assert found is out
                    same_bits(out, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_largest_of_small_floats(dtype):
    x = RANDOM.standard_normal((2, 5, 60, 40)).astype(dtype)
    for op_type, of in (("ReduceMax", np.max), ("ReduceMin", np.min)):
        for axes in ([3], [1], [2, 3], [0, 1, 2, 3]):
            found = run_kernel(op_type, [x, np.array(axes)], {}, 18)[0]
            same_bits(found, of(x.astype(np.float32), tuple(axes), keepdims=True).astype(dtype))
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    wide = run_kernel("MaxPool", [x.astype(np.float32)], window, 12)[0]
    same_bits(run_kernel("MaxPool", [x], window, 12)[0], wide.astype(dtype))
    one = run_kernel("MaxPool", [x], {"kernel_shape": [1, 1]}, 12)[0]
    same_bits(one, x)
