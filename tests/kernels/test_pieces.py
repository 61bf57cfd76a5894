"""Slice, Split, Concat, Tile, Pad."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import irc
from irc.errors import Error
from tests.arrays import ramp
from tests.kernels.helpers import check_against_ort, run_kernel
from tests.models import onnx_model


def ints(*numbers: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(numbers, dtype)


LOWEST, LARGEST = -(2**63), 2**63 - 1
bounds = st.one_of(st.integers(-8, 8), st.sampled_from([LOWEST, LARGEST, -(2**31), 2**31 - 1]))


# -- Slice ------------------------------------------------------------------------


@given(st.data())
def test_slices_are_those_of_the_specification(data):
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    starts = [data.draw(bounds) for _ in axes]
    ends = [data.draw(bounds) for _ in axes]
    steps = [data.draw(st.integers(-3, 3).filter(bool)) for _ in axes]
    signed = [a - len(shape) if data.draw(st.booleans()) else a for a in axes]
    is_short = all(-(2**31) <= n < 2**31 for n in starts + ends) and data.draw(st.booleans())
    numbers = [np.array(n, np.int32 if is_short else np.int64) for n in (starts, ends, signed, steps)]
    found = run_kernel("Slice", [ramp(*shape), *numbers], {}, 13)[0]
    expected = ramp(*shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = shape[axis]
        low, high = (0, size) if step > 0 else (-1, size - 1)  # where the end is clamped to; the start is from 0 on
        start, end = (n + size if n < 0 else n for n in (start, end))
        start, end = min(max(start, 0), high), min(max(end, low), high)
        expected = np.take(expected, np.arange(start, end, step), axis)
    np.testing.assert_array_equal(found, expected)


# -- Split ------------------------------------------------------------------------


def test_uneven_split():
    check_against_ort("Split", [ramp(7)], {"num_outputs": 3}, 18, n_outputs=3)
    sizes = [p.size for p in run_kernel("Split", [ramp(5)], {"num_outputs": 4}, 18, n_outputs=4)]
    assert sizes == [2, 2, 1, 0]
    with pytest.raises(Error, match="do not divide into 3 equal parts"):
        run_kernel("Split", [ramp(7)], {}, 13, n_outputs=3)


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("count", [-1, 0, 1, 3])
def test_a_split_has_as_many_outputs_as_it_says(count, passes):
    node = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=count)
    proto = onnx_model(node, {"x": [4]}, "yz")
    with pytest.raises(Error, match=f"num_outputs is {count}, but the node has 2 outputs"):
        irc.compile(proto, passes).run({"x": ramp(4)})
    with pytest.raises(Error, match="num_outputs must not be"):
        run_kernel("Split", [ramp(4), ints(2, 2)], {"num_outputs": 2}, 18, n_outputs=2)


# -- Concat, Tile -----------------------------------------------------------------


def test_tile_along_an_axis():
    found = run_kernel("Tile", [ramp(2, 3), np.array(2), np.array(1)], {}, 1)[0]
    np.testing.assert_array_equal(found, np.tile(ramp(2, 3), (1, 2)))


# -- Pad ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.float64, bool, np.uint8, object])
def test_constant_pads_of_any_type(dtype):
    x = np.array(["a", "b"], object) if dtype is object else np.array([1, 0]).astype(dtype)
    value = np.array("z" if dtype is object else 1, dtype)
    assert run_kernel("Pad", [x, ints(1, 2), value], {}, 13)[0].tolist() == [value, *x.tolist(), value, value]
    assert run_kernel("Pad", [x, ints(0, 1)], {}, 13)[0][-1] == ("" if dtype is object else np.zeros(1, dtype)[0])


@given(st.data())
def test_pads_are_those_of_numpy(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    begins = [data.draw(st.integers(0, 9)) for _ in shape]
    ends = [data.draw(st.integers(0, 9)) for _ in shape]
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    found = run_kernel("Pad", [ramp(*shape), ints(*begins, *ends)], {"mode": mode}, 19)[0]
    expected = np.pad(ramp(*shape), list(zip(begins, ends, strict=True)), mode=mode)
    np.testing.assert_array_equal(found, expected)


EMPTY = np.empty((0, 2), np.float32)


@pytest.mark.parametrize(
    ("op", "x", "more", "attrs", "message"),
    [
        ("Slice", ramp(2, 3), [ints(0), ints(1), ints(2)], {}, "axis 2"),
        ("Slice", ramp(2, 3), [ints(0), ints(1), ints(0), ints(0)], {}, "step 0"),
        ("Slice", ramp(2, 3), [ints(0, 0), ints(1)], {}, "2 starts, 1 ends"),
        *[("Split", ramp(5), [ints(*sizes)], {}, "^IRC42") for sizes in ((1, 2), (4, -1), (3,))],
        *[("Tile", ramp(2, 3), [ints(*repeats)], {}, "^IRC4") for repeats in ((2,), (1, -1), (1 << 40, 1 << 20))],
        ("Pad", ramp(2, 3), [ints(1, 2)], {}, "2 pads are given for 2 axes"),
        ("Pad", ramp(2, 3), [ints(0, -4, 0, 0)], {}, "remove more than"),
        ("Pad", ramp(2, 3), [ints(1 << 60, 0, 0, 0)], {}, "more than"),
        ("Pad", ramp(2, 3), [ints(1, 0, 0, 0)], {"mode": "mirror"}, "mirror"),
        ("Pad", EMPTY, [ints(1, 0, 0, 0)], {"mode": "edge"}, "without elements"),
    ],
)
def test_bad_operands_are_errors(op, x, more, attrs, message):
    with pytest.raises(Error, match=message):
        run_kernel(op, [x, *more], attrs, 13, n_outputs=2 if op == "Split" else 1)
