"""``python -m benchmarks.runtime kernels``: what an operator costs beyond its arithmetic.

A thousand operators of mixed kinds, each on the result of the one before, on
float32 [4]: nothing is fused, nothing folded, one thread. What is measured is
the interpreter and the kernels' own overhead, each run following another of the
same contender.

Aim: at most 1 µs each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers

OPERATORS = 1000
KINDS = ("Neg", "Add", "Relu", "Mul", "Abs", "Sub", "Tanh", "Max", "Sigmoid", "Min", "LeakyRelu", "Add")
BINARY = frozenset(["Add", "Mul", "Sub", "Max", "Min"])
TURNS = 51


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


def measure(turns: int = TURNS) -> list[Row]:
    """Microseconds an operator of each contender."""
    proto = model()
    given = {name: np.linspace(a, b, 4, dtype=np.float32) for name, a, b in (("x", -1, 1), ("c", 0.5, 1.5))}
    compiled = irc.compile(proto, "none")
    contenders: dict[str, Callable[[Any], Any]] = {"irc": lambda f: compiled.run(f)["y"]}
    for name, run in peers.runners(proto).items():
        contenders[name] = lambda f, run=run: run(f)[0]
    for contender in contenders.values():
        contender(given)
    assert compiled.counters.kernels == OPERATORS and compiled.counters.tiled_groups == 0

    def warmed(name: str) -> dict[str, Any]:
        """What the contender before has driven out of the processor's caches is none of this one's business."""
        contenders[name](given)
        return given

    samples, results = race(contenders, warmed, turns, warm=True)
    for name, result in results.items():
        np.testing.assert_allclose(result, results["irc"], rtol=1e-4, atol=1e-5, err_msg=name)
    return against_peers("kernels", samples, "us/operator", scale=1e6 / OPERATORS)
