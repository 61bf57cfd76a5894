"""A run whose native code is asked to pause."""

from __future__ import annotations

from typing import Any

import pytest

from irc.runtime.bounds import CURRENT


@pytest.fixture
def pacing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts how often code pauses."""
    from tests.native.helpers import Pacing  # which needs llvmlite

    guard = Pacing()
    monkeypatch.setattr(CURRENT.scope, "guard", guard)
    return guard
