"""A process that tries mutants: irc's, which must survive them, or ONNX Runtime's, which need not.

Requests and answers are pickles over a pipe between two processes of this suite.
"""

import resource
import sys
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx

BYTES = 64 << 20
"""What a run may use."""

MEMORY = 1 << 30
"""What the process may use beyond what it has when it starts: the run's limit many times, for work memory of kernels,
and for what compiling takes."""

SECONDS = 2.0
STEPS = 20_000


@dataclass
class Answer:
    """What became of a mutant.

    Attributes:
        outcome: an error's code, "ran", or what went wrong: "exception".
        message: the error's, or the traceback.
        feeds: what it ran on.
        results: what came out.
        seconds: how long all of it took.
    """

    outcome: str
    message: str = ""
    feeds: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def limit_memory() -> None:
    """From now on this process gets `MEMORY` more; NumPy raises MemoryError beyond that."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def serve_irc(pipe: Connection, folder: str) -> None:
    """Answer requests (bytes, seed, passes) until the pipe is closed."""
    import irc

    path = Path(folder) / f"mutant-{id(pipe)}.onnx"
    limit_memory()
    while True:
        try:
            data, number, passes = pipe.recv()
        except EOFError:
            return
        start = time.monotonic()
        answer = Answer("")
        try:
            path.write_bytes(data)
            model = irc.compile(str(path), passes)
            answer.feeds = make_feeds(model, number)
            limits = irc.Limits(steps=STEPS, bytes=BYTES, seconds=SECONDS)
            answer.results = model.run(answer.feeds, limits=limits)
            answer.outcome = "ran"
        except irc.Error as error:
            answer.outcome, answer.message = error.code, str(error)
        except BaseException:
            answer.outcome, answer.message = "exception", traceback.format_exc()[-6000:]
        answer.seconds = time.monotonic() - start
        pipe.send(answer)


def make_feeds(model: Any, number: int) -> dict[str, Any]:
    """Values for the inputs: small, unknown sizes 3 (or as the name says elsewhere), integers mostly in [0, 3)."""
    rng = np.random.default_rng(number)
    sizes: dict[str, int] = {}
    feeds: dict[str, Any] = {}
    for argument in model.inputs:
        if argument.optional:
            continue
        if argument.dtype is None:
            feeds[argument.name] = (
                [np.ones((2, 3), np.float32)] if "[" in str(argument.type) else np.ones(3, np.float32)
            )
            continue
        shape = [d if isinstance(d, int) and d < 1000 else sizes.setdefault(str(d), 3) for d in argument.shape or ()]
        if argument.shape is None:
            shape = [2, 3][: rng.integers(0, 3)]
        feeds[argument.name] = _values(rng, shape, argument.dtype)
    return feeds


def _values(rng: np.random.Generator, shape: list[int], dtype: np.dtype[Any]) -> Any:
    if int(np.prod(shape, dtype=object)) > 100_000:
        shape = [min(d, 3) for d in shape]
    if dtype.hasobject:
        return rng.choice(np.array(["ab", "c", "x-y"], object), shape).astype(object)
    if dtype.kind in "iub":
        return rng.integers(0, 3, shape).astype(dtype)
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def serve_onnxruntime(pipe: Connection, folder: str) -> None:
    """Answer requests (bytes, feeds, names of outputs) until the pipe is closed; without names by onnx.reference."""
    import onnxruntime

    from irc.tools.check.peers import onnxruntime_session

    onnxruntime.set_default_logger_severity(4)
    path = Path(folder) / f"oracle-{id(pipe)}.onnx"
    limit_memory()
    while True:
        try:
            data, feeds, names = pipe.recv()
        except EOFError:
            return
        answer = Answer("")
        try:
            path.write_bytes(data)
            if names is None:
                answer.results = _by_reference(data, feeds)
                answer.outcome = "ran"
                pipe.send(answer)
                continue
            session = onnxruntime_session(path, optimised=False, threads=1)
            taken = {i.name for i in session.get_inputs()}
            found = session.run(names, {k: v for k, v in feeds.items() if k in taken})
            answer.results = dict(zip(names, found, strict=True))
            answer.outcome = "ran"
        except Exception as error:  # each of its many exceptions: it does not run this
            answer.outcome, answer.message = "refused", str(error)[:500]
        try:
            pipe.send(answer)
        except Exception as error:
            pipe.send(Answer("refused", f"results that cannot be sent: {error}"))


def _by_reference(data: bytes, feeds: dict[str, Any]) -> dict[str, Any]:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_model_from_string(data))
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds), strict=True))


if __name__ == "__main__":
    sys.exit("run python -m tests.fuzz.models")
