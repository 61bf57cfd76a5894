"""Imported ONNX models with control flow, functions and weights, run as they are and after a round trip to a file."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.frontend.onnx import import_model
from irc.runtime.model import CompiledModel, load
from tests.kernels.helpers import assert_same, run_ort_model
from tests.suites import suite

CASES = {
    case.name: (case.model, case.data_sets)
    for case in suite("node")
    if [node.op_type for node in case.model.graph.node] in (["If"], ["Loop"], ["Scan"])
}


def test_the_suite_has_control_flow():
    assert len(CASES) >= 8


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("stored", [False, True])
def test_control_flow_of_the_node_suite(name, stored, tmp_path):
    model, data_sets = CASES[name]
    compiled = CompiledModel(import_model(model))
    if stored:
        compiled.save(tmp_path / "m.irc")
        compiled = load(tmp_path / "m.irc")
    for inputs, expected in data_sets:
        feeds = {i.name: value for i, value in zip(compiled.inputs, inputs)}
        got = compiled.run(feeds)
        assert_same([got[o.name] for o in compiled.outputs], expected)


def everything() -> onnx.ModelProto:
    """Weights, a Loop with scan outputs whose body captures and branches, a Scan, and two levels of functions."""
    info, node = helper.make_tensor_value_info, helper.make_node
    branch = [
        helper.make_graph(
            [node(op, ["state", "w"], [f"{op}_out"])], op, [], [info(f"{op}_out", TensorProto.FLOAT, None)]
        )
        for op in ("Add", "Sub")
    ]
    body = helper.make_graph(
        [
            node("Mod", ["i", "two"], ["parity"]),
            node("Cast", ["parity"], ["odd"], to=TensorProto.BOOL),
            node("If", ["odd"], ["next"], then_branch=branch[0], else_branch=branch[1]),
            node("Half", ["next"], ["half"], domain="local"),
            node("ReduceSum", ["half"], ["total"], keepdims=0),
            node("Less", ["total", "limit"], ["go_on"]),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, None)],
        [
            info("go_on", TensorProto.BOOL, []),
            info("half", TensorProto.FLOAT, ["n", 3]),
            info("total", TensorProto.FLOAT, []),
        ],
    )
    rows = helper.make_graph(
        [node("Add", ["sum", "row"], ["sum_out"]), node("Mul", ["sum_out", "scale"], ["scaled"])],
        "rows",
        [info("sum", TensorProto.FLOAT, [3]), info("row", TensorProto.FLOAT, [3])],
        [info("sum_out", TensorProto.FLOAT, [3]), info("scaled", TensorProto.FLOAT, [3])],
    )
    nodes = [
        node("MatMul", ["x", "weight"], ["start"]),
        node("ReduceMax", ["start"], ["scale"], keepdims=0),
        node("Loop", ["iterations", "", "start"], ["last", "totals"], body=body),
        node("ReduceMean", ["last", "axis"], ["mean"], keepdims=0),
        node("Scan", ["mean", "last"], ["end", "running"], body=rows, num_scan_inputs=1),
        node("Twice", ["end"], ["y"], domain="local"),
    ]
    weights = [
        numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3), np.float32), "weight"),
        numpy_helper.from_array(np.array([0.5, -1, 2], np.float32), "w"),
        numpy_helper.from_array(np.array(2), "two"),
        numpy_helper.from_array(np.array([0]), "axis"),
        numpy_helper.from_array(np.array(50, np.float32), "limit"),
    ]
    graph = helper.make_graph(
        nodes,
        "everything",
        [info("x", TensorProto.FLOAT, ["n", 4]), info("iterations", TensorProto.INT64, [])],
        [
            info("totals", TensorProto.FLOAT, ["t"]),
            info("running", TensorProto.FLOAT, ["n", 3]),
            info("y", TensorProto.FLOAT, [3]),
        ],
        weights,
    )
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    half = helper.make_function(
        "local",
        "Half",
        ["a"],
        ["b"],
        [node("Constant", [], ["h"], value_float=0.5), node("Mul", ["a", "h"], ["b"])],
        opset[:1],
    )
    twice = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["c"],
        [node("Half", ["a"], ["b"], domain="local"), node("Add", ["a", "b"], ["c"])],
        opset,
    )
    return helper.make_model(graph, opset_imports=opset, functions=[half, twice], ir_version=9)


@pytest.mark.parametrize("iterations", [0, 1, 4, 1000])
@pytest.mark.parametrize("rows", [1, 5])
def test_against_onnxruntime(iterations, rows, tmp_path):
    model = everything()
    x = np.random.default_rng(rows).standard_normal((rows, 4), np.float32)
    expected = run_ort_model(model, [x, np.array(iterations)])
    compiled = CompiledModel(import_model(model))
    compiled.save(tmp_path / "m.irc")
    for each in (compiled, load(tmp_path / "m.irc")):
        assert_same(list(each.run({"x": x, "iterations": iterations}).values()), expected)
