"""Models that are wrong as a whole: header, operators, names, cycles. Each is refused with one clear message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from irc.frontend.onnx import import_model
from tests.frontend.helpers import changed, from_nodes, infos, model, refused, weight

RELU = helper.make_node("Relu", ["x"], ["y"], name="r")


# -- header ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "change", "word"),
    [
        ("IRC121", lambda m: m.ClearField("graph"), "no graph"),
        ("IRC122", lambda m: m.ClearField("ir_version"), "no IR version"),
        ("IRC122", lambda m: setattr(m, "ir_version", 0), "no IR version"),
        ("IRC122", lambda m: setattr(m, "ir_version", 1000), "1000"),
        ("IRC122", lambda m: m.ClearField("opset_import"), "opset_import is empty"),
        ("IRC122", lambda m: setattr(m.opset_import[0], "version", 1000), "opset 1000 of ai.onnx"),
        ("IRC123", lambda m: setattr(m.opset_import[0], "version", 0), "imports no operator set of domain 'ai.onnx'"),
        ("IRC122", lambda m: setattr(m.opset_import[0], "version", -1), "opset -1"),
        ("IRC122", lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx.ml", 99)), "ai.onnx.ml"),
    ],
)
def test_header(code: str, change: Callable[[onnx.ModelProto], Any], word: str) -> None:
    refused(code, changed(model("y = Relu(x)"), change), word)


def test_models_older_than_opsets() -> None:
    proto = changed(from_nodes([helper.make_node("Softplus", ["x"], ["y"])]), lambda m: m.ClearField("opset_import"))
    proto.ir_version = 1
    assert import_model(proto).main.nodes[0].version == 1


# -- operators ---------------------------------------------------------------


def test_all_unsupported_operators_are_listed_at_once() -> None:
    then = helper.make_graph(
        [helper.make_node("Inner", ["x"], ["r"])], "t", [], [helper.make_empty_tensor_value_info("r")]
    )
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], name="first foo"),
        helper.make_node("Foo", ["x"], ["b"], name="second foo"),
        helper.make_node("Bar", ["x"], ["c"], domain="com.example", name="bar"),
        helper.make_node("Gelu", ["x"], ["d"]),
        helper.make_node("Upsample", ["x", "x"], ["e"]),
        helper.make_node("If", ["x"], ["y"], then_branch=then, else_branch=then),
    ]
    error = refused("IRC123", from_nodes(nodes, opset=18))
    lines = error.message.splitlines()
    assert lines[0] == "5 operators are not supported:"
    assert [line.split("(")[0].strip() for line in lines[1:]] == ["Foo", "Gelu", "Inner", "Upsample", "Bar"]
    assert "(domain ai.onnx, opset 18), 2 nodes, first node 'first foo' (Foo): no such operator" in lines[1]
    assert "before opset 20" in lines[2]
    assert "2 nodes" in lines[3]
    assert "opset 10" in lines[4]
    assert "com.example, not imported), 1 node, first node 'bar'" in lines[5]


@pytest.mark.parametrize(("op", "fine"), [("Relu", False), ("Softplus", True), ("Softmax", True), ("Add", False)])
def test_below_opset_6(op: str, fine: bool) -> None:
    proto = from_nodes([helper.make_node(op, ["x"] * (2 if op == "Add" else 1), ["y"], name="n")], opset=5)
    if fine:
        assert import_model(proto).main.nodes[0].version == 1
    else:
        refused("IRC123", proto, op, "opset 5", "'n'", "opset 6 on")


# -- names -------------------------------------------------------------------


def test_duplicate_names_in_a_nested_graph() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["r"]), helper.make_node("Abs", ["x"], ["r"], name="abs")]
    then = helper.make_graph(nodes, "t", [], infos("r"))
    node = helper.make_node("If", ["x"], ["y"], then_branch=then, else_branch=then)
    refused("IRC124", from_nodes([node]), "'r'", "'abs'")


def test_names_that_are_missing() -> None:
    refused("IRC124", from_nodes([RELU], initializers=[weight("")]), "no name")
    refused("IRC124", from_nodes([RELU], ["x", ""]), "no name")


def test_a_value_of_one_branch_is_not_seen_in_the_other_nor_outside() -> None:
    proto = model(
        "t = Identity(x) y = If(c) <then_branch = t () => (float[2,3] r) { r = Neg(x) },"
        " else_branch = e () => (float[2,3] q) { q = Abs(x) }>",
        inputs="bool c, float[2,3] x",
    )
    proto.graph.node[1].attribute[1].g.node[0].input[0] = "r"
    refused("IRC125", proto, "'r'", "'q'")
    proto.graph.node[1].attribute[1].g.node[0].input[0] = "x"
    proto.graph.node[0].input[0] = "r"
    refused("IRC125", proto, "'r'", "'t'")


@pytest.mark.parametrize("length", [1, 2, 3, 500])
def test_cycles(length: int) -> None:
    names = [f"v{i}" for i in range(length)]
    nodes = [helper.make_node("Add", ["x", names[i - 1]], [names[i]], name=f"n{i}") for i in range(length)]
    nodes.append(helper.make_node("Relu", [names[-1]], ["y"]))
    error = refused("IRC126", from_nodes(nodes), "cycle", "'v0'")
    assert len(error.message) < 300
    if length == 3:
        assert "'v0' -> 'v1' -> 'v2' -> 'v0'" in error.message


def test_a_cycle_through_a_nested_graph() -> None:
    then = helper.make_graph([helper.make_node("Neg", ["b"], ["r"])], "t", [], infos("r"))
    nodes = [
        helper.make_node("If", ["x"], ["a"], then_branch=then, else_branch=then),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Abs", ["x"], ["y"]),
    ]
    refused("IRC126", from_nodes(nodes), "'a' -> 'b' -> 'a'")


@pytest.mark.parametrize("word", ["Relu", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
def test_text_that_is_not_utf8(tmp_path: Path, word: str) -> None:
    proto = from_nodes([helper.make_node("Relu", ["one"], ["two"], name="three", domain="")], ["one"], ["two"])
    proto.graph.node[0].attribute.append(helper.make_attribute("__four", 1))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "five"
    proto.graph.initializer.append(weight("six"))
    proto.functions.add(name="seven", domain="d")
    proto.opset_import.add(domain="eight", version=1)
    proto.metadata_props.add(key="k", value="nine")
    path = tmp_path / "m.onnx"
    data = proto.SerializeToString()
    assert word.encode() in data
    path.write_bytes(data.replace(word.encode(), b"\xff" + word.encode()[1:]))
    refused("IRC121", path, "UTF-8")
