"""The cases of ONNX's own test suites, loaded once in each process: that takes seconds."""

import warnings
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper
from onnx.reference.ops import op_pool_common

_ONE_BY_ONE = op_pool_common.pool
"""Computes a window of a pool at a time, which is two thirds of the time of loading the node suite."""


@cache
def suite(kind: str) -> tuple[Any, ...]:
    """The cases of a kind, as ``onnx.backend.test.loader`` gives them; nobody may change them."""
    from onnx.backend.test.case import base
    from onnx.backend.test.loader import load_model_tests

    with (
        warnings.catch_warnings(action="ignore"),
        np.errstate(all="ignore"),  # making expected values divides by zero here and there
        patch.object(op_pool_common, "pool", pool),
        patch.object(base, "process_snippet", return_value=("", "")),  # sources, for onnx's documentation
    ):
        return tuple(load_model_tests(kind=kind))


def pool(
    x: np.ndarray[Any, Any], shape: Any, kernel: Any, strides: Any, out_shape: Any, kind: str, *rest: Any, **more: Any
) -> np.ndarray[Any, Any]:
    """What ``onnx`` expects of a pool; of the simplest, which are the largest, all windows are computed at once."""
    if rest or more.keys() - {"p"} or any(s != 1 for s in strides):
        return _ONE_BY_ONE(x, shape, kernel, strides, out_shape, kind, *rest, **more)
    windows = sliding_window_view(x, kernel, tuple(range(2, x.ndim))).reshape(*shape[:2], *out_shape, -1)
    match kind:
        case "AVG":
            return windows.mean(-1)
        case "MAX":
            return windows.max(-1)
        case _:
            return (np.abs(windows) ** more.get("p", 1)).sum(-1) ** (1 / more.get("p", 1))


def value(given: Any) -> Any:
    """An input or expected output of a case, as irc takes and gives it."""
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, onnx.SequenceProto):
        return numpy_helper.to_list(given)
    if isinstance(given, onnx.OptionalProto):
        return numpy_helper.to_optional(given)
    return np.asarray(given) if isinstance(given, np.generic) else given
