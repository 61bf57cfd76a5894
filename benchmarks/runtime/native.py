"""``python -m benchmarks.runtime native``: what compiled loops take beside ONNX Runtime, on one thread; or on several.

Normalisations, softmax, groups of pointwise operators, depthwise convolutions, pooling, loops, a recurrent layer and a
product of few rows, each a model of its own.
Contenders take turns, and what is measured is processor time. The limits are ratios to ONNX Runtime in the same run; a
row misses its limit only if all of the 95 % confidence interval of the median does. ``--threads N`` measures wall time
on as many threads of each, which has no limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers, limited
from irc.tools.check.peers import onnxruntime_session

TURNS = 15
RUNS = 20
"""How many runs are timed together."""

PEER = "onnxruntime"

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A model.

    Attributes:
        nodes: its operators.
        shapes: of its inputs.
        outputs: their names.
        weights: shapes of its constants.
        limit: the ratio to ONNX Runtime that is allowed.
    """

    nodes: list[onnx.NodeProto]
    shapes: dict[str, tuple[int, ...]]
    outputs: list[str]
    weights: dict[str, tuple[int, ...]]
    limit: float

    def proto(self) -> onnx.ModelProto:
        """The model."""
        rng = np.random.default_rng(0)
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.shapes.items()]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in self.outputs]
        constants = {n: rng.uniform(0.5, 1.5, s).astype(np.float32) for n, s in self.weights.items()}
        graph = helper.make_graph(
            self.nodes, "native", inputs, outputs, [numpy_helper.from_array(v, n) for n, v in constants.items()]
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def feeds(self) -> dict[str, Array]:
        """Inputs."""
        rng = np.random.default_rng(1)
        return {n: rng.standard_normal(s, dtype=np.float32) for n, s in self.shapes.items()}


def _chain(kinds: str, start: str, end: str) -> list[onnx.NodeProto]:
    """Operators, each on the result of the one before and maybe another operand: ``"Add b, Relu"``."""
    nodes: list[onnx.NodeProto] = []
    steps = kinds.split(", ")
    for i, step in enumerate(steps):
        kind, *operands = step.split()
        after = end if i == len(steps) - 1 else f"{end}_{i}"
        nodes.append(helper.make_node(kind, [start, *operands], [after]))
        start = after
    return nodes


ROWS, COLUMNS, SQUARE, MILLION = 1024, 768, (1024, 1024), (1000, 1000)


def _chain_of_40(shape: tuple[int, ...], limit: float) -> Case:
    """The chain of `benchmarks.runtime.chain`."""
    return Case(
        _chain(", ".join(["Relu, Mul c, Sigmoid, Add c"] * 10), "x", "y"), {"x": shape, "c": shape}, ["y"], {}, limit
    )


CASES: dict[str, Case] = {
    "chain of 40 on (8,)": _chain_of_40((8,), 0.6),
    "chain of 40 on (4096,)": _chain_of_40((4096,), 0.55),
    "chain of 40 on (1024, 1024)": _chain_of_40(SQUARE, 0.75),
    "Gelu (erf) on 10^6": Case(_chain("Gelu", "x", "y"), {"x": MILLION}, ["y"], {}, 1.0),
    "Gelu (tanh) on 10^6": Case(
        [helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")], {"x": MILLION}, ["y"], {}, 1.0
    ),
    "SiLU on 10^6": Case(
        [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])],
        {"x": MILLION},
        ["y"],
        {},
        1.0,
    ),
    "LayerNorm 1024x768": Case(
        _chain("LayerNormalization scale bias", "x", "y"),
        {"x": (ROWS, COLUMNS)},
        ["y"],
        {"scale": (COLUMNS,), "bias": (COLUMNS,)},
        0.5,
    ),
    "bias + residual + LayerNorm": Case(
        _chain("Add b, Add residual, LayerNormalization scale bias", "x", "y"),
        {"x": (ROWS, COLUMNS), "residual": (ROWS, COLUMNS)},
        ["y"],
        {"b": (COLUMNS,), "scale": (COLUMNS,), "bias": (COLUMNS,)},
        0.4,
    ),
    "Softmax 1024x1024": Case(_chain("Softmax", "x", "y"), {"x": SQUARE}, ["y"], {}, 1.3),
    "(N, C, 1, 1) epilogue on NCHW": Case(
        _chain("Mul scale, Add shift, Add residual, Relu", "x", "y"),
        {"x": (8, 64, 56, 56), "residual": (8, 64, 56, 56), "scale": (8, 64, 1, 1), "shift": (8, 64, 1, 1)},
        ["y"],
        {},
        0.35,
    ),
    "5 inputs, 3 outputs 1024x1024": Case(
        [
            *_chain("Mul b, Add c", "a", "t"),
            *_chain("Sub d, Relu", "t", "y0"),
            *_chain("Mul e, Add a", "t", "y1"),
            *_chain("Add d, Mul e", "t", "y2"),
        ],
        dict.fromkeys("abcde", SQUARE),
        ["y0", "y1", "y2"],
        {},
        0.8,
    ),
}


_WINDOW = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
DEPTHWISE_LIMITS, POOLING_LIMITS = {1: 1.2, 2: 1.3}, {1: 0.9, 2: 1.4}
"""By stride."""


def _window_cases() -> dict[str, Case]:
    """3 x 3 windows on images such as MobileNet's and GoogLeNet's."""
    found: dict[str, Case] = {}
    for channels, side in ((32, 112), (128, 56), (512, 14)):
        for stride, limit in DEPTHWISE_LIMITS.items():
            weights = {"w": (channels, 1, 3, 3), "b": (channels,)}
            node = helper.make_node("Conv", ["x", *weights], ["y"], group=channels, strides=[stride] * 2, **_WINDOW)
            name = f"depthwise 3x3 stride {stride}, {channels} x {side} x {side}"
            found[name] = Case([node], {"x": (1, channels, side, side)}, ["y"], weights, limit)
    for kind in ("MaxPool", "AveragePool"):
        for channels, side in ((64, 112), (192, 28)):
            for stride, limit in POOLING_LIMITS.items():
                node = helper.make_node(kind, ["x"], ["y"], strides=[stride] * 2, **_WINDOW)
                name = f"{kind} 3x3 stride {stride}, {channels} x {side} x {side}"
                found[name] = Case([node], {"x": (1, channels, side, side)}, ["y"], {}, limit)
    return found


CASES |= _window_cases()


def _scan(kinds: str, shape: tuple[int, ...], weights: dict[str, tuple[int, ...]], limit: float) -> Case:
    """A Scan over 200 rows, whose body is a chain of operators on the state."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("s", "row", "next", "made")]
    nodes = [*_chain(kinds, "s", "next"), helper.make_node("Identity", ["next"], ["made"])]
    body = helper.make_graph(nodes, "body", info[:2], info[2:])
    node = helper.make_node("Scan", ["state", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    return Case([node], {"state": shape, "x": (200, *shape)}, ["last", "y"], weights, limit)


_LSTM = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=128)
CASES |= {
    "Scan of 4 operators on (64,)": _scan("Mul row, Add row, Tanh, Sub row", (64,), {}, 0.5),
    "Scan with MatMul 64x64": _scan("MatMul w, Add row, Tanh", (1, 64), {"w": (64, 64)}, 0.8),
    "LSTM 128 of 8 samples": Case([_LSTM], {"x": (32, 8, 64)}, ["y"], {"w": (1, 512, 64), "r": (1, 512, 128)}, 2.0),
    "Gemm of 8 rows, 768x768": Case(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        {"x": (8, 768)},
        ["y"],
        {"w": (768, 768), "b": (768,)},
        1.2,
    ),
}


def measure(turns: int = TURNS, names: Sequence[str] = tuple(CASES), threads: int = 1) -> list[Row]:
    """Milliseconds a run of each contender."""
    found: list[Row] = []
    for name, case in CASES.items():
        if name in names:
            found += beside_peer(name, case.proto(), case.feeds(), case.limit, turns, threads=threads)
    return found


def beside_peer(
    name: str,
    proto: onnx.ModelProto,
    given: dict[str, Array],
    limit: float,
    turns: int,
    apart: float = 1e-4,
    threads: int = 1,
) -> list[Row]:
    """Milliseconds a run of a model on ``given`` inputs, by each contender, whose results may be so far ``apart``."""
    options = irc.Options(threads=threads)
    contenders: dict[str, Callable[[Any], Any]] = {"irc": irc.compile(proto, options=options).run}
    if peers.is_installed(PEER):
        session = onnxruntime_session(proto, threads=threads)
        contenders[PEER] = lambda f: session.run(None, f)

    def several(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def repeated(feeds: Any) -> Any:
            for _ in range(RUNS - 1):
                run(feeds)
            return run(feeds)

        return repeated

    samples, results = race(
        {name: several(run) for name, run in contenders.items()},
        lambda _: given,
        turns,
        clock=time.process_time if threads == 1 else time.perf_counter,
    )
    for peer, result in results.items():
        values = result.values() if isinstance(result, dict) else result
        for own, other in zip(results["irc"].values(), values, strict=True):
            np.testing.assert_allclose(other, own, rtol=1e-3, atol=apart, err_msg=peer)
    rows = against_peers(name, samples, "ms", scale=1e3 / RUNS)
    if PEER in samples and threads == 1:
        rows.append(limited(f"{name}/irc to {PEER}", samples["irc"], samples[PEER], limit))
    return rows
