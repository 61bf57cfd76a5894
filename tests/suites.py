"""The cases of ONNX's own test suites, loaded once in each process: that takes seconds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper


@cache
def suite(kind: str) -> tuple[Any, ...]:
    """The cases of a kind, as ``onnx.backend.test.loader`` gives them; nobody may change them."""
    from onnx.backend.test.loader import load_model_tests
    from onnx.reference.ops import op_pool_common

    # making expected values divides by zero here and there, and windows one by one take three quarters of the time
    with warnings.catch_warnings(), np.errstate(all="ignore"), patch.object(op_pool_common, "pool", pool):
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind=kind))


def pool(
    padded: np.ndarray[Any, Any],
    x_shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    out_shape: Sequence[int],
    pooling_type: str,
    pads_required: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    count_include_pad: int = 0,
    p: int = 1,
) -> np.ndarray[Any, Any]:
    """As onnx's function of this name, for floats of which none is NaN but for padding: all windows at once."""
    sizes, rank = np.array(x_shape[2:]), len(kernel)
    steps = np.ones(rank, int) if dilations is None else np.array(dilations)
    spans = (np.array(kernel) - 1) * steps + 1
    added, known = (0 if each is None else np.reshape(each, (2, rank)).sum(0) for each in (pads_required, pads))
    counts = (sizes + added - spans) // np.array(strides) + 1
    inside = padded[(..., *map(slice, sizes + known))]
    beyond = np.maximum((counts - 1) * strides + spans - inside.shape[2:], 0)
    canvas = np.pad(inside, [(0, 0), (0, 0), *((0, int(n)) for n in beyond)], constant_values=np.nan)
    chosen = (slice(None), slice(None), *(slice(0, n * s, s) for n, s in zip(counts, strides)))
    windows = sliding_window_view(canvas, tuple(spans), tuple(range(2, 2 + rank)))[chosen]
    taken = windows[(..., *(slice(None, None, d) for d in steps))].reshape(*x_shape[:2], *counts, -1)
    match pooling_type:
        case "AVG":
            found = np.nanmean(taken, -1)
        case "MAX":
            found = np.nanmax(taken, -1)
        case "LPPOOL":
            found = np.nansum(np.abs(taken) ** p, -1) ** (1 / p)
    return found.reshape(*x_shape[:2], *out_shape).astype(padded.dtype)


def value(given: Any) -> Any:
    """An input or expected output of a case, as irc takes and gives it."""
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, onnx.SequenceProto):
        return numpy_helper.to_list(given)
    if isinstance(given, onnx.OptionalProto):
        return numpy_helper.to_optional(given)
    return np.asarray(given) if isinstance(given, np.generic) else given
