"""The tools irc is measured against: optimisers of ONNX models, and ways to run one.

Each entry is a function that imports its tool when called, so that a tool that
is not installed costs nothing and is left out (`installed`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import onnx

Feeds = Mapping[str, np.ndarray[Any, Any]]
Optimize = Callable[[onnx.ModelProto], onnx.ModelProto]
Prepare = Callable[[onnx.ModelProto], Callable[[Feeds], Any]]


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript import optimizer

    return optimizer.optimize(model)


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def _onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    simplified, _ = onnxsim.simplify(model)
    return simplified


def _onnxoptimizer(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxoptimizer

    return onnxoptimizer.optimize(model)


OPTIMIZERS: dict[str, Optimize] = {
    "onnxscript": _onnxscript,
    "onnxslim": _onnxslim,
    "onnxsim": _onnxsim,
    "onnxoptimizer": _onnxoptimizer,
}
"""Package -> what optimises a model with it."""


def _onnxruntime(model: onnx.ModelProto) -> Callable[[Feeds], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda feeds: session.run(None, dict(feeds))


def _reference(model: onnx.ModelProto) -> Callable[[Feeds], Any]:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda feeds: evaluator.run(None, dict(feeds))


RUNNERS: dict[str, Prepare] = {"onnxruntime": _onnxruntime, "onnx.reference": _reference}
"""Module -> what makes a model ready to run with it."""

T = TypeVar("T")


def installed(tools: Mapping[str, T]) -> dict[str, T]:
    """The entries of a table above whose package can be imported here."""
    return {name: tool for name, tool in tools.items() if importlib.util.find_spec(name.split(".")[0])}
