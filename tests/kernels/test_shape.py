"""Operators that give the same elements another shape, and those that read shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from tests.arrays import ramp
from tests.kernels.helpers import run_kernel


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((0, 2), (0, -1), (0, 2)),
        ((3, 0), (-1, 0), (3, 0)),
        ((0, 3, 4), (0, -1, 6), (0, 2, 6)),
        ((0, 2), (0, 2, -1), (0, 2, 1)),
    ],
)
def test_reshape_of_an_empty_batch_infers_what_it_does_of_others(shape, target, expected):
    """ONNX Runtime refuses it; passes that know a size by name only infer the same."""
    empty = np.empty(shape, np.float32)
    assert run_kernel("Reshape", [empty, ints(*target)], {}, 14)[0].shape == expected
    full = ramp(*[d or 5 for d in shape])
    assert run_kernel("Reshape", [full, ints(*target)], {}, 14)[0].shape == tuple(d or 5 for d in expected)
    for bad in ((0, -1, -1), (0, -1, 7)):
        with pytest.raises(Error, match="cannot be reshaped"):
            run_kernel("Reshape", [np.empty((0, 2), np.float32), ints(*bad)], {}, 14)


@given(st.lists(st.integers(0, 3), max_size=4), st.data())
def test_reshapes_of_any_view(shape, data):
    """Squeezing what was unsqueezed, from any strides, gives the same tensor."""
    x = ramp(*shape).transpose(data.draw(st.permutations(range(len(shape)))))
    axes = data.draw(st.lists(st.integers(0, len(shape)), max_size=3, unique=True))
    wide = run_kernel("Unsqueeze", [x, np.array(axes, np.int64)], {}, 13)[0]
    assert wide.ndim == x.ndim + len(axes)
    np.testing.assert_array_equal(run_kernel("Squeeze", [wide, np.array(axes, np.int64)], {}, 13)[0], x)


@pytest.mark.parametrize(
    ("op", "now", "name", "numbers"),
    [
        *[("Reshape", 14, "shape", sizes) for sizes in ([6, 4], [-1], [0, -1], [4, 3, 2], [1, 24, 1], [0, 0, 2, -1])],
        *[("Pad", 13, "paddings", pads) for pads in ([1, 0, 2, 0, 3, 1], [0, 0, 0, 0, 0, 1], [-1, 1, 0, 0, 1, -1])],
    ],
)
def test_numbers_that_version_1_has_as_attributes(op, now, name, numbers):
    """ONNX Runtime begins with version 7."""
    (expected,) = run_kernel(op, [ramp(2, 3, 4), ints(*numbers)], {}, now)
    np.testing.assert_array_equal(run_kernel(op, [ramp(2, 3, 4)], {name: numbers}, 1)[0], expected)


BLOCKS = [
    (op, shape, size, message)
    for op, nothing in (("SpaceToDepth", (1, 4, 0, 0)), ("DepthToSpace", (1, 0, 3, 3)))
    for shape, size, message in (
        (nothing, 1 << 32, "would take more"),
        ((1, 6, 3, 3), 2, "do not divide"),
        ((4, 4, 4), 2, "4 dimensions"),
        ((1, 4, 4, 4), 0, "blocksize"),
    )
]
BAD = [
    ("Squeeze", (1, 3, 1, 2), [ints(1)], {}, "cannot be squeezed"),
    *[("Unsqueeze", (3, 2), [ints(*axes)], {}, "axis|twice") for axes in ((4,), (0, 0), (0, -4))],
    *[("Transpose", (2, 3, 4), [], {"perm": p}, "not a permutation") for p in ([0, 1], [0, 0, 1], [0, 1, 3])],
    ("Expand", (3, 2), [ints(3, 4)], {}, "cannot be expanded"),
    ("Expand", (3, 1), [ints(3, -1)], {}, "negative"),
    ("Expand", (1,), [ints(1 << 30, 1 << 30)], {}, "more than"),
    *[(op, shape, [], {"blocksize": size}, message) for op, shape, size, message in BLOCKS],
]


@pytest.mark.parametrize(("op", "shape", "more", "attrs", "message"), BAD)
def test_bad_operands_are_errors(op, shape, more, attrs, message):
    with pytest.raises(Error, match=message):
        run_kernel(op, [ramp(*shape), *more], attrs, 13)
