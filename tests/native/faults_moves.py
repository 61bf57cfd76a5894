"""Copies of arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from irc.native.inner_loops import LOOPS
from irc.native.moves import MOST_ROWS, call_for_copy, call_for_rows
from irc.runtime.kernels.shape import padded
from tests.effort import examples
from tests.native.guarded import ENDS, End, guarded, guarded_empty
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


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("fills", [False, True])
def test_rows_of_a_concatenation(end: End, fills: bool) -> None:
    rows, width, whole, place = 3, 20, 32, 12
    source = guarded(np.arange(rows * width, dtype=np.uint8).reshape(rows, width), end, is_read_only=True)
    out = guarded_empty((rows, whole), source.dtype, end)
    assert call_for_rows(rows, width, whole, place, fills=fills).run((source, out))
    np.testing.assert_array_equal(out[:, place:], source)
    assert (out[:, :place] == (0 if fills else 0xA5)).all()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_along_several_axes(end: End, shape: tuple[int, ...], turned: bool) -> None:
    whole = guarded(np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5), end, is_read_only=True)
    source = np.broadcast_to(whole[0, 0], (*shape[:-2], 4, 5))[..., : shape[-2], :] if len(shape) < 4 else whole
    source = source[(..., slice(None, None, -1), slice(None))] if turned else source
    (rows, *axes), (step, *steps) = source.shape[:-1], source.strides[:-1]
    out = guarded_empty(source.shape, source.dtype, end)
    assert call_for_rows(rows, 20, 20, 0, step, inner=list(zip(axes, steps))).run((source, out))
    np.testing.assert_array_equal(out, source)
