"""Caches of whole models: of attention operators, merged by If, saved, exported."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontend.onnx_export import export_model
from irc.tools.check.peers import onnxruntime_session
from tests.elsewhere import run_onnxruntime

HEADS, SIZE = 2, 4


def info(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape or None)


def attention() -> onnx.ModelProto:
    """Attention with caches: its function body joins them with what is new."""
    inputs = ["q", "k", "v", "", "past_key", "past_value"]
    node = helper.make_node("Attention", inputs, ["y", "present_key", "present_value"], is_causal=1)
    new = [info(name, 1, HEADS, "new", SIZE) for name in "qkv"]
    past = [info(name, 1, HEADS, "past", SIZE) for name in inputs[4:]]
    graph = helper.make_graph([node], "attention", [*new, *past], [info(name) for name in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def merged() -> onnx.ModelProto:
    """As exporters merge a decoder: a branch without caches, and one that captures them."""

    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        nodes.append(helper.make_node("ReduceSum", [f"{name}.present", "axis"], [f"{name}.y"]))
        return helper.make_graph(nodes, name, [], [info(f"{name}.y"), info(f"{name}.present")])

    doubled = helper.make_node("Add", ["x", "x"], ["then.new"])
    with_past = [doubled, helper.make_node("Concat", ["past_0", "then.new"], ["then.present"], axis=2)]
    branches = {
        "then_branch": branch("then", with_past),
        "else_branch": branch("else", [helper.make_node("Add", ["x", "x"], ["else.present"])]),
    }
    node = helper.make_node("If", ["use_cache"], ["y", "present_0"], **branches)
    flag = helper.make_tensor_value_info("use_cache", TensorProto.BOOL, [])
    inputs = [flag, info("x", 1, HEADS, "new", SIZE), info("past_0", 1, HEADS, "past", SIZE)]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [2])
    outputs = [info("y", 1, HEADS, 1, SIZE), info("present_0", 1, HEADS, "all", SIZE)]
    graph = helper.make_graph([node], "merged", inputs, outputs, [axis])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def appends(model: irc.CompiledModel) -> int:
    return sum(node.kind == "irc::append_" for node in model.graph.walk())


def dummy_started() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Concat", ["past", "k"], ["present"], axis=2),
        helper.make_node("Relu", ["present"], ["y"]),
    ]
    inputs, outputs = [info("past", *"abPd"), info("k", *"BHSD")], [info("present", *"BHTD"), info("y", *"BHTD")]
    graph = helper.make_graph(nodes, "dummy_started", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("shape", [(1, 2, 1, 4), (0, 2, 1, 4), (2, 2, 3, 0)])
def test_a_cache_that_does_not_fit_is_refused_as_an_operand_of_concat(passes, shape):
    compiled = irc.compile(dummy_started(), passes)
    with pytest.raises(irc.Error, match=r"^IRC421: .*Concat"):
        compiled.run({"past": np.empty(shape, np.float32), "k": np.ones((2, 2, 1, 4), np.float32)})


@pytest.mark.parametrize("saved", [False, True])
def test_captured_caches_of_a_merged_decoder(saved, tmp_path):
    compiled = irc.compile(merged())
    assert appends(compiled) == 1
    if saved:
        compiled.save(tmp_path / "merged.irc")
        compiled = irc.load(tmp_path / "merged.irc")
    session = irc.Session(compiled)
    runtime = onnxruntime_session(merged())
    past = np.empty((1, HEADS, 0, SIZE), np.float32)
    for step in range(40):
        x = np.full((1, HEADS, 1 if step else 7, SIZE), step, np.float32)
        feeds = {"use_cache": np.array(step > 0), "x": x}
        y, past = runtime.run(None, {**feeds, "past_0": past})
        found = session.run(feeds)
        np.testing.assert_array_equal(found["present_0"], past)
        np.testing.assert_array_equal(found["y"], y)
        length = past.shape[2]
        doubled = step in (1, 8, 22)  # to a place for 14 positions, for 28, for 56
        assert session.counters.copied_bytes == (past.nbytes // length * (length - 1) if doubled else 0), step


def test_onnx_out_says_concat():
    exported = export_model(irc.compile(merged()).module)
    onnx.checker.check_model(exported, full_check=True)
    branches = [a.g for node in exported.graph.node for a in node.attribute if a.HasField("g")]
    assert sorted(node.op_type for graph in branches for node in graph.node).count("Concat") == 1
    feeds = {
        "use_cache": np.array(True),
        "x": np.ones((1, HEADS, 1, SIZE), np.float32),
        "past_0": np.zeros((1, HEADS, 3, SIZE), np.float32),
    }
    for name, array in zip(("y", "present_0"), run_onnxruntime(exported, feeds)):
        np.testing.assert_array_equal(irc.compile(merged()).run(feeds)[name], array)
