"""The cases of ONNX's own test suites, loaded once in each process: that takes seconds."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


@cache
def suite(kind: str) -> tuple[Any, ...]:
    """The cases of a kind, as ``onnx.backend.test.loader`` gives them; nobody may change them."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):  # making expected values divides by zero here and there
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind=kind))


def value(given: Any) -> Any:
    """An input or expected output of a case, as irc takes and gives it."""
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, onnx.SequenceProto):
        return numpy_helper.to_list(given)
    if isinstance(given, onnx.OptionalProto):
        return numpy_helper.to_optional(given)
    return np.asarray(given) if isinstance(given, np.generic) else given
