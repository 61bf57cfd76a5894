"""Copies that lie as their originals: results must not hang on whether an input was copied."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.array_memory import copy_as_it_lies

BIG = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
LAYOUTS = {
    "every second": BIG[:, :, ::2],
    "the first half": BIG[:, :, :4],
    "rows": BIG[:, ::3],
    "blocks": BIG[::2],
    "transposed": BIG.transpose(2, 0, 1),
    "transposed with gaps": BIG[:, ::2].transpose(1, 2, 0),
    "one row": BIG[:1, :1, ::3],
    "backwards": BIG[:, ::-1],
    "repeated": np.broadcast_to(BIG[0, 0], (3, 8)),
    "repeated twice": np.broadcast_to(BIG[:1, :1, :1], (2, 3, 4)),
    "no elements": BIG[:, :0, ::2],
    "a number": BIG[1, 2, 3:4].reshape(()),
    "dense": BIG,
    "of Fortran": np.asfortranarray(BIG),
}


def merged(array: np.ndarray) -> set[tuple[int, int]]:
    """The neighbouring axes that are one in memory, and those of which the elements lie side by side."""
    axes = [i for i, size in enumerate(array.shape) if size > 1]
    found = {(i, j) for i, j in pairwise(axes) if array.strides[i] == array.strides[j] * array.shape[j]}
    return found | {(i, -1) for i in axes if array.strides[i] == array.itemsize}


@pytest.mark.parametrize("name", LAYOUTS)
def test_axes_follow_each_other_as_they_did(name: str) -> None:
    array = LAYOUTS[name]
    copy = copy_as_it_lies(array)
    np.testing.assert_array_equal(copy, array, strict=True)
    assert copy.flags.writeable and not np.shares_memory(copy, array)
    if array.size:
        assert merged(copy) == merged(array)
        low, high = np.lib.array_utils.byte_bounds(copy)
        assert high - low <= 2 ** (1 + array.ndim) * array.nbytes
    copy[...] = np.arange(copy.size).reshape(copy.shape)  # each element has a place of its own
    np.testing.assert_array_equal(copy, np.arange(copy.size).reshape(copy.shape))


@given(st.data())
def test_any_slices(data: st.DataObject) -> None:
    steps = st.sampled_from([1, 2, 3, -1, -2])
    array = BIG[tuple(slice(None, None, data.draw(steps)) for _ in range(3))]
    array = array.transpose(data.draw(st.permutations(range(3))))
    copy = copy_as_it_lies(array)
    np.testing.assert_array_equal(copy, array)
    assert merged(copy) == merged(array)
