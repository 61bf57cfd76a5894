"""What is quantised stays so in graphs, .irc files and ONNX files, and these compute the same bit for bit."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import irc
from irc.tools.check.peers import onnxruntime_session, run_session

RNG = np.random.default_rng(7)
QUANTISING = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "ConvInteger")


class Net:
    """A model of which quantised operators are appended one by one."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [f"v{len(self.nodes)}"], name, domain=domain, **attributes))
        return self.nodes[-1].output[0]

    def weight(self, array: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def scale(self, channels: int = 0, size: float = 0.02) -> str:
        return self.weight((RNG.uniform(0.5, 1, channels or ()) * size).astype(np.float32))

    def integers(self, *shape: int, dtype: Any = np.int8) -> str:
        limits = np.iinfo(dtype)
        return self.weight(RNG.integers(max(limits.min, -99), min(limits.max, 99), shape, dtype))

    def pair(self, x: str, scale: str | None = None, zero: str | None = None) -> str:
        scale, zero = scale or self.scale(), zero or self.weight(np.uint8(120))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero)

    def dequantised(self, *shape: int, channels: int = 0, axis: int = 0) -> str:
        scale = self.scale(channels, 0.01)
        zero = self.weight(np.zeros(channels or (), np.int8))
        return self.op("DequantizeLinear", self.integers(*shape), scale, zero, axis=axis)

    def bias(self, channels: int) -> str:
        return self.op("DequantizeLinear", self.integers(channels, dtype=np.int32), self.scale(0, 1e-4))

    def model(self, result: str, shape: list[Any], given: list[Any]) -> onnx.ModelProto:
        info = helper.make_tensor_value_info
        x, y = info("x", T.FLOAT, given), info("y", T.FLOAT, shape)
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        graph = helper.make_graph(self.nodes, "quantised", [x], [y], self.weights)
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


IMAGES = ["batch", 3, 8, 8]


def convolutions(groups: int, channels: int, pair_for_weights: bool = False) -> onnx.ModelProto:
    """QDQ around two convolutions, the second of which may be depthwise, a pooling, and a product."""
    net = Net()
    x = net.pair("x")
    if pair_for_weights:
        given = net.weight(RNG.standard_normal((channels, 3, 3, 3)).astype(np.float32))
        weights = net.pair(given, net.scale(), net.weight(np.int8(0)))
    else:
        weights = net.dequantised(channels, 3, 3, 3, channels=channels)
    x = net.pair(net.op("Relu", net.op("Conv", x, weights, net.bias(channels), pads=[1] * 4)))
    second = net.dequantised(channels, channels // groups, 3, 3, channels=channels if groups > 1 else 0)
    x = net.pair(net.op("Conv", x, second, net.bias(channels), pads=[1] * 4, group=groups), net.scale(0, 0.1))
    x = net.pair(net.op("Add", x, x), net.scale(0, 0.2))
    x = net.op("Flatten", net.pair(net.op("GlobalAveragePool", x)))
    product = net.op("Gemm", net.pair(x), net.dequantised(5, channels), net.bias(5), transB=1)
    return net.model(net.pair(product, net.scale(0, 0.3)), ["batch", 5], IMAGES)


def moved_weights() -> onnx.ModelProto:
    """Weights that are moved before and after they are dequantised, and equal pairs for one tensor."""
    net = Net()
    stored = net.op("Transpose", net.integers(4, 6), perm=[1, 0])
    weights = net.op(
        "DequantizeLinear", net.op("Reshape", stored, net.weight([6, 4])), net.scale(), net.weight(np.int8(3))
    )
    scale, zero = net.scale(), net.weight(np.uint8(100))
    a, b = (net.op("MatMul", net.pair("x", scale, zero), weights) for _ in range(2))
    later = net.op("Transpose", net.dequantised(4, 4), perm=[1, 0])
    return net.model(net.op("MatMul", net.pair(net.op("Add", a, b)), later), ["n", 4], ["n", 6])


def of_operators() -> onnx.ModelProto:
    net = Net()
    scales = [net.scale() for _ in range(3)]
    zero, signed = net.weight(np.uint8(120)), net.weight(np.int8(0))
    x = net.op("QuantizeLinear", "x", scales[0], zero)
    x = net.op("QLinearConv", x, scales[0], zero, net.integers(4, 3, 3, 3), scales[1], signed, scales[2], zero)
    return net.model(net.op("DequantizeLinear", x, scales[2], zero), ["batch", 4, 6, 6], IMAGES)


def dynamic() -> onnx.ModelProto:
    net = Net()
    net.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], "dynamic"))
    sums = net.op("ConvInteger", "q", net.integers(4, 3, 3, 3, dtype=np.uint8), "z", net.weight(np.uint8(99)))
    real = net.op("Mul", net.op("Cast", sums, to=T.FLOAT), net.op("Mul", "s", net.scale()))
    return net.model(real, ["batch", 4, 6, 6], IMAGES)


def shifted() -> onnx.ModelProto:
    """A shift by channel behind a quantised convolution, which has no float bias."""
    net = Net()
    made = net.op("Conv", net.pair("x"), net.dequantised(4, 3, 3, 3))
    shift = net.weight(RNG.standard_normal((4, 1, 1)).astype(np.float32))
    return net.model(net.pair(net.op("Add", made, shift), net.scale(0, 0.1)), ["batch", 4, 6, 6], IMAGES)


MODELS = {
    "shifted": shifted,
    "convolutions": lambda: convolutions(1, 8),
    "depthwise": lambda: convolutions(8, 8),
    "depthwise, one channel": lambda: convolutions(1, 1),
    "weights by pairs": lambda: convolutions(4, 4, pair_for_weights=True),
    "moved weights": moved_weights,
    "operators": of_operators,
    "dynamic": dynamic,
}


def counts(model: onnx.ModelProto) -> dict[str, int]:
    found = Counter(node.op_type for node in model.graph.node)
    return {kind: found[kind] for kind in QUANTISING}


def narrow(model: onnx.ModelProto) -> int:
    """How many elements of 8 bits there are in weights of several axes."""
    kept = [t for t in model.graph.initializer if len(t.dims) > 1 and t.data_type in (T.INT8, T.UINT8)]
    return sum(int(np.prod(t.dims)) for t in kept)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("passes", ["", "default"])
def test_exported_models_compute_the_same(name, passes, tmp_path):
    model = MODELS[name]()
    shape = [2, *[d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:]]
    x = RNG.standard_normal(shape).astype(np.float32)
    compiled = irc.compile(model, passes)
    compiled.save(tmp_path / "m.irc")
    for each in (compiled, irc.load(tmp_path / "m.irc")):
        irc.export(each, tmp_path / "m.onnx")
        exported = onnx.load(tmp_path / "m.onnx")
        assert counts(exported) == counts(model)
        assert narrow(exported) == narrow(model)
        for optimised in (True, False):
            (wanted,) = run_session(onnxruntime_session(model, optimised=optimised), {"x": x})
            (found,) = run_session(onnxruntime_session(exported, optimised=optimised), {"x": x})
            np.testing.assert_array_equal(found, wanted)
        plain = run_session(onnxruntime_session(model, optimised=False), {"x": x})[0]
        np.testing.assert_allclose(each.run({"x": x})["y"], plain, rtol=1e-5, atol=0.31)  # a step of the last scale


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_stay_integers(bits, tmp_path):
    net = Net()
    packed = net.weight(RNG.integers(0, 255, (6, 2, 16 * bits // 8), np.uint8))
    y = net.op("MatMulNBits", "x", packed, net.scale(12), domain="com.microsoft", K=32, N=6, block_size=16, bits=bits)
    model = net.model(y, ["n", 6], ["n", 32])
    compiled = irc.compile(model)
    irc.export(compiled, tmp_path / "m.onnx")
    exported = onnx.load(tmp_path / "m.onnx")
    floats = sum(int(np.prod(t.dims)) for t in exported.graph.initializer if t.data_type == T.FLOAT)
    assert floats < 6 * 32
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    (wanted,) = run_session(onnxruntime_session(model), {"x": x})
    for found in (compiled.run({"x": x})["y"], run_session(onnxruntime_session(exported), {"x": x})[0]):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_scales_of_dequantised_operands_stay_where_they_are():
    net = Net()
    large = net.op("Mul", net.op("Transpose", net.pair("x"), perm=[0, 1, 3, 2]), net.weight(np.float32(0.5)))
    small = net.op("Slice", net.pair("x"), *(net.weight([n]) for n in (0, 1, 2)))
    model = net.model(net.op("MatMul", small, large), [1, 3, 1, 8], [1, 3, 8, 8])
    compiled = irc.compile(model, "unfused")
    kinds = [node.kind for node in compiled.graph.walk() if node.kind in ("onnx::Mul", "onnx::MatMul")]
    assert kinds == ["onnx::Mul", "onnx::MatMul"]
    (product,) = [node for node in compiled.graph.walk() if node.kind == "onnx::MatMul"]
    assert product.inputs[1].node is not None and product.inputs[1].node.kind == "onnx::Mul"
