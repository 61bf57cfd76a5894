"""``python -m benchmarks.runtime kernels``: what an operator costs beyond its arithmetic.

A thousand operators of mixed kinds, each on the result of the one before, on float32 [4]: nothing is fused, nothing
folded, one thread. What is measured is the interpreter and the kernels' own overhead, each run following another of the
same contender. Then a model of one Relu on float32 [8]: what a whole run costs. All of it is processor time.

Aims, which rows have as limits: at most 1.15 times the same calls of NumPy written by hand; of ONNX Runtime's run of
one Relu, at most 0.7.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers, limited

OPERATORS = 1008
KINDS = ("Neg", "Add", "Relu", "Mul", "Abs", "Sub", "Tanh", "Max", "Sigmoid", "Min", "LeakyRelu", "Add")
BINARY = frozenset(["Add", "Mul", "Sub", "Max", "Min"])
TURNS = 51
OF_BY_HAND, OF_PEER = 1.15, 0.7
"""The limits."""

RUNS = 1000
"""How many runs of one Relu are timed together."""

Array = np.ndarray[Any, Any]


def model(operators: int = OPERATORS) -> onnx.ModelProto:
    """The operators, from ``x`` and ``c`` to ``y``."""
    nodes: list[onnx.NodeProto] = []
    for i in range(operators):
        kind = KINDS[i % len(KINDS)]
        before = f"v{i}" if i else "x"
        after = f"v{i + 1}" if i + 1 < operators else "y"
        nodes.append(helper.make_node(kind, [before, "c"] if kind in BINARY else [before], [after]))
    x, c, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xcy")
    graph = helper.make_graph(nodes, "kernels", [x, c], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def by_hand(operators: int = OPERATORS) -> Callable[[dict[str, Array]], Array]:
    """The same operators as one would write them for NumPy: the calls that irc's kernels make, in place."""
    zero, one, slope = (np.array(v, np.float32) for v in (0, 1, 0.01))

    def run(given: dict[str, Array]) -> Array:
        c = given["c"]
        x = given["x"].copy()
        with np.errstate(all="ignore"):
            for _ in range(operators // len(KINDS)):
                np.negative(x, x)
                np.add(x, c, x)
                np.maximum(x, zero, out=x)
                np.multiply(x, c, x)
                np.absolute(x, x)
                np.subtract(x, c, x)
                np.tanh(x, x)
                np.maximum(x, c, out=x)
                np.negative(x, x)
                np.exp(x, x)
                np.add(x, one, x)
                np.divide(one, x, x)
                np.minimum(x, c, out=x)
                np.maximum(x, np.multiply(x, slope), out=x)
                np.add(x, c, x)
        return x

    return run


def measure(turns: int = TURNS) -> list[Row]:
    """Microseconds an operator of each contender; microseconds a run of one Relu."""
    return [*_operators(turns), *_one_relu(turns)]


def _operators(turns: int) -> list[Row]:
    proto = model()
    given = {name: np.linspace(a, b, 4, dtype=np.float32) for name, a, b in (("x", -1, 1), ("c", 0.5, 1.5))}
    compiled = irc.compile(proto, "none")
    contenders: dict[str, Callable[[Any], Any]] = {"irc": lambda f: compiled.run(f)["y"], "numpy, by hand": by_hand()}
    for name, run in peers.runners(proto).items():
        contenders[name] = lambda f, run=run: run(f)[0]
    for contender in contenders.values():
        contender(given)
    assert compiled.counters.kernels == OPERATORS

    def warmed(name: str) -> dict[str, Any]:
        """What the contender before has driven out of the processor's caches is none of this one's business."""
        contenders[name](given)
        return given

    samples, results = race(contenders, warmed, turns, warm=True, clock=time.process_time)
    for name, result in results.items():
        np.testing.assert_allclose(result, results["irc"], rtol=1e-4, atol=1e-5, err_msg=name)
    held = limited("kernels/irc to numpy, by hand", samples["irc"], samples["numpy, by hand"], OF_BY_HAND)
    return [*against_peers("kernels", samples, "us/operator", scale=1e6 / OPERATORS), held]


def one_relu() -> onnx.ModelProto:
    """Relu from ``x`` to ``y``."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _one_relu(turns: int) -> list[Row]:
    proto, given = one_relu(), {"x": np.linspace(-1, 1, 8, dtype=np.float32)}
    compiled, zero = irc.compile(proto), np.float32(0)
    contenders: dict[str, Callable[[Any], Any]] = {"irc": compiled.run, "numpy": lambda f: np.maximum(f["x"], zero)}
    contenders |= peers.runners(proto, without="onnx.reference")

    def several(run: Callable[[Any], Any]) -> Callable[[Any], None]:
        def repeated(feeds: Any) -> None:
            for _ in range(RUNS):
                run(feeds)

        return repeated

    samples, _ = race(
        {name: several(run) for name, run in contenders.items()},
        lambda _: given,
        turns,
        warm=True,
        clock=time.process_time,
    )
    rows = against_peers("one Relu", samples, "us/run", scale=1e6 / RUNS)
    for name in samples.keys() - {"irc", "numpy"}:
        rows.append(limited(f"one Relu/irc to {name}", samples["irc"], samples[name], OF_PEER))
    return rows
