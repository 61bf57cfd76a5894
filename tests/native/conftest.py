"""A run whose native code is asked to pause."""

from typing import Any

import pytest

from irc.runtime.bounds import CURRENT


@pytest.fixture
def slow_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if NumPy's BLAS were slow: native code computes products wherever it can."""
    from irc.native import products  # needs llvmlite, as the others do
    from irc.native.panels import MOST_FEATURES
    from irc.native.target import current

    monkeypatch.setattr(products, "is_blas_behind", lambda: current().vector_bytes in MOST_FEATURES)


@pytest.fixture
def pacing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts how often code pauses."""
    from tests.native.helpers import Pacing  # which needs llvmlite

    guard = Pacing()
    monkeypatch.setattr(CURRENT.scope, "guard", guard)
    return guard
