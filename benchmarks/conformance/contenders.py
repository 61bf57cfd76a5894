"""Who runs the suite: irc, onnx.reference, ONNX Runtime. Each imports its package when it first prepares a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

Run = Callable[[Sequence[Any]], Sequence[Any]]


def _irc(passes: str) -> Callable[[ModelProto], Run]:
    def prepare(model: ModelProto) -> Run:
        import irc.backend

        return irc.backend.prepare(model, passes=passes).run

    return prepare


def _inputs(model: ModelProto) -> list[str]:
    """The names of the inputs that a caller gives: weights are inputs too, below IR version 4."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in weights]


def _reference(model: ModelProto) -> Run:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    names = _inputs(model)
    return lambda inputs: evaluator.run(None, dict(zip(names, inputs, strict=False)))


def _onnx_runtime(model: ModelProto) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    names, outputs = _inputs(model), [o.name for o in session.get_outputs()]

    def value(name: str, given: Any) -> Any:
        # NumPy knows no bfloat16, float8 or 4-bit integers: those go by OrtValue, which is told the type.
        is_foreign = isinstance(given, np.ndarray) and type(given.dtype).__module__ != "numpy.dtypes"
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(given, types[name]) if is_foreign else given

    def run(inputs: Sequence[Any]) -> Sequence[Any]:
        feeds = {name: value(name, x) for name, x in zip(names, inputs, strict=False)}
        if not any(isinstance(x, ort.OrtValue) for x in feeds.values()):
            return session.run(outputs, feeds)
        given = {k: x if isinstance(x, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(x) for k, x in feeds.items()}
        return [x.numpy() for x in session.run_with_ort_values(outputs, given)]

    return run


CONTENDERS: Mapping[str, Callable[[ModelProto], Run]] = {
    "irc": _irc("default"),
    "irc, unoptimised": _irc("none"),
    "onnx.reference": _reference,
    "ONNX Runtime": _onnx_runtime,
}
