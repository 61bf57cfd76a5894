"""The tools irc is measured against: optimisers of ONNX models, and ways to run one.

Each entry is a function that imports its tool when called, so that a tool that
is not installed costs nothing and is left out (`installed`).
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx

from irc.tools.check.peers import onnxruntime_session

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


def session_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """What ONNX Runtime makes of a model: the file that it writes when asked to."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = path = str(Path(folder) / "optimized.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options)
        return onnx.load(path)


def computing_nodes(model: onnx.ModelProto) -> int:
    """The nodes of a model's graph that compute something: without Constant, which some tools make initializers."""
    return sum(node.op_type != "Constant" for node in model.graph.node)


OPTIMIZERS: dict[str, Optimize] = {
    "onnxscript": _onnxscript,
    "onnxslim": _onnxslim,
    "onnxsim": _onnxsim,
    "onnxoptimizer": _onnxoptimizer,
}
"""Package -> what optimises a model with it."""

SESSIONS: dict[str, Callable[[onnx.ModelProto], Any]] = {"onnxruntime": onnxruntime_session}
"""Package -> what makes a model ready to run, as ``irc.compile`` does."""

PROGRAMS = {"onnxslim": "onnxslim", "onnxsim": "onnxsim"}
"""Package -> its program, which optimises the model in one file into another."""


def _onnxruntime(model: onnx.ModelProto) -> Callable[[Feeds], Any]:
    session = onnxruntime_session(model)
    return lambda feeds: session.run(None, dict(feeds))


def _reference(model: onnx.ModelProto) -> Callable[[Feeds], Any]:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda feeds: evaluator.run(None, dict(feeds))


RUNNERS: dict[str, Prepare] = {"onnxruntime": _onnxruntime, "onnx.reference": _reference}
"""Module -> what makes a model ready to run with it."""

NAMES = (*OPTIMIZERS, *SESSIONS, "torch")
"""All peers."""

T = TypeVar("T")


def installed(tools: Mapping[str, T]) -> dict[str, T]:
    """The entries of a table above whose package can be imported here."""
    return {name: tool for name, tool in tools.items() if is_installed(name)}


def runners(model: onnx.ModelProto, without: str = "") -> dict[str, Callable[[Feeds], Any]]:
    """Each installed way to run ``model`` but one, ready to: from inputs to a list of outputs."""
    return {name: prepare(model) for name, prepare in installed(RUNNERS).items() if name != without}


def is_installed(name: str) -> bool:
    """Whether a module's package can be imported here."""
    return importlib.util.find_spec(name.split(".")[0]) is not None


def absent() -> list[str]:
    """One line for each peer that is not installed: how to add it."""
    return [f"{name} is not installed: left out (pip install {name})" for name in NAMES if not is_installed(name)]
