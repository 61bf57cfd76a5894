"""Operators and groups that reduce rows, for tests: models of them, kernels, and references in float64."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.native.groups import Group
from irc.runtime.backends import ArrayType

Array = np.ndarray[Any, Any]


def is_statistic(name: str) -> bool:
    """Whether a result is float32, whatever operands are."""
    return name in ("y1", "y2")


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dtype: Any = np.float32,
    opset: int = 23,
    **constants: Array,
) -> onnx.ModelProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [
        [helper.make_tensor_value_info(name, element, None) for name in inputs],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT if is_statistic(name) else element, None)
            for name in outputs
        ],
    ]
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "rows", *infos, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def compiled(proto: onnx.ModelProto, operands: Sequence[Array]) -> Callable[..., Any]:
    """The native kernel of the whole graph, for operands like these. Raises `irc.runtime.backends.Unsupported`."""
    graph = irc.compile(proto, "", backend="numpy").graph
    made = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs))
    return made.kernel([ArrayType(x.dtype, x.shape) for x in operands])


class Case(NamedTuple):
    """An operator.

    Attributes:
        kind: its name.
        attributes: of the node.
        parameters: gives further operands for the shape of the first one.
        reference: of operands in float64.
        ulp: how far results may be off, in units in the last place of the largest magnitude along the reduced axes.
        outputs: the number of results.
        opset: the version.
    """

    kind: str
    attributes: dict[str, Any]
    parameters: Callable[[tuple[int, ...]], list[tuple[int, ...]]]
    reference: Callable[..., Any]
    outputs: int = 1
    opset: int = 23
    constants: Mapping[int, Any] = MappingProxyType({})

    def proto(self, shape: tuple[int, ...], dtype: Any = np.float32) -> onnx.ModelProto:
        names = ["x", *(f"p{i}" for i in range(len(self.parameters(shape))))]
        constants = {f"c{i}": np.asarray(value) for i, value in self.constants.items()}
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.kind, [*names, *constants], outputs, **self.attributes)
        return model([node], names, outputs, dtype, self.opset, **constants)


def none(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return []


def last(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [shape[-1:], shape[-1:]]


def channels(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [shape[1:2], shape[1:2]]


def softmax(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(x: Array, axis: int = -1) -> Array:
    less = x - x.max(axis, keepdims=True)
    return less - np.log(np.exp(less).sum(axis, keepdims=True))


def standardized(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + 1e-5)
    return (x - mean) * inverse, mean, inverse


def layer(x: Array, scale: Array, b: Array) -> tuple[Array, ...]:
    y, mean, inverse = standardized(x, (-1,))
    return y * scale + b, mean, inverse


def rms(x: Array, scale: Array) -> Array:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * scale


def _of_channels(x: Array, v: Array) -> Array:
    return v.reshape(-1, *(1,) * (x.ndim - 2))


def instance(x: Array, scale: Array, b: Array) -> Array:
    return standardized(x, tuple(range(2, x.ndim)))[0] * _of_channels(x, scale) + _of_channels(x, b)


def group(x: Array, scale: Array, b: Array) -> Array:
    rows = x.reshape(x.shape[0], 2, -1)
    return standardized(rows, (2,))[0].reshape(x.shape) * _of_channels(x, scale) + _of_channels(x, b)


def batch(x: Array, scale: Array, b: Array, mean: Array, var: Array) -> Array:
    scale, b, mean, var = (_of_channels(x, v) for v in (scale, b, mean, var))
    return (x - mean) / np.sqrt(var + 1e-5) * scale + b


def lp(p: int) -> Callable[[Array], Array]:
    def run(x: Array) -> Array:
        norm = (np.abs(x) ** p).sum(-1, keepdims=True) ** (1 / p)
        return x / np.where(norm == 0, 1, norm)

    return run


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Sum": np.sum,
    "Mean": np.mean,
    "Max": np.max,
    "Min": np.min,
    "Prod": np.prod,
    "L1": lambda x, *a, **k: np.abs(x).sum(*a, **k),
    "L2": lambda x, *a, **k: np.sqrt(np.square(x).sum(*a, **k)),
    "SumSquare": lambda x, *a, **k: np.square(x).sum(*a, **k),
    "LogSum": lambda x, *a, **k: np.log(x.sum(*a, **k)),
    "LogSumExp": lambda x, *a, **k: np.log(np.exp(x).sum(*a, **k)),
}


def reduction(name: str, axes: Sequence[int], keep: bool = True) -> Case:
    def reference(x: Array) -> Any:
        return REDUCTIONS[name](x, axis=tuple(axes) or None, keepdims=keep)

    constants = {0: np.array(axes, np.int64)} if axes else {}
    return Case(f"Reduce{name}", {"keepdims": int(keep)}, none, reference, constants=constants)


CASES: dict[str, Case] = {
    "softmax": Case("Softmax", {}, none, softmax),
    "softmax of the first axis": Case("Softmax", {"axis": 0}, none, lambda x: softmax(x, 0)),
    "log-softmax": Case("LogSoftmax", {}, none, log_softmax),
    "log-softmax of the first axis": Case("LogSoftmax", {"axis": 0}, none, lambda x: log_softmax(x, 0)),
    "layer": Case("LayerNormalization", {}, last, layer, 3),
    "RMS": Case("RMSNormalization", {}, lambda shape: [shape[-1:]], rms),
    "L1": Case("LpNormalization", {"p": 1}, none, lp(1)),
    "L2": Case("LpNormalization", {"p": 2}, none, lp(2)),
}
"""Operators for arrays of any rank."""

CHANNELS: dict[str, Case] = {
    "instance": Case("InstanceNormalization", {}, channels, instance),
    "group": Case("GroupNormalization", {"num_groups": 2}, channels, group),
    "batch": Case("BatchNormalization", {}, lambda s: channels(s) * 2, batch, opset=15),
    "means": Case("GlobalAveragePool", {}, none, lambda x: x.mean(tuple(range(2, x.ndim)), keepdims=True), opset=22),
    "maxima": Case("GlobalMaxPool", {}, none, lambda x: x.max(tuple(range(2, x.ndim)), keepdims=True), opset=22),
}
"""Operators for images."""
