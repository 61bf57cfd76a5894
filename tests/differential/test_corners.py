"""Torch's own answers to the calls of ``tests/runtime/test_aten_corners.py``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.helpers import Typed, compare
from tests.runtime.test_aten_corners import CALLS, REFUSALS

OUTPUTS = {"native_dropout": 2, "unique_consecutive": 3, "_unique2": 3, "mode": 2, "adaptive_max_pool1d": 2}
"""How many results there are, if not one; of ``..._with_indices`` two."""


def _given(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of which text can tell the types."""
    return tuple(Typed(a, "int[]") if isinstance(a, list) and not a else a for a in arguments)


@pytest.mark.parametrize(("kind", "arguments", "_"), [*CALLS, *REFUSALS])
def test_torch_agrees(kind: str, arguments: tuple[Any, ...], _: Any) -> None:
    outputs = OUTPUTS.get(kind, 2 if kind.endswith("_with_indices") else 1)
    compare(kind if "::" in kind else f"aten::{kind}", *_given(arguments), outputs=outputs)
