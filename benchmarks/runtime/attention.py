"""``python -m benchmarks.runtime attention``: heads of width 64 with a mask, as BERT's and as those of larger models.

Twelve heads of 512 positions, twelve of 2,048, and 32 heads that share the keys of eight, of 1,024. Operator by
operator, scores are arrays of 12 to 200 MB; `irc::attention` makes blocks of up to 1 MiB of them.

There is no aim but that blocks pay. Beside the times, the bytes of the arena with and without passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers
from irc.ir.kinds import ATTENTION

TURNS = 7

Array = np.ndarray[Any, Any]


class Size(NamedTuple):
    """How large attention is: heads of queries, those of keys, positions, and the width of a head."""

    heads: int
    shared: int
    positions: int
    width: int = 64

    def __str__(self) -> str:
        return f"{self.heads} heads of {self.positions}" + (f" on {self.shared}" if self.shared < self.heads else "")


SIZES = (Size(12, 12, 512), Size(12, 12, 2048), Size(32, 8, 1024))


def model(size: Size) -> onnx.ModelProto:
    """``softmax(q k^T / sqrt(width) + mask) v``, keys and values repeated for the heads that share them."""
    nodes: list[onnx.NodeProto] = []

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [f"{kind}_{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    group = size.heads // size.shared
    constants = {
        "scale": np.float32(size.width**-0.5),
        "axis": np.array([2]),
        "repeated": np.array([1, size.shared, group, size.positions, size.width]),
        "merged": np.array([1, size.heads, size.positions, size.width]),
    }

    def repeated(x: str) -> str:
        return op("Reshape", op("Expand", op("Unsqueeze", x, "axis"), "repeated"), "merged") if group > 1 else x

    scores = op("MatMul", "q", op("Transpose", repeated("k"), perm=[0, 1, 3, 2]))
    weights = op("Softmax", op("Add", op("Mul", scores, "scale"), "mask"), axis=-1)
    nodes.append(helper.make_node("MatMul", [weights, repeated("v")], ["y"]))
    heads = {"q": size.heads, "k": size.shared, "v": size.shared}
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, [1, n, size.positions, size.width]) for name, n in heads.items()]
    inputs.append(info("mask", TensorProto.FLOAT, [1, 1, size.positions, size.positions]))
    output = info("y", TensorProto.FLOAT, [1, size.heads, size.positions, size.width])
    weights_of = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "attention", inputs, [output], weights_of)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def feeds(size: Size) -> dict[str, Array]:
    """Queries, keys, values, and a mask of what comes later."""
    rng = np.random.default_rng(0)
    heads = {"q": size.heads, "k": size.shared, "v": size.shared}
    given: dict[str, Array] = {
        name: rng.standard_normal((1, n, size.positions, size.width), np.float32) for name, n in heads.items()
    }
    later = np.triu(np.full((size.positions, size.positions), -1e9, np.float32), 1)
    return given | {"mask": later[None, None]}


def measure(turns: int = TURNS, sizes: tuple[Size, ...] = SIZES) -> list[Row]:
    """Milliseconds a run of each contender; the bytes of irc's arenas."""
    return [row for size in sizes for row in _measure(size, turns)]


def _measure(size: Size, turns: int) -> list[Row]:
    proto, given = model(size), feeds(size)
    compiled = {"irc": irc.compile(proto), "irc without passes": irc.compile(proto, "none")}
    contenders: dict[str, Callable[[Any], Any]] = {
        name: lambda x, model=model: model.run(x)["y"] for name, model in compiled.items()
    }
    for name, run in peers.runners(proto, without="onnx.reference").items():  # which takes minutes
        contenders[name] = lambda x, run=run: run(x)[0]
    for contender in [*contenders.values()] * 2:
        contender(given)
    samples, results = race(contenders, lambda _: given, turns, warm=True)
    for name, result in results.items():
        np.testing.assert_allclose(result, results["irc"], rtol=1e-4, atol=1e-4, err_msg=name)
    assert any(node.kind == ATTENTION for node in compiled["irc"].graph.nodes), "it is not one operator"
    rows = against_peers(f"attention, {size}", samples, "ms", scale=1e3)
    arenas = [
        Row(f"attention, {size}/arena of {name}", model.counters.arena_bytes, "bytes")
        for name, model in compiled.items()
    ]
    return [*rows, *arenas]
