"""``python -m benchmarks.runtime branches``: two branches of convolutions that do not need each other.

Each branch is a chain of 3x3 convolutions with Relu on float32 [1, 64, 56, 56];
their results are added. On two threads the branches are units that run side by
side, and NumPy's matrix products get one thread each; on one thread they run
one after another, and the matrix products get all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers

DEPTH = 6
CHANNELS = 64
SIZE = 56
TURNS = 11


def model(depth: int = DEPTH, channels: int = CHANNELS, size: int = SIZE) -> onnx.ModelProto:
    """Two chains of ``depth`` convolutions from ``x``, and their sum ``y``."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    ends: list[str] = []
    for branch in "ab":
        value = "x"
        for i in range(depth):
            name = f"{branch}{i}"
            weight = rng.standard_normal((channels, channels, 3, 3), np.float32) / (3 * channels**0.5)
            weights.append(numpy_helper.from_array(weight, f"w_{name}"))
            nodes.append(helper.make_node("Conv", [value, f"w_{name}"], [f"c_{name}"], pads=[1, 1, 1, 1]))
            nodes.append(helper.make_node("Relu", [f"c_{name}"], [f"r_{name}"]))
            value = f"r_{name}"
        ends.append(value)
    nodes.append(helper.make_node("Add", ends, ["y"]))
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, channels, size, size]) for n in "xy")
    graph = helper.make_graph(nodes, "branches", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def measure(turns: int = TURNS) -> list[Row]:
    """Milliseconds a run of each contender, irc's own on two threads; the units that overlapped."""
    proto = model()
    feeds = {"x": np.random.default_rng(1).standard_normal((1, CHANNELS, SIZE, SIZE), np.float32)}
    compiled = irc.compile(proto)
    overlaps: list[int] = []

    def on_two(given: Any) -> Any:
        result = compiled.run(given, threads=2)["y"]
        overlaps.append(compiled.counters.overlaps)
        return result

    contenders: dict[str, Callable[[Any], Any]] = {
        "irc": on_two,
        "irc, one thread": lambda given: compiled.run(given, threads=1)["y"],
    }
    for name, run in peers.runners(proto, without="onnx.reference").items():  # which takes minutes
        contenders[name] = lambda given, run=run: run(given)[0]
    for contender in contenders.values():
        contender(feeds)
    samples, results = race(contenders, lambda _: feeds, turns, warm=True)
    for name, result in results.items():
        np.testing.assert_allclose(result, results["irc"], rtol=1e-3, atol=1e-4, err_msg=name)
    assert min(overlaps) >= 1, "the branches ran one after another"
    rows = against_peers("branches", samples, "ms", scale=1e3)
    return [*rows, Row("branches/overlaps", min(overlaps), "units that began while another ran")]
