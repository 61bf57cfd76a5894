"""``python -m benchmarks.runtime chain``: a chain of elementwise operators on large arrays.

Forty operators, Relu, Mul, Sigmoid and Add in turn, on float32 [1024, 1024];
the second operand of Mul and Add is an array of that size too. Each operator
fetches and stores arrays of 4 MiB. On NumPy alone, fusion changes nothing of that.
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
from irc.passes import registry

OPERATORS = 40
SHAPE = (1024, 1024)
KINDS = ("Relu", "Mul", "Sigmoid", "Add")
TURNS = 11


def model(operators: int = OPERATORS, shape: tuple[int, ...] = SHAPE) -> onnx.ModelProto:
    """The chain, from ``x`` and ``c`` to ``y``."""
    nodes: list[onnx.NodeProto] = []
    for i in range(operators):
        kind = KINDS[i % len(KINDS)]
        before = f"v{i}" if i else "x"
        after = f"v{i + 1}" if i + 1 < operators else "y"
        nodes.append(helper.make_node(kind, [before, "c"] if kind in ("Mul", "Add") else [before], [after]))
    x, c, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xcy")
    graph = helper.make_graph(nodes, "chain", [x, c], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def feeds(shape: tuple[int, ...] = SHAPE) -> dict[str, np.ndarray[Any, Any]]:
    x, c = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    return {"x": x, "c": c}


def without_fusion() -> str:
    """The default pipeline but for fusion."""
    return ",".join(name for name in registry.PIPELINES["default"].split(",") if not name.startswith("fuse"))


def _torch() -> Callable[[Any], Any] | None:
    if not peers.is_installed("torch"):
        return None
    import torch

    def run(given: dict[str, np.ndarray[Any, Any]]) -> Any:
        x, c = torch.from_numpy(given["x"]), torch.from_numpy(given["c"])
        for i in range(OPERATORS):
            x = (torch.relu, lambda v: v * c, torch.sigmoid, lambda v: v + c)[i % 4](x)
        return x.numpy()

    return run


def _numpy(given: dict[str, np.ndarray[Any, Any]]) -> Any:
    x, c = given["x"], given["c"]
    with np.errstate(all="ignore"):
        for i in range(OPERATORS):
            match KINDS[i % 4]:
                case "Relu":
                    x = np.maximum(x, np.float32(0))
                case "Mul":
                    x = x * c
                case "Sigmoid":
                    x = 1 / (1 + np.exp(-x))
                case _:
                    x = x + c
    return x


def measure(turns: int = TURNS) -> list[Row]:
    """Microseconds an operator of each contender."""
    proto, given = model(), feeds()
    fused, unfused = irc.compile(proto), irc.compile(proto, without_fusion())
    contenders: dict[str, Callable[[Any], Any]] = {
        "irc": lambda f: fused.run(f)["y"],
        "irc, unfused": lambda f: unfused.run(f)["y"],
        "numpy": _numpy,
    }
    for name, run in peers.runners(proto).items():
        contenders[name] = lambda f, run=run: run(f)[0]
    torch = _torch()
    if torch is not None:
        contenders["torch"] = torch
    for contender in contenders.values():
        contender(given)
    samples, results = race(contenders, lambda _: given, turns, warm=True)
    for name, result in results.items():
        np.testing.assert_allclose(result, results["irc"], rtol=1e-4, atol=1e-5, err_msg=name)
    return against_peers("chain", samples, "us/operator", scale=1e6 / OPERATORS)
