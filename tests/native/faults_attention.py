"""Attention of few rows, of arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.native.attention import call_for_attention
from tests.effort import examples
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_attention import cases


@pytest.mark.parametrize("end", ENDS)
@examples(100)
@given(cases(), st.booleans(), st.booleans())
def test_rows(end, case, is_masked, has_bias):
    query, key, value, form = case
    group = query.shape[-3] // key.shape[-3]
    query = query.reshape(*key.shape[:-2], *([group] if form.grouped else []), *query.shape[-2:])
    query, key, value = (guarded(x, end, is_read_only=True) for x in (query, key, value))
    keys = key.shape[-2]
    call = call_for_attention(query, key, value, 0.5, -np.inf if is_masked else None, has_bias)
    dtypes = [np.dtype(np.bool_)] * is_masked + [query.dtype] * has_bias
    more = [guarded(np.ones((*query.shape[:-1], keys), dtype), end, is_read_only=True) for dtype in dtypes]
    out = guarded_empty((*query.shape[:-1], value.shape[-1]), query.dtype, end)
    scores = guarded_empty((call.size, -(-keys // 16) * 16), query.dtype, "first")
    assert call.run((query, key, value, guarded(np.array([keys]), end), scores, *more, out))
