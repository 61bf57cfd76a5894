"""Copies of arrays next to pages that may not be touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from irc.native.moves import call_for_copy
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_moves import bits_of, permuted


@pytest.mark.parametrize("end", ENDS)
@settings(max_examples=200, deadline=None)
@given(permuted())
def test_copies(end, x):
    x = guarded(x, end, is_read_only=True)
    out = guarded_empty(x.shape, x.dtype, end)
    if (call := call_for_copy(x, out)) is not None:
        assert call.run((x, out))
        assert bits_of(out) == bits_of(x)
