"""``python -m benchmarks.runtime quantized``: models of small integers beside ONNX Runtime, on one thread.

Residual networks of QDQ convolutions, products of dynamically quantized rows, recurrent layers with weights of 8 bits,
and products with weights of 4 bits. Measured as `benchmarks.runtime.native` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.results import Row
from benchmarks.runtime.native import TURNS, beside_peer

Array = np.ndarray[Any, Any]

CONTRIB = "com.microsoft"


class Graph:
    """A graph that grows node by node, and its constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def constant(self, value: Any) -> str:
        """The name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """The names of the results of a new node."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def model(
        self, shape: tuple[int, ...], *results: str, **others: tuple[int, ...]
    ) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """The model from ``x`` of that shape, and ``others``, to ``results``, and inputs."""
        shapes = {"x": shape, **others}
        graph = helper.make_graph(
            self.nodes,
            "quantized",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None) for result in results],
            self.constants,
        )
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
        feeds = {name: self.rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        return helper.make_model(graph, opset_imports=imports, ir_version=9), feeds

    def small(self, *shape: int) -> str:
        """Weights of 8 bits."""
        return self.constant(self.rng.integers(-127, 128, shape, np.int8))


STEP = np.float32(0.05)
"""Of activations."""


def residual(channels: int, side: int, blocks: int = 4) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Residual blocks of two 3 x 3 convolutions, with QuantizeLinear and DequantizeLinear around each operator."""
    graph = Graph()
    step, zero = graph.constant(STEP), graph.constant(np.uint8(128))
    zeros = {dtype: graph.constant(np.zeros(channels, dtype)) for dtype in (np.int8, np.int32)}

    def rounded(x: str) -> str:
        (codes,) = graph.node("QuantizeLinear", x, step, zero)
        return graph.node("DequantizeLinear", codes, step, zero)[0]

    def convolved(x: str, before: int, is_last: bool = False) -> str:
        scales = graph.rng.uniform(0.001, 0.003, channels).astype(np.float32)
        bias = graph.constant(graph.rng.integers(-500, 500, channels, np.int32))
        operands = graph.small(channels, before, 3, 3), graph.constant(scales), zeros[np.int8]
        (w,) = graph.node("DequantizeLinear", *operands, axis=0)
        (b,) = graph.node("DequantizeLinear", bias, graph.constant(scales * STEP), zeros[np.int32], axis=0)
        (y,) = graph.node("Conv", x, w, b, pads=[1] * 4)
        return rounded(y if is_last else graph.node("Relu", y)[0])

    x = convolved(rounded("x"), 3)
    for _ in range(blocks):
        y = convolved(convolved(x, channels), channels, is_last=True)
        (total,) = graph.node("Add", x, y)
        x = rounded(graph.node("Relu", total)[0])
    (pooled,) = graph.node("GlobalAveragePool", x)
    return graph.model((1, 3, side, side), rounded(pooled))


def products(rows: int, size: int, layers: int = 4) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Dynamically quantized products, as in an encoder of 8 bits."""
    graph = Graph()
    x = "x"
    for _ in range(layers):
        codes, scale, zero = graph.node("DynamicQuantizeLinear", x, outputs=3)
        weights = graph.small(size, size), graph.constant(np.int8(0))
        (sums,) = graph.node("MatMulInteger", codes, weights[0], zero, weights[1])
        (wide,) = graph.node("Cast", sums, to=TensorProto.FLOAT)
        (factor,) = graph.node("Mul", scale, graph.constant(np.float32(1e-3)))
        (x,) = graph.node("Mul", wide, factor)
    return graph.model((rows, size), x)


def recurrent(steps: int, inputs: int, hidden: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A layer of DynamicQuantizeLSTM."""
    graph = Graph()
    weights = graph.small(1, inputs, 4 * hidden), graph.small(1, hidden, 4 * hidden)
    scale, zero = graph.constant(np.full(1, 1e-3, np.float32)), graph.constant(np.zeros(1, np.int8))
    operands = "x", *weights, "", "", "", "", "", scale, zero, scale, zero
    (y,) = graph.node("DynamicQuantizeLSTM", *operands, domain=CONTRIB, hidden_size=hidden)
    return graph.model((steps, 1, inputs), y)


def four_bits(rows: int, inputs: int, outputs: int, block: int = 32) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A product with weights of 4 bits, which have a scale each block."""
    graph = Graph()
    weights = graph.constant(graph.rng.integers(0, 256, (outputs, inputs // block, block // 2), np.uint8))
    scales = graph.constant(graph.rng.uniform(0.001, 0.01, outputs * inputs // block).astype(np.float32))
    sizes = {"K": inputs, "N": outputs, "bits": 4, "block_size": block}
    (y,) = graph.node("MatMulNBits", "x", weights, scales, domain=CONTRIB, **sizes)
    return graph.model((rows, inputs), y)


def decoder(layers: int, size: int, heads: int, past: int, source: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A token of a decoder as T5's: dynamically quantized products around attention of caches and of an encoder."""
    graph, inputs, caches = Graph(), {"bias": (1, heads, 1, past + 1)}, list[str]()

    def one(kind: str, *inputs: str, **attributes: Any) -> str:
        return graph.node(kind, *inputs, **attributes)[0]

    def quantized(x: str) -> list[str]:
        """The codes of a normalised row, their scale and zero point."""
        mean = one("ReduceMean", one("Pow", x, graph.constant(np.float32(2))), axes=[-1])
        root = one("Sqrt", one("Add", mean, graph.constant(np.float32(1e-6))))
        row = one("Mul", graph.constant(np.ones(size, np.float32)), one("Div", x, root))
        return graph.node("DynamicQuantizeLinear", row, outputs=3)

    def product(given: list[str], before: int, after: int) -> str:
        codes, scale, zero = given
        sums = one("MatMulInteger", codes, graph.small(before, after), zero, graph.constant(np.int8(0)))
        factor = one("Mul", scale, graph.constant(np.float32(2e-4)))
        return one("Mul", one("Cast", sums, to=TensorProto.FLOAT), factor)

    def split(x: str) -> str:
        return one("Transpose", one("Reshape", x, graph.constant([1, -1, heads, size // heads])), perm=[0, 2, 1, 3])

    def attended(query: str, key: str, value: str, *bias: str) -> str:
        scores = one("MatMul", query, one("Transpose", key, perm=[0, 1, 3, 2]))
        rows = one("MatMul", one("Softmax", one("Add", scores, *bias) if bias else scores, axis=-1), value)
        together = one("Reshape", one("Transpose", rows, perm=[0, 2, 1, 3]), graph.constant([1, 1, size]))
        return product(graph.node("DynamicQuantizeLinear", together, outputs=3), size, size)

    x = "x"
    for layer in range(layers):
        own, others = ([f"{name}.{layer}" for name in names] for names in (("k", "v"), ("encoded.k", "encoded.v")))
        inputs.update(dict.fromkeys(own, (1, heads, past, size // heads)))
        inputs.update(dict.fromkeys(others, (1, heads, source, size // heads)))
        row = quantized(x)
        extended = [one("Concat", name, split(product(row, size, size)), axis=2) for name in own]
        caches += extended
        x = one("Add", x, attended(split(product(row, size, size)), *extended, "bias"))
        x = one("Add", x, attended(split(product(quantized(x), size, size)), *others))
        hidden = one("Relu", product(quantized(x), size, 4 * size))
        x = one("Add", x, product(graph.node("DynamicQuantizeLinear", hidden, outputs=3), 4 * size, size))
    return graph.model((1, 1, size), x, *caches, **inputs)


class Case(NamedTuple):
    """A model.

    Attributes:
        make: the model, and an input.
        limit: the ratio to ONNX Runtime that is allowed.
        apart: how far results may be from each other: a step of what is quantized.
    """

    make: Callable[[], tuple[onnx.ModelProto, dict[str, Array]]]
    limit: float = 2.0
    apart: float = 1e-3


CASES: dict[str, Case] = {
    "QDQ residual net, 32 x 28 x 28": Case(lambda: residual(32, 28), apart=2 * float(STEP)),
    "QDQ residual net, 64 x 56 x 56": Case(lambda: residual(64, 56), apart=2 * float(STEP)),
    "4 products of 32 x 512, 8 bits": Case(lambda: products(32, 512), apart=1.0),
    "4 products of 1 x 512, 8 bits": Case(lambda: products(1, 512), apart=1.0),
    "DynamicQuantizeLSTM, 40 steps, 256": Case(lambda: recurrent(40, 256, 256), apart=0.05),
    "DynamicQuantizeLSTM, 80 steps, 768": Case(lambda: recurrent(80, 768, 768), apart=0.05),
    "T5 decoder of 8 bits, a token, 6 x 512": Case(lambda: decoder(6, 512, 8, 64, 32), apart=0.1),
    "MatMulNBits 1 x 2048 x 2048": Case(lambda: four_bits(1, 2048, 2048)),
    "MatMulNBits 16 x 1024 x 1024": Case(lambda: four_bits(16, 1024, 1024)),
    "MatMulNBits 128 x 1024 x 1024": Case(lambda: four_bits(128, 1024, 1024)),
}


def measure(turns: int = TURNS, names: Sequence[str] = tuple(CASES)) -> list[Row]:
    """Milliseconds a run of each contender."""
    rows: list[Row] = []
    for name in names:
        case = CASES[name]
        rows += beside_peer(name, *case.make(), case.limit, turns, case.apart)
    return rows
