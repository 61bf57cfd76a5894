"""Checks of models that a pass has broken: each fault shows on inputs that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest

import irc
from irc.errors import Error
from irc.ir import Builder, Graph, Node, Tensor, Value
from irc.passes.base import PassContext
from irc.tools.check import check_model

Edit = Callable[[Builder, Node], Value]


@dataclass(frozen=True)
class Wrong:
    """Makes one of `FAULTS`: each node of the kind there is replaced."""

    name: ClassVar[str] = "wrong"
    fault: str

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        _, kind, edit = FAULTS[self.fault]
        nodes = [node for node in graph.nodes if node.kind == kind]
        assert nodes, f"there is no {kind}"
        for node in nodes:
            made, old = edit(Builder(graph, before=node), node), node.outputs[0]
            name = old.name
            old.replace_all_uses_with(made)
            node.erase()
            graph.rename(made, name)
        ctx.alias_db(graph).refresh()
        return True


def other(kind: str, **changed: Any) -> Edit:
    """Another operator on the same operands, or other attributes."""

    def edit(b: Builder, node: Node) -> Value:
        return b.op(kind, *node.inputs, attributes={**node.attributes, **changed}, version=node.version)

    return edit


def dropped(b: Builder, node: Node) -> Value:
    return b.op("onnx::Identity", node.inputs[0], version=16)


def swapped(b: Builder, node: Node) -> Value:
    return b.op(node.kind, *reversed(node.inputs), attributes=dict(node.attributes), version=node.version)


def operand(at: int, array: Any) -> Edit:
    """Another constant as an operand."""

    def edit(b: Builder, node: Node) -> Value:
        inputs = list(node.inputs)
        inputs[at] = b.constant(Tensor.of(np.asarray(array)))
        return b.op(node.kind, *inputs, attributes=dict(node.attributes), version=node.version)

    return edit


def parsed(inputs: str, body: str, constants: str = "", opset: int = 18) -> onnx.ModelProto:
    opsets = f'["" : {opset}]'
    text = f"<ir_version: 9, opset_import: {opsets}> g ({inputs}) => (float[m0] y) <{constants}> {{ {body} }}"
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


X = "float[batch, time, 8] x"
AXIS = "int64[1] axis = {1}, int64[1] first = {0}, int64[1] last = {2}"

FAULTS: dict[str, tuple[onnx.ModelProto, str, Edit]] = {
    "the largest instead of the mean over the sequence": (
        parsed(X, "y = ReduceMean(x, axis)", AXIS),
        "onnx::ReduceMean",
        other("onnx::ReduceMax"),
    ),
    "the sum instead of the mean over the batch": (
        parsed(X, "y = ReduceMean(x, first)", AXIS),
        "onnx::ReduceMean",
        lambda b, node: b.op("onnx::ReduceSum", *node.inputs, attributes=dict(node.attributes), version=13),
    ),
    "the mean over another axis": (
        parsed(X, "y = ReduceMean<keepdims=1>(x, axis)", AXIS),
        "onnx::ReduceMean",
        operand(1, np.array([0])),
    ),
    "a transposition of a square is dropped": (
        parsed("float[n, n] x", "y = Transpose(x)"),
        "onnx::Transpose",
        dropped,
    ),
    "a transposition of the first axes is dropped": (
        parsed("float[n, m, 4] x", "t = Transpose<perm=[1, 0, 2]>(x) s = Shape(x) y = Reshape(t, s)"),
        "onnx::Transpose",
        dropped,
    ),
    "a bias along the wrong axis": (
        parsed(
            "float[n, n] x, float[n] b",
            "u = Unsqueeze(b, axis) y = Add(x, u)",
            AXIS,
        ),
        "onnx::Unsqueeze",
        operand(1, np.array([0])),
    ),
    "the absolute value is dropped": (parsed(X, "a = Abs(x) y = Sqrt(a)"), "onnx::Abs", dropped),
    "relu is dropped": (parsed(X, "y = Relu(x)"), "onnx::Relu", dropped),
    "relu becomes leaky": (parsed(X, "y = Relu(x)"), "onnx::Relu", lambda b, node: leaky(b, node)),
    "the upper bound of a clip": (
        parsed(X, "y = Clip(x, low, high)", "float low = {0}, float high = {6}"),
        "onnx::Clip",
        operand(2, np.float32(7)),
    ),
    "the lower bound of a clip": (
        parsed(X, "y = Clip(x, low, high)", "float low = {-3}, float high = {3}"),
        "onnx::Clip",
        operand(1, np.float32(-4)),
    ),
    "softmax along another axis": (
        parsed(X, "y = Softmax<axis=1>(x)"),
        "onnx::Softmax",
        other("onnx::Softmax", axis=0),
    ),
    "softmax over one axis more": (parsed(X, "y = Softmax<axis=0>(x)"), "onnx::Softmax", dropped),
    "the difference is turned around": (parsed(f"{X}, {X[:-1]}z", "y = Sub(x, z)"), "onnx::Sub", swapped),
    "concatenated in another order": (parsed(f"{X}, {X[:-1]}z", "y = Concat<axis=1>(x, z)"), "onnx::Concat", swapped),
    "the least becomes the largest": (parsed(f"{X}, {X[:-1]}z", "y = Min(x, z)"), "onnx::Min", other("onnx::Max")),
    "rounding becomes cutting off": (
        parsed(X, "y = Round(x)"),
        "onnx::Round",
        lambda b, node: b.op("onnx::Floor", *node.inputs, version=13),
    ),
    "a comparison includes what is equal": (
        parsed(X, "c = Greater(x, zero) y = Where(c, x, one)", "float zero = {0}, float one = {1}"),
        "onnx::Greater",
        lambda b, node: b.op("onnx::GreaterOrEqual", *node.inputs, version=16),
    ),
    "a mask is dropped": (
        parsed(f"{X}, bool[batch, time, 1] mask", "y = Where(mask, x, zero)", "float zero = {0}"),
        "onnx::Where",
        lambda b, node: b.op("onnx::Identity", node.inputs[1], version=16),
    ),
    "a slice begins one later": (
        parsed(X, "y = Slice(x, first, last, axis)", AXIS),
        "onnx::Slice",
        operand(1, np.array([1])),
    ),
    "the sum runs over other rows": (
        parsed("int64[n] i, float[10, 3] w", "y = Gather(w, i)"),
        "onnx::Gather",
        operand(1, np.array([0, 1])),
    ),
    "indices are not taken by the last axis": (
        parsed("float[n, n] x, int64[n, n] i", "y = GatherElements<axis=0>(x, i)"),
        "onnx::GatherElements",
        other("onnx::GatherElements", axis=1),
    ),
    "a running sum along another axis": (
        parsed(X, "y = CumSum(x, at)", "int64 at = {1}"),
        "onnx::CumSum",
        operand(1, np.int64(0)),
    ),
    "epsilon is too large": (
        parsed(f"{X}, float[8] s", "y = LayerNormalization<epsilon=0.00001>(x, s)"),
        "onnx::LayerNormalization",
        other("onnx::LayerNormalization", epsilon=0.1),
    ),
    "the sign of large numbers": (
        parsed(X, "y = Erf(x)"),
        "onnx::Erf",
        lambda b, node: b.op("onnx::Clip", node.inputs[0], *bounds(b), version=13),
    ),
}


def leaky(b: Builder, node: Node) -> Value:
    return b.op("onnx::LeakyRelu", node.inputs[0], attributes={"alpha": 0.01}, version=16)


def bounds(b: Builder) -> list[Value]:
    return [b.constant(Tensor.of(np.float32(bound))) for bound in (-1, 1)]


@pytest.mark.parametrize("then", ["", "default"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_pass_breaks_is_found(fault: str, then: str) -> None:
    proto, _, _ = FAULTS[fault]
    wrong = irc.compile(proto, [Wrong(fault), *filter(None, [then])])
    with pytest.raises(Error, match="IRC330") as caught:
        check_model(wrong, proto)
    assert "compared with" in str(caught.value)


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_models_themselves_pass(fault: str, passes: str) -> None:
    proto, _, _ = FAULTS[fault]
    result = check_model(irc.compile(proto, passes), proto)
    assert result.oracle == "ONNX Runtime"
    assert max(result.sizes.values()) > 1


def test_runs_are_of_other_sizes() -> None:
    proto = parsed("float[a, b, c] x", "y = Relu(x)")
    result = check_model(irc.compile(proto), proto)
    assert result.runs == ("a=2, b=3, c=5", "a=3, b=2, c=7, large and tiny numbers", "a=1, b=1, c=1")


def test_sizes_that_the_model_refuses_are_not_taken() -> None:
    """The second size must be even, the third one that of the weight; the first may be any."""
    proto = parsed(
        "float[a, b, c] x",
        "h = Reshape(x, shape) s = ReduceSum<keepdims=0>(h, axis) y = MatMul(s, w)",
        "int64[4] shape = {0, -1, 2, 4}, int64[1] axis = {2}, float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}",
    )
    result = check_model(irc.compile(proto), proto)
    assert result.oracle == "ONNX Runtime"
    assert result.sizes["a"] == 2 and result.sizes["b"] * result.sizes["c"] % 8 == 0
