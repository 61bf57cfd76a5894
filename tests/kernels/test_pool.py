"""Pooling against ONNX Runtime."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from tests.effort import examples
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel, values

WINDOWS = {
    "2x2 stride 2": ((2, 3, 8, 9), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "3x3 stride 2, padded": ((2, 3, 8, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "asymmetric": ((1, 2, 7, 9), {"kernel_shape": [3, 4], "strides": [2, 1], "pads": [0, 3, 2, 1]}),
    "1x1": ((1, 2, 4, 5), {"kernel_shape": [1, 1]}),
    "one window, not to the end": ((1, 2, 8, 9), {"kernel_shape": [5, 6], "strides": [4, 4], "pads": [0, 0, 0, 0]}),
    "one window, over both ends": ((1, 2, 3, 2), {"kernel_shape": [5, 4], "strides": [9, 9], "pads": [2, 3, 1, 2]}),
    "1-D": ((2, 3, 11), {"kernel_shape": [4], "strides": [3], "pads": [2, 1]}),
    "3-D": ((1, 2, 5, 6, 4), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [1, 0, 1, 0, 2, 0]}),
    "same upper": ((1, 2, 7, 8), {"kernel_shape": [4, 2], "strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    "same lower": ((1, 2, 7, 8), {"kernel_shape": [4, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 7, 8), {"kernel_shape": [4, 2], "strides": [2, 3], "auto_pad": "VALID"}),
}
CEIL = {
    "ceil": ((1, 2, 8, 9), {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "ceil, padded": ((1, 2, 8, 7), {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 1, 0, 1]}),
    "ceil, last window would start in the padding": (
        (1, 1, 2, 3),
        {"kernel_shape": [1, 2], "strides": [2, 3], "pads": [0, 0, 0, 1]},
    ),
    "ceil, valid": ((1, 1, 5, 7), {"kernel_shape": [2, 2], "strides": [2, 3], "auto_pad": "VALID"}),
    "ceil, window over the end": ((1, 1, 4, 6), {"kernel_shape": [3, 4], "strides": [2, 3]}),
    "ceil, window larger than the input": ((1, 2, 7, 6), {"kernel_shape": [1280, 10], "strides": [1280, 5]}),
    "ceil, window larger than the padded input": (
        (1, 2, 7, 9),
        {"kernel_shape": [20, 4], "strides": [4, 2], "pads": [5, 0, 5, 1]},
    ),
}


OPERATORS = [
    ("MaxPool", {}, 1),
    ("MaxPool", {}, 2),
    ("MaxPool", {"storage_order": 1}, 2),
    ("AveragePool", {}, 1),
    ("AveragePool", {"count_include_pad": 1}, 1),
    ("LpPool", {"p": 1}, 1),
    ("LpPool", {"p": 3}, 1),
]
DILATED = {"kernel_shape": [3, 2], "strides": [2, 1], "dilations": [2, 3], "pads": [1, 0, 2, 1]}


@pytest.mark.parametrize("case", [*WINDOWS, *CEIL, "dilated"])
def test_windows(case):
    shape, attrs = (WINDOWS | CEIL | {"dilated": ((1, 2, 9, 8), DILATED)})[case]
    x = np.round(values(*shape), 1)  # some are equal: of maxima the first one counts
    for op_type, more, outputs in OPERATORS:
        check_against_ort(op_type, [x], attrs | more | {"ceil_mode": int(case in CEIL)}, 19, n_outputs=outputs)


@given(st.data())
@examples(40)
def test_indices_are_of_the_first_maximum_or_the_last_that_is_no_number(data):
    rank = data.draw(st.integers(1, 3))
    sizes, kernel, strides, dilations = (
        data.draw(st.tuples(*[st.integers(*ends)] * rank)) for ends in ((3, 7), (1, 3), (1, 3), (1, 1))
    )
    pads = [data.draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
    dtype = data.draw(st.sampled_from(["f4", "i1", "f2"]))
    special = np.array([-np.inf, np.nan, 0.0, 1.0] if dtype != "i1" else [-128, 127, 0, 1])
    x = np.random.default_rng(data.draw(st.integers(0, 99))).choice(special, (2, 2, *sizes)).astype(dtype)
    attrs = {"kernel_shape": list(kernel), "strides": list(strides), "pads": pads, "dilations": list(dilations)}
    by_columns = data.draw(st.booleans())
    y, index = run_kernel("MaxPool", [x], attrs | {"storage_order": int(by_columns)}, 12, 2)
    numbers = np.arange(x[0, 0].size).reshape(sizes[::-1]).T if by_columns else np.arange(x[0, 0].size).reshape(sizes)
    for n, c, *place in np.ndindex(index.shape):
        seen = [range(o * s - b, o * s - b + k) for o, s, b, k in zip(place, strides, pads, kernel)]
        inside = np.ix_(*[[i for i in each if 0 <= i < size] for each, size in zip(seen, sizes)])
        window, own = x[n, c][inside].ravel(), numbers[inside].ravel() + (n * 2 + c) * x[0, 0].size
        is_nan = np.flatnonzero(np.isnan(window.astype("f4")))
        at = is_nan[-1] if is_nan.size else window.astype("f4").argmax()
        assert index[n, c, *place] == own[at]
        np.testing.assert_array_equal(y[n, c, *place], window[at])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_what_is_no_number_is_the_maximum_with_indices_or_without(dtype):
    """As in PyTorch. For ONNX Runtime it is one only where a window begins with it."""
    x = np.array([[[1, np.nan, 3, 2, np.nan, np.nan]]], dtype)
    (alone,) = run_kernel("MaxPool", [x], {"kernel_shape": [2]}, 12)
    maxima, places = run_kernel("MaxPool", [x], {"kernel_shape": [2]}, 12, n_outputs=2)
    np.testing.assert_array_equal(maxima, alone)
    np.testing.assert_array_equal(maxima, np.array([[[np.nan, np.nan, 3, np.nan, np.nan]]], dtype))
    assert places.tolist() == [[[1, 1, 2, 4, 5]]]


def test_half_averages_are_computed_in_float32():
    """4,096 sixteen-bit values near 100 sum to more than float16's largest number, 65,504."""
    x = (100 + values(1, 1, 64, 64)).astype(np.float16)
    expected = x.astype(np.float64).mean(axis=(2, 3), keepdims=True).astype(np.float16)
    assert_same(run_kernel("GlobalAveragePool", [x], {}, 1), [expected], rtol=1e-3)
    assert_same(run_kernel("AveragePool", [x], {"kernel_shape": [64, 64]}, 11), [expected], rtol=1e-3)


@st.composite
def pool_cases(draw):
    rank = draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    attrs = {
        "kernel_shape": kernel,
        "strides": draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)),
        "pads": [draw(st.integers(0, k - 1)) for k in kernel * 2],
        "ceil_mode": draw(st.integers(0, 1)),
    }
    sizes = [draw(st.integers(1, 6)) + k - 1 for k in kernel]
    return values(draw(st.integers(1, 2)), draw(st.integers(1, 2)), *sizes), attrs


@given(pool_cases(), st.sampled_from([("MaxPool", 1), ("MaxPool", 2), ("AveragePool", 1)]))
@examples(80)
def test_pool_property(case, operator):
    (x, attrs), (op_type, outputs) = case, operator
    check_against_ort(op_type, [x], attrs, 12, outputs)


@given(pool_cases())
@examples(30)
def test_unpool_puts_the_maxima_back(case):
    x, attrs = case
    sides = {"kernel_shape": attrs["kernel_shape"], "strides": attrs["kernel_shape"]}  # windows do not overlap
    sizes = [n // k * k for n, k in zip(x.shape[2:], attrs["kernel_shape"], strict=True)]
    x = x[(..., *(slice(0, n) for n in sizes))].copy()
    maxima, indices = run_kernel("MaxPool", [x], sides, 12, 2)
    (ours,) = run_kernel("MaxUnpool", [maxima, indices], sides, 11)
    expected = np.zeros_like(x)
    expected.ravel()[indices.ravel()] = maxima.ravel()
    assert_same([ours], [expected])


BAD = {
    "rank": ("MaxPool", [values(3, 4)], {"kernel_shape": [2]}, "spatial"),
    "no kernel_shape": ("AveragePool", [values(1, 1, 4)], {}, "kernel_shape"),
    "kernel_shape": ("MaxPool", [values(1, 1, 4)], {"kernel_shape": [2, 2]}, "kernel_shape"),
    "window": ("LpPool", [values(1, 1, 4)], {"kernel_shape": [6]}, "fit"),
    "p": ("LpPool", [values(1, 1, 4)], {"kernel_shape": [2], "p": 0}, "p is 0"),
    "huge": ("MaxPool", [values(0, 1, 3)], {"kernel_shape": [2], "pads": [1 << 61, 1]}, "GiB"),
    "global": ("GlobalAveragePool", [values(3, 4)], {}, "spatial"),
    "index": ("MaxUnpool", [values(1, 1, 2), np.array([[[0, 4]]])], {"kernel_shape": [2], "strides": [2]}, "index"),
    "indices": ("MaxUnpool", [values(1, 1, 2), np.array([[[0]]])], {"kernel_shape": [2]}, "indices"),
    "output_shape": (
        "MaxUnpool",
        [values(1, 1, 2), np.array([[[0, 3]]]), np.array([1, 1, 3])],
        {"kernel_shape": [2], "strides": [2]},
        "output_shape",
    ),
    "output_shape's rank": (
        "MaxUnpool",
        [values(1, 1, 2), np.array([[[0, 3]]]), np.array([4])],
        {"kernel_shape": [2], "strides": [2]},
        "output_shape",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, attrs, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, attrs, None)
