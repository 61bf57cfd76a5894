"""Products of two or three rows, each of which is multiplied by itself."""

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.kernels import numerics
from irc.runtime.kernels.numerics import product

Array = np.ndarray[Any, Any]


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).integers(-8, 9, shape).astype(dtype)


@given(st.data())
def test_whatever_operands_and_result_lie_like(data: st.DataObject) -> None:
    draw = data.draw
    size = st.integers(0, 3)
    lead = draw(st.lists(size, max_size=2))

    def of(*inner: int) -> Array:
        kept = lead[draw(st.integers(0, len(lead))) :]
        shape = [n if draw(st.booleans()) else 1 for n in kept] + [*inner]
        steps = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
        order = draw(st.permutations(range(len(shape))))
        whole = numbers(*(shape[i] * steps[i] for i in order), dtype=dtype)
        array = whole.transpose(np.argsort(order))
        return array[tuple(slice(None, None, step) for step in steps)]

    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows, depth, columns = draw(st.integers(0, 4)), draw(st.integers(0, 9)), draw(size)
    x, y = of(rows, depth), of(depth, columns)
    with patch.multiple(numerics, _ENOUGH=0, _DEEP=0):
        wanted = np.matmul(x, y)
        found = product(x, y)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(found, wanted)
        room = np.full((*wanted.shape[:-2], wanted.shape[-2] + 1, wanted.shape[-1] + 2), np.nan, dtype)
        product(x, y, room[..., 1:, 1:-1])
        np.testing.assert_array_equal(room[..., 1:, 1:-1], wanted)
        assert np.isnan(room[..., :1, :]).all() and np.isnan(room[..., [0, -1]]).all()
