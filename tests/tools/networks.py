"""Networks of any size to break, of residual blocks with normalisation and attention, and light models."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

WIDTH = 8


class _Net:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int, ints: list[int] | None = None) -> str:
        name = f"w{len(self.weights)}"
        drawn = self.rng.normal(0, 0.4, shape).astype(np.float32)
        array = drawn if ints is None else np.array(ints, np.int64)
        self.weights.append(onnx.numpy_helper.from_array(array, name))
        return name

    def op(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"{op.lower()}_{len(self.nodes)}", **attributes))
        return name

    def block(self, x: str, number: int) -> str:
        """22 nodes: a layer, attention over the rows and a normalisation of several operators."""
        h = self.op("Add", self.op("MatMul", x, self.weight(WIDTH, WIDTH)), self.weight(WIDTH))
        h = self.op(("Relu", "Tanh", "Sigmoid")[number % 3], h)
        keys = self.op("Transpose", self.op("Reshape", h, self.weight(ints=[-1, WIDTH])), perm=[1, 0])
        scores = self.op("Softmax", self.op("Mul", self.op("MatMul", h, keys), self.weight(1)), axis=-1)
        h = self.op("Add", self.op("MatMul", scores, h), x)
        centred = self.op("Sub", h, self.op("ReduceMean", h, axes=[-1], keepdims=1))
        square = self.op("ReduceMean", self.op("Mul", centred, centred), axes=[-1], keepdims=1)
        h = self.op("Div", centred, self.op("Sqrt", self.op("Add", square, self.weight(1, ints=None))))
        bias = self.op("Sub", self.op("Exp", self.weight(WIDTH)), self.op("Abs", self.weight(WIDTH)))
        left, right = self.op("Mul", h, bias), self.op("Clip", h, "", "")
        return self.op("Max", self.op("Sub", left, right), self.op("Neg", left))


def network(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """A model of about so many nodes, and two outputs."""
    net = _Net(seed)
    x, halfway = "x", ""
    while len(net.nodes) < nodes - 20:
        x = net.block(x, len(net.nodes))
        halfway = halfway or x
    y = net.op("Add", x, halfway)
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", WIDTH]) for n in ("x", y, x)]
    for tensor in net.weights:  # roots need something positive
        if list(tensor.dims) == [1]:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32([0.35]), tensor.name))
    graph = helper.make_graph(net.nodes, "network", infos[:1], infos[1:], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def light(name: str) -> Path:
    """A model of the onnx package, whose weights are made up."""
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
