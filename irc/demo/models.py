"""Models bundled with the onnx package, inputs for any model, and random weights from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from irc.errors import Error

# Seeded random weights for a model, such that its activations stay of the order of 1.


Array = np.ndarray[Any, np.dtype[Any]]


class Moments(NamedTuple):
    """Expected mean and variance of the elements of an activation."""

    mean: float
    variance: float

    @property
    def power(self) -> float:
        """Mean square."""
        return self.mean**2 + self.variance


STANDARD = Moments(0.0, 1.0)


def randomize_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """A copy of ``model`` whose float constants are seeded random weights, as initializers.

    Convolution and matrix weights are He-initialised (He et al., "Delving Deep into Rectifiers", 2015) for the mean
    square that their input is expected to have, and batch-norm statistics fit what the layer before is expected to
    give. What is expected comes from one walk through the graph with a mean and a variance for each value: a rough
    model of networks of convolutions, ReLUs and poolings, whose inputs are normally distributed around 0.

    Constants are float32 initializers and ConstantOfShape nodes whose shape is an initializer; those that no operator
    of the top-level graph uses stay as they are. The same seed gives the same weights.
    """
    source = model.graph
    fillers = _fillers(source)
    shapes = {t.name: tuple(t.dims) for t in source.initializer if t.data_type == TensorProto.FLOAT}
    shapes |= {node.output[0]: shape for node, shape in fillers}
    weights = _draw(source, shapes, np.random.default_rng(seed))

    replaced = [node for node, _ in fillers if node.output[0] in weights]
    nodes = [node for node in source.node if node.output[0] not in weights]
    used = {name for node in nodes for name in node.input}
    dropped = weights.keys() | {node.input[0] for node in replaced} - used

    result = deepcopy(model)
    graph = result.graph
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensor for tensor in source.initializer if tensor.name not in dropped)
    graph.input.extend(entry for entry in source.input if entry.name not in dropped)
    for name, weight in weights.items():
        graph.initializer.append(numpy_helper.from_array(weight, name))
        if result.ir_version < 4:  # that format wants every initializer listed as an input too
            graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, weight.shape))
    return result


def _fillers(graph: onnx.GraphProto) -> list[tuple[onnx.NodeProto, tuple[int, ...]]]:
    """The ConstantOfShape nodes that give float32 constants of a known shape, and that shape."""
    known = {t.name: t for t in graph.initializer if t.data_type == TensorProto.INT64}
    return [
        (node, tuple(numpy_helper.to_array(known[node.input[0]]).tolist()))
        for node in graph.node
        if node.op_type == "ConstantOfShape"
        and node.input[0] in known
        and all(attribute.t.data_type == TensorProto.FLOAT for attribute in node.attribute)
    ]


def _draw(graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]], rng: np.random.Generator) -> dict[str, Array]:
    """Weights for the constants in ``shapes``: the first operator that uses a constant decides its kind."""
    weights: dict[str, Array] = {}
    constant_of = {name: name for name in shapes}  # also for views of constants
    given = {entry.name for entry in graph.input} - {tensor.name for tensor in graph.initializer}
    expected = dict.fromkeys(given, STANDARD)
    for node in graph.node:
        if node.op_type in VIEWS and node.input[0] in constant_of:
            constant_of[node.output[0]] = constant_of[node.input[0]]
        incoming = [expected[name] for name in node.input if name in expected]
        if not incoming:
            continue
        for position, value in enumerate(node.input):
            name = constant_of.get(value)
            if name is not None and name not in weights:
                draw = RULES.get((node.op_type, position), _bias)
                weights[name] = draw(rng, shapes[name], incoming[0], node)
        expected[node.output[0]] = OUTPUT.get(node.op_type, _mixture)(incoming)
    return weights


def _normal(rng: np.random.Generator, shape: tuple[int, ...], deviation: float) -> Array:
    values = rng.standard_normal(shape, np.float32)
    values *= np.float32(deviation)
    return values


def _uniform(rng: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    return rng.uniform(low, high, shape).astype(np.float32)


# What to draw for the constant at one input of an operator, given what is expected of its first input.

Draw = Callable[[np.random.Generator, tuple[int, ...], Moments, "onnx.NodeProto"], Array]


def _bias(rng: np.random.Generator, shape: tuple[int, ...], x: Moments, node: onnx.NodeProto) -> Array:
    return _normal(rng, shape, 0.1)


def _scale(rng: np.random.Generator, shape: tuple[int, ...], x: Moments, node: onnx.NodeProto) -> Array:
    return _uniform(rng, shape, 0.8, 1.2)


def _running_mean(rng: np.random.Generator, shape: tuple[int, ...], x: Moments, node: onnx.NodeProto) -> Array:
    return np.float32(x.mean) + _normal(rng, shape, 0.1 * math.sqrt(x.variance))


def _matrix(rng: np.random.Generator, shape: tuple[int, ...], x: Moments, node: onnx.NodeProto) -> Array:
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    summed = shape[-1] if transposed or len(shape) == 1 else shape[-2]
    return _normal(rng, shape, math.sqrt(2 / (summed * x.power)))


RULES: dict[tuple[str, int], Draw] = {
    ("Conv", 1): lambda rng, shape, x, node: _normal(rng, shape, math.sqrt(2 / (math.prod(shape[1:]) * x.power))),
    ("Gemm", 1): _matrix,
    ("MatMul", 1): _matrix,
    ("BatchNormalization", 1): _scale,
    ("BatchNormalization", 3): _running_mean,
    ("BatchNormalization", 4): lambda rng, shape, x, node: _uniform(rng, shape, 0.75 * x.variance, 1.25 * x.variance),
    ("Mul", 1): _scale,
}

VIEWS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})


# What to expect of an operator's output, given what is expected of the activations that enter it.


def _weighted(x: Sequence[Moments]) -> Moments:
    return Moments(0.0, 2.0)  # He initialisation's aim, for `_conv_weight` and `_matrix` scale by the input


def _relu(x: Sequence[Moments]) -> Moments:
    mean, variance = x[0]
    deviation = math.sqrt(variance)
    below = 0.5 * (1 + math.erf(mean / (deviation * math.sqrt(2))))
    density = math.exp(-0.5 * (mean / deviation) ** 2) / math.sqrt(2 * math.pi)
    rectified = mean * below + deviation * density
    power = (mean**2 + variance) * below + mean * deviation * density
    return Moments(rectified, power - rectified**2)


def _sum(x: Sequence[Moments]) -> Moments:
    return Moments(sum(m.mean for m in x), sum(m.variance for m in x))


def _mixture(x: Sequence[Moments]) -> Moments:
    mean = sum(m.mean for m in x) / len(x)
    return Moments(mean, sum(m.power for m in x) / len(x) - mean**2)


def _average_pool(x: Sequence[Moments]) -> Moments:
    return Moments(x[0].mean, x[0].variance / 4)


OUTPUT: dict[str, Callable[[Sequence[Moments]], Moments]] = {
    "Add": _sum,
    "AveragePool": _average_pool,
    "BatchNormalization": lambda x: STANDARD,
    "Conv": _weighted,
    "Gemm": _weighted,
    "GlobalAveragePool": _average_pool,
    "MatMul": _weighted,
    "MaxPool": lambda x: Moments(x[0].mean + math.sqrt(x[0].variance), x[0].variance),
    "Relu": _relu,
    "Sum": _sum,
}


# The models bundled with the onnx package, and values for the inputs of any model.


BUNDLED = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
"""Names of the models that come with the onnx package, as `bundled_model` takes them."""


def bundled_model(name: str) -> onnx.ModelProto:
    """The model ``light_<name>.onnx`` as the onnx package ships it, one of `BUNDLED`.

    Raises:
        Error: IRC101, there is no such model.
    """
    from pathlib import Path

    if name not in BUNDLED:
        raise Error("IRC101", f"no bundled model is called {name!r}; there are {', '.join(BUNDLED)}")
    file = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.ModelProto()
    model.ParseFromString(file.read_bytes())
    return model


def seeded_inputs(model: onnx.ModelProto, seed: int, dynamic: Mapping[str, int] | None = None) -> dict[str, Array]:
    """Random values for the inputs that ``model`` requires, by name: see `irc.tools.random_inputs`.

    Args:
        model: its graph inputs must be tensors of numbers with a known rank.
        seed: the same seed gives the same values.
        dynamic: sizes of named dimensions; those not given here, and unnamed ones, are 1.

    Raises:
        Error: IRC102, an input is not a tensor of numbers or has no shape.
    """
    from irc.frontend.onnx.types import from_proto
    from irc.runtime.arguments import Argument
    from irc.tools.random_inputs import draw

    weights = {tensor.name for tensor in model.graph.initializer}
    free = [entry for entry in model.graph.input if entry.name not in weights]
    arguments = [Argument(entry.name, from_proto(entry.type, f"input {entry.name!r}")) for entry in free]
    return draw.seeded_inputs(arguments, seed, dynamic)
