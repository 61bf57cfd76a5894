"""Copies of arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from irc.native.inner_loops import LOOPS
from irc.native.moves import MOST_ROWS, call_for_copy
from irc.runtime.kernels.shape import padded
from tests.effort import examples
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_moves import bits_of, permuted, to_pad


@pytest.mark.parametrize("end", ENDS)
@examples(200)
@given(permuted())
def test_copies(end, x):
    x = guarded(x, end, is_read_only=True)
    out = guarded_empty(x.shape, x.dtype, end)
    if (call := call_for_copy(x, out)) is not None:
        assert call.run((x, out))
        assert bits_of(out) == bits_of(x)


@pytest.mark.parametrize("end", ENDS)
@examples(200)
@given(to_pad())
@example((np.ones((3, 4, 2), np.float32)[..., :1], [(1, 2), (0, 3), (0, 1)], "edge"))
def test_padding(end, case):
    x, added, mode = case
    expected = padded(x, added, mode, 1)
    constant = guarded(np.ones(1, x.dtype), end, is_read_only=True)
    out = guarded_empty(expected.shape, x.dtype, end)
    done = LOOPS.pad(guarded(x, end, is_read_only=True), added, mode, constant, out)
    assert done == (out.size <= MOST_ROWS * out.shape[-1])
    assert not done or bits_of(out) == bits_of(expected)
