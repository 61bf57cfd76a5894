"""``python -m irc.demo``: compile a real model, show what happened to it, run it, check it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx

import irc
from irc.demo import bundled_model, randomize_weights, seeded_inputs

MODEL = "squeezenet"
RTOL, ATOL = 1e-3, 1e-5  # the second relative to the largest output

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


def main() -> int:
    """Exit status 0 if the compiled model tells two inputs apart and computes for both what the oracle does."""
    source = randomize_weights(bundled_model(MODEL), seed=0)
    print(f"{MODEL} of the onnx package, with seeded random weights: {len(source.graph.node)} nodes\n")
    model = irc.compile(source, check=True)
    print(model.report, "\n")

    oracle_name, oracle = _oracle(source)
    feeds = [seeded_inputs(source, seed) for seed in (1, 2)]
    (name,) = (output.name for output in model.outputs)
    results = [model.run(feed)[name] for feed in feeds]
    right = True
    for number, (feed, result) in enumerate(zip(feeds, results, strict=True), 1):
        expected = oracle(feed)[name]
        error = float(np.abs(result - expected).max())
        right &= np.allclose(result, expected, rtol=RTOL, atol=ATOL * float(np.abs(expected).max()))
        best = int(result.argmax())
        print(f"input {number}: class {best}, probability {result.flat[best]:.4f}; off {oracle_name} by {error:.1e}")
    difference = float(np.abs(results[0] - results[1]).max())
    print(f"the two outputs differ by up to {difference:.4f}")

    if not right:
        print(f"FAILED: an output is not what {oracle_name} computes", file=sys.stderr)
    if not difference:
        print("FAILED: both inputs give the same output", file=sys.stderr)
    return 0 if right and difference else 1


def _oracle(source: onnx.ModelProto) -> tuple[str, Run]:
    """Who says what is right: ONNX Runtime if it is installed, else irc without any pass."""
    if not find_spec("onnxruntime"):
        return "irc without passes", irc.compile(source, passes="").run
    import onnxruntime

    session: Any = onnxruntime.InferenceSession(source.SerializeToString())
    names = [output.name for output in source.graph.output]
    return "ONNX Runtime", lambda feeds: dict(zip(names, session.run(names, dict(feeds)), strict=True))


if __name__ == "__main__":
    sys.exit(main())
