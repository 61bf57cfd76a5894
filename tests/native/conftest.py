"""A run whose native code is asked to pause."""

from __future__ import annotations

import pytest

from irc.runtime.bounds import CURRENT
from tests.native.helpers import Pacing


@pytest.fixture
def pacing(monkeypatch: pytest.MonkeyPatch) -> Pacing:
    """Counts how often code pauses."""
    guard = Pacing()
    monkeypatch.setattr(CURRENT.scope, "guard", guard)
    return guard
