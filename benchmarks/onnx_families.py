"""The families that grow, as ONNX models: those that ONNX can express.

In-place operators and lists that are appended to have no form in ONNX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx
from onnx import TensorProto, helper

from benchmarks.families import CHAINS, NEST

OPSET = 17
SHAPE = (64, 64)


def chain(n: int) -> onnx.GraphProto:
    graph = _graph("v0")
    for i in range(n):
        _node(graph, ("Relu", "Transpose", "Neg", "Transpose")[i % 4], [f"v{i}"], [f"v{i + 1}"])
    return _returns(graph, f"v{n}")


def one_list(n: int) -> onnx.GraphProto:
    graph = _graph("x")
    for i in range(n - 2):
        _node(graph, "Relu", ["x"], [f"v{i}"])
    _node(graph, "SequenceConstruct", [f"v{i}" for i in range(n - 2)], ["l"])
    node = _node(graph, "ConcatFromSequence", ["l"], ["y"])
    node.attribute.append(helper.make_attribute("axis", 0))
    return _returns(graph, "y", rank_only=True)


def branches(n: int) -> onnx.GraphProto:
    graph = _graph("v0")
    graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    for i in range(n // 10):
        node = _node(graph, "If", ["c"], [f"v{i + 1}"])
        for name, kinds in (("then_branch", "Relu Neg Relu Neg Relu"), ("else_branch", "Neg Relu Neg Relu")):
            body = onnx.GraphProto(name=f"{name}{i}")
            last = f"v{i}"
            for k, kind in enumerate(kinds.split()):
                _node(body, kind, [last], [f"{name}{i}_{k}"])
                last = f"{name}{i}_{k}"
            _returns(body, last)
            node.attribute.append(helper.make_attribute(name, body))
    return _returns(graph, f"v{n // 10}")


def loops(n: int) -> onnx.GraphProto:
    graph = _graph("p0")
    graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    for i in range(n // (2 * NEST)):
        body: onnx.GraphProto | None = None
        for depth in reversed(range(NEST)):
            inner, body = body, onnx.GraphProto(name=f"body{i}_{depth}")
            iteration, go, p = f"t{i}_{depth}", f"c{i}_{depth}", f"p{i}_{depth}"
            body.input.append(helper.make_tensor_value_info(iteration, TensorProto.INT64, []))
            body.input.append(helper.make_tensor_value_info(go, TensorProto.BOOL, []))
            body.input.append(helper.make_tensor_value_info(p, TensorProto.FLOAT, SHAPE))
            _node(body, "Relu", [p], [f"r{i}_{depth}"])
            last = f"r{i}_{depth}"
            if inner is not None:
                last = f"q{i}_{depth}"
                loop = _node(body, "Loop", ["n", "", f"r{i}_{depth}"], [last])
                loop.attribute.append(helper.make_attribute("body", inner))
            body.output.append(helper.make_tensor_value_info(go, TensorProto.BOOL, []))
            _returns(body, last)
        assert body is not None
        loop = _node(graph, "Loop", ["n", "", f"p{i}"], [f"p{i + 1}"])
        loop.attribute.append(helper.make_attribute("body", body))
    return _returns(graph, f"p{n // (2 * NEST)}")


def barriers(n: int) -> onnx.GraphProto:
    graph = _graph("v0")
    for i in range(n):
        if i % 10 == 9:
            _node(graph, "MatMul", [f"v{i}", "v0"], [f"v{i + 1}"])
        else:
            _node(graph, ("Relu", "Neg")[i % 2], [f"v{i}"], [f"v{i + 1}"])
    return _returns(graph, f"v{n}")


def parallel(n: int) -> onnx.GraphProto:
    graph = _graph(*(f"v0_{c}" for c in range(CHAINS)))
    for i in range(n // CHAINS):
        for c in range(CHAINS):
            x, y = f"v{i}_{c}", f"v{i + 1}_{c}"
            if i % 10 == 9:
                _node(graph, "MatMul", [x, x], [y])
            else:
                _node(graph, ("Relu", "Neg")[i % 2], [x], [y])
    return _returns(graph, *(f"v{n // CHAINS}_{c}" for c in range(CHAINS)))


FAMILIES: dict[str, Callable[[int], onnx.GraphProto]] = {
    "chain": chain,
    "one-list": one_list,
    "branches": branches,
    "loops": loops,
    "barriers": barriers,
    "parallel": parallel,
}


def build(family: str, nodes: int) -> onnx.ModelProto:
    """The model of one family, with about ``nodes`` nodes."""
    graph = FAMILIES[family](nodes)
    return onnx.ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", OPSET)])


def _graph(*inputs: str) -> onnx.GraphProto:
    graph = onnx.GraphProto(name="main")
    graph.input.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in inputs)
    return graph


def _node(graph: onnx.GraphProto, kind: str, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    """Append a node; ``helper.make_node`` costs ten times as much."""
    node = graph.node.add()
    node.op_type = kind
    node.input.extend(inputs)
    node.output.extend(outputs)
    return node


def _returns(graph: onnx.GraphProto, *outputs: str, rank_only: bool = False) -> onnx.GraphProto:
    shape = (None, None) if rank_only else SHAPE
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs)
    return graph
