"""Models for the front end's tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc.errors
from irc.frontend.onnx import import_model
from irc.ir import Module, Node

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def parse(text: str) -> onnx.ModelProto:
    """A model from ONNX's textual syntax."""
    return onnx.parser.parse_model(text)


def model(body: str, inputs: str = "float[2,3] x", outputs: str = "float[2,3] y", opset: int = 18) -> onnx.ModelProto:
    """A model whose main graph has these nodes."""
    return parse(f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]> g ({inputs}) => ({outputs}) {{ {body} }}')


def imported(body: str, **kwargs: Any) -> Module:
    return import_model(model(body, **kwargs))


def from_nodes(
    nodes: list[onnx.NodeProto],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    initializers: list[TensorProto] | None = None,
    opset: int = 18,
    ir_version: int = 8,
    **kwargs: Any,
) -> onnx.ModelProto:
    """A model made of protos, right or not; inputs and outputs are float[2]."""
    infos = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names]
        for names in (["x"] if inputs is None else inputs, ["y"] if outputs is None else outputs)
    ]
    graph = helper.make_graph(nodes, "g", *infos, initializers or [], **kwargs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def weight(name: str, shape: tuple[int, ...] = (4, 5), dtype: Any = np.float32) -> TensorProto:
    """An initializer with distinct elements."""
    return numpy_helper.from_array(np.arange(np.prod(shape)).astype(dtype).reshape(shape), name)


def refused(code: str, source: Any, *words: str) -> irc.errors.Error:
    """Assert that importing fails with ``code`` and a message (or place) that has ``words``; unknown operators do."""
    with pytest.raises(irc.errors.Error) as caught:
        import_model(source, refuse_unknown=code == "IRC123")
    error = caught.value
    assert error.code == code, error
    for word in words:
        assert word in str(error), error
    assert error.__cause__ is None
    return error


def changed(source: onnx.ModelProto, change: Callable[[onnx.ModelProto], Any]) -> onnx.ModelProto:
    """A copy of ``source`` after ``change``."""
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    change(copy)
    return copy


def infos(*names: str) -> list[onnx.ValueInfoProto]:
    """Declarations of values of type float[2]."""
    return [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in names]


def one(module: Module, kind: str) -> Node:
    """The only node of ``kind`` in the main graph, nested ones included."""
    (node,) = [n for n in module.main.walk() if n.kind == kind]
    return node


CONTROL = parse(
    """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    g (float[2,3] x, bool c, int64 m, seq(float[N]) s) => (float[2,3] y, seq(float[N]) q)
    <float[3] w = {1, 2, 3}, float top = {2}, int64[2] shape = {3, 2}> {
        r = Reshape(x, shape) t = Transpose <perm = [1, 0]> (r)
        a = If(c) <then_branch = th () => (float[2,3] u) { u = Add(t, w) },
                   else_branch = el () => (float[2,3] v) { v = local.F <alpha = 0.5> (t) }>
        b, scans = Loop(m, c, a) <body = lo (int64 i, bool go, float[2,3] k) => (bool go, float[2,3] n, float[2,3] n)
            { d = Add(k, w) n = Clip(d, , top) }>
        q = SequenceMap(s) <body = sm (float[N] e) => (float[N] f) { f = Relu(e) }>
        p = Constant <value: tensor = float[20] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}> ()
        y = Sum(b, t)
    }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    F <alpha> (a) => (b) { h = Elu <alpha: float = @alpha> (a) b = local.G(h) }
    <domain: "local", opset_import: ["" : 18]>
    G (a) => (b) { b = Softmax(a) }
    """
)
"""A model with control flow, captures, functions, a sequence and a weight."""
