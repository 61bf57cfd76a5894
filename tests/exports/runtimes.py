"""Who runs a model and what was made of it: ONNX Runtime, onnx.reference, irc itself."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

Run = Callable[[dict[str, Any]], list[Any]]


class Unable(Exception):
    """A runtime does not take a model, or fails at running it."""


def onnx_runtime(model: onnx.ModelProto) -> Run:
    """ONNX Runtime as it is, with its own optimisations."""
    from irc.tools.check.peers import onnxruntime_session, run_session

    session = onnxruntime_session(model, threads=1)
    return lambda feeds: run_session(session, feeds)


def reference(model: onnx.ModelProto) -> Run:
    """onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda feeds: list(evaluator.run(None, feeds))


def irc_alone(model: onnx.ModelProto) -> Run:
    """irc without any pass."""
    import irc

    compiled = irc.compile(model, passes="none")
    return lambda feeds: list(compiled.run(feeds).values())


RUNTIMES: Mapping[str, Callable[[onnx.ModelProto], Run]] = {
    "ONNX Runtime": onnx_runtime,
    "onnx.reference": reference,
    "irc": irc_alone,
}


def results(runtime: str, model: onnx.ModelProto, sets: list[dict[str, Any]]) -> list[list[Any]]:
    """What ``runtime`` computes for each set of inputs. Raises `Unable`."""
    try:
        with np.errstate(all="ignore"):
            run = RUNTIMES[runtime](model)
            return [run(feeds) for feeds in sets]
    except Exception as error:  # each runtime raises classes of its own, and any built-in one
        raise Unable(f"{type(error).__name__}: {error}") from error
