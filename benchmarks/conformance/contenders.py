"""Who runs the suite: irc, onnx.reference, ONNX Runtime. Each imports its package when it first prepares a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    from irc.tools.check.peers import onnxruntime_session, run_session

    session, names = onnxruntime_session(model, threads=1), _inputs(model)
    return lambda inputs: run_session(session, dict(zip(names, inputs, strict=False)))


CONTENDERS: Mapping[str, Callable[[ModelProto], Run]] = {
    "irc": _irc("default"),
    "irc, unoptimised": _irc("none"),
    "onnx.reference": _reference,
    "ONNX Runtime": _onnx_runtime,
}
