"""Checks of models that a pass has broken: each fault shows on inputs that are made up."""

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
from tests.tables import rows

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


def other(kind: str, version: int | None = None, **changed: Any) -> Edit:
    """Another operator on the same operands, or other attributes."""

    def edit(b: Builder, node: Node) -> Value:
        attributes = {**node.attributes, **changed}
        return b.op(f"onnx::{kind}", *node.inputs, attributes=attributes, version=version or node.version)

    return edit


def kept(at: int) -> Edit:
    """The operator is dropped: an operand is handed on."""
    return lambda b, node: b.op("onnx::Identity", node.inputs[at], version=16)


def swapped(b: Builder, node: Node) -> Value:
    return b.op(node.kind, *reversed(node.inputs), attributes=dict(node.attributes), version=node.version)


def leaky(b: Builder, node: Node) -> Value:
    return b.op("onnx::LeakyRelu", node.inputs[0], attributes={"alpha": 0.01}, version=16)


def clipped(b: Builder, node: Node) -> Value:
    bounds = [b.constant(Tensor.of(np.float32(bound))) for bound in (-1, 1)]
    return b.op("onnx::Clip", node.inputs[0], *bounds, version=13)


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


GIVEN = {
    "X": "float[batch, time, 8] x",
    "X, Z": "float[batch, time, 8] x, float[batch, time, 8] z",
    "AXIS": "int64[1] axis = {1}, int64[1] first = {0}, int64[1] last = {2}",
    "-": "",
}
WRONG = """
# what is wrong | inputs | the model | constants | the operator that a pass changes, and to what
the largest instead of the mean over the sequence | X | y = ReduceMean(x, axis) | AXIS
    | ReduceMean | other("ReduceMax")
the sum instead of the mean over the batch | X | y = ReduceMean(x, first) | AXIS | ReduceMean | other("ReduceSum", 13)
the mean over another axis | X | y = ReduceMean<keepdims=1>(x, axis) | AXIS | ReduceMean | operand(1, [0])
a transposition of a square is dropped | float[n, n] x | y = Transpose(x) | - | Transpose | kept(0)
a transposition of the first axes is dropped | float[n, m, 4] x
    | t = Transpose<perm=[1, 0, 2]>(x) s = Shape(x) y = Reshape(t, s) | - | Transpose | kept(0)
a bias along the wrong axis | float[n, n] x, float[n] b | u = Unsqueeze(b, axis) y = Add(x, u) | AXIS
    | Unsqueeze | operand(1, [0])
the absolute value is dropped | X | a = Abs(x) y = Sqrt(a) | - | Abs | kept(0)
relu is dropped | X | y = Relu(x) | - | Relu | kept(0)
relu becomes leaky | X | y = Relu(x) | - | Relu | leaky
the upper bound of a clip | X | y = Clip(x, low, high) | float low = {0}, float high = {6}
    | Clip | operand(2, np.float32(7))
the lower bound of a clip | X | y = Clip(x, low, high) | float low = {-3}, float high = {3}
    | Clip | operand(1, np.float32(-4))
softmax along another axis | X | y = Softmax<axis=1>(x) | - | Softmax | other("Softmax", axis=0)
softmax over one axis more | X | y = Softmax<axis=0>(x) | - | Softmax | kept(0)
the difference is turned around | X, Z | y = Sub(x, z) | - | Sub | swapped
concatenated in another order | X, Z | y = Concat<axis=1>(x, z) | - | Concat | swapped
the least becomes the largest | X, Z | y = Min(x, z) | - | Min | other("Max")
rounding becomes cutting off | X | y = Round(x) | - | Round | other("Floor", 13)
a comparison includes what is equal | X | c = Greater(x, zero) y = Where(c, x, one)
    | float zero = {0}, float one = {1} | Greater | other("GreaterOrEqual", 16)
a mask is dropped | float[batch, time, 8] x, bool[batch, time, 1] mask | y = Where(mask, x, zero) | float zero = {0}
    | Where | kept(1)
a slice begins one later | X | y = Slice(x, first, last, axis) | AXIS | Slice | operand(1, [1])
the sum runs over other rows | int64[n] i, float[10, 3] w | y = Gather(w, i) | - | Gather | operand(1, [0, 1])
indices are not taken by the last axis | float[n, n] x, int64[n, n] i | y = GatherElements<axis=0>(x, i) | -
    | GatherElements | other("GatherElements", axis=1)
a running sum along another axis | X | y = CumSum(x, at) | int64 at = {1} | CumSum | operand(1, np.int64(0))
epsilon is too large | float[batch, time, 8] x, float[8] s | y = LayerNormalization<epsilon=0.00001>(x, s) | -
    | LayerNormalization | other("LayerNormalization", epsilon=0.1)
the sign of large numbers | X | y = Erf(x) | - | Erf | clipped
"""
FAULTS: dict[str, tuple[onnx.ModelProto, str, Edit]] = {
    name: (parsed(GIVEN.get(inputs, inputs), body, GIVEN.get(constants, constants)), f"onnx::{kind}", eval(edit))
    for name, inputs, body, constants, kind, edit in rows(WRONG)
}


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
