"""Torch's own answers to the calls of ``tests/runtime/test_aten_corners.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
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


IMAGES = np.random.default_rng(0).random((2, 8, 2, 4)).astype(np.float32)
CHANNELS_LAST = np.ascontiguousarray(IMAGES.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("x", [IMAGES, CHANNELS_LAST])
@pytest.mark.parametrize("kind", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
@pytest.mark.parametrize("by", [1, 2, 8])
def test_shuffles_make_new_memory_in_the_format_of_the_old(kind: str, by: int, x: Any) -> None:
    compare(f"aten::{kind}", x, by)


@pytest.mark.parametrize("exponent", [2, 0.5, -1, -0.5, 3, 0])
def test_powers_of_complex_numbers(exponent: float) -> None:
    compare("aten::pow", np.array([2j, -1, 1 - 1j], np.complex64), exponent)
