"""Reductions, argmax and argmin, cumulative sums and products."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.kernels.reduce import REDUCTIONS
from tests.kernels.helpers import check_against_ort, run_kernel

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NUMPY: dict[str, Any] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
}


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(np.random.default_rng(shape).uniform(0.5, 3, shape)).astype(dtype)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_small_integers_and_booleans(op):
    x = np.array([[1, 200], [0, 7]], np.uint8)
    check_against_ort(op, [x, np.array([0])], {}, 18)
    check_against_ort(op, [x > 6, np.array([0])], {}, 20)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_reduced_in_float32(op, dtype):
    """A thousand bfloat16 ones sum to a thousand; in bfloat16 itself they would stick at 256."""
    x = (values(2, 1000) / 100 + 0.99).astype(dtype) if op == "ReduceProd" else values(2, 1000).astype(dtype)
    found = run_kernel(op, [x, np.array([1])], {"keepdims": 0}, 18)[0]
    exact = NUMPY[op](x.astype(np.float64), axis=1)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2.0 ** (-10 if dtype is np.float16 else -7))


def test_extremes_of_empty_sets_of_integers():
    empty = np.empty((0,), np.int16)
    assert run_kernel("ReduceMax", [empty], {"keepdims": 0}, 20)[0] == -(2**15)
    assert run_kernel("ReduceMin", [empty], {"keepdims": 0}, 20)[0] == 2**15 - 1
    assert run_kernel("ReduceMax", [empty.astype(bool)], {"keepdims": 0}, 20)[0] == False  # noqa: E712


def test_log_sum_exp_does_not_overflow():
    x = np.array([[1000, 1001], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    found = run_kernel("ReduceLogSumExp", [x, np.array([1])], {"keepdims": 0}, 18)[0]
    np.testing.assert_allclose(found, [1001.3132617, -np.inf, np.inf], rtol=1e-6)


@given(st.data())
def test_any_shape_and_axes(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=4)))
    axes = data.draw(st.permutations(range(len(shape))).map(tuple))[: data.draw(st.integers(0, len(shape)))]
    keep = data.draw(st.booleans())
    op = data.draw(st.sampled_from(list(REDUCTIONS)))
    x = values(*shape, dtype=np.float64)
    attrs = {"keepdims": int(keep), "noop_with_empty_axes": 1}
    found = run_kernel(op, [x, np.array(axes, np.int64)], attrs, 18)[0]
    np.testing.assert_allclose(found, NUMPY[op](x, axis=axes, keepdims=keep), rtol=1e-12, atol=1e-12)


# -- ArgMax, ArgMin ---------------------------------------------------------------


def test_arg_of_nothing():
    with pytest.raises(Error, match="empty"):
        run_kernel("ArgMax", [np.empty((2, 0))], {"axis": 1}, 13)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keep", [0, 1])
def test_arg_of_nothing_for_no_results(op, keep):
    for axis in (0, 2, 1):
        x = np.empty((0, 2, 0), np.float32)
        check_against_ort(op, [x], {"axis": axis, "keepdims": keep, "select_last_index": 1}, 13)


# -- CumSum, CumProd ----------------------------------------------------------------


def test_cumsum_of_small_floats():
    x = np.ones((1, 1000), ml_dtypes.bfloat16)
    assert run_kernel("CumSum", [x, np.array(1)], {}, 14)[0][0, -1] == 1000
    assert run_kernel("CumSum", [np.empty((2, 0)), np.array(1)], {"exclusive": 1}, 14)[0].shape == (2, 0)
