"""Classifying by support vectors on arrays next to pages that may not be touched."""

from __future__ import annotations

import numpy as np
import pytest

from irc.runtime.kernels.ml import Machine, _decided
from tests.native.guarded import ENDS, guarded, guarded_empty
from tests.native.test_svm import SIZES, check_decided, decided, machine


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("has_chances", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_classifiers(sizes, has_chances, end, monkeypatch):
    plain = machine(sizes, has_chances)
    similarities = np.random.default_rng(1).random((5, sum(sizes)))
    wanted = _decided(similarities, plain)
    given = Machine(*[guarded(x, end, is_read_only=True) for x in plain])
    similarities = guarded(similarities, end, is_read_only=True)

    def empty(shape, dtype=np.float64):
        return guarded_empty(shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype), end)

    decided(similarities, given)
    monkeypatch.setattr(np, "empty", empty)
    check_decided(decided(similarities, given), wanted)
