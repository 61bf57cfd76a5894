"""Nodes that are wrong: attributes, numbers of inputs and outputs, nested graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper

import irc
from irc.frontend.onnx import import_model
from tests.frontend.helpers import changed, from_nodes, infos, model, refused

RELU = helper.make_node("Relu", ["x"], ["y"], name="r")


# -- attributes, inputs and outputs ------------------------------------------


def attributed(op: str, inputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    return from_nodes([helper.make_node(op, ["x"] * inputs, ["y"], name="n", **attributes)])


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (attributed("Relu", alpha=1.0), ["no attribute 'alpha'"]),
        (attributed("Softmax", axis=1.0), ["FLOAT", "INT"]),
        (attributed("Softmax", axis=[1]), ["INTS", "INT"]),
        (attributed("Transpose", perm="x"), ["STRING", "INTS"]),
        (attributed("Cast"), ["needs attribute 'to'"]),
        (attributed("Cast", to=0), ["0 is not an element type"]),
        (attributed("Cast", to=999), ["999"]),
        (attributed("LayerNormalization", 2, axis=2**63 - 1), ["9223372036854775807", "axis"]),
        (attributed("Softmax", axis=-(2**63)), ["axis"]),
        (attributed("Transpose", perm=[0, 64]), ["64"]),
        (attributed("Conv", 2, auto_pad="SAME"), ["SAME_UPPER", "'SAME'"]),
        (attributed("Pad", 2, mode="mirror"), ["constant", "'mirror'"]),
        (attributed("ScatterND", 3, reduction="sub"), ["'sub'"]),
        (attributed("Constant", 0), ["exactly one"]),
        (attributed("Constant", 0, value_int=1, value_float=1.0), ["exactly one"]),
    ],
)
def test_attributes(proto: onnx.ModelProto, words: list[str]) -> None:
    refused("IRC127", proto, "'n'", *words)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda a: a.ClearField("type"), None),  # IR version 1 had no types
        (lambda a: a.ClearField("i"), None),  # some writers leave zeros out
        (lambda a: (a.ClearField("i"), setattr(a, "f", 1.0)), "has no such value"),
        (lambda a: setattr(a, "ref_attr_name", "q"), "is in none"),
        (lambda a: setattr(a, "name", ""), "no attribute ''"),
        (lambda a: setattr(a, "name", "__note"), None),  # exporters' own
        (lambda a: (setattr(a, "name", "__note"), a.ClearField("type")), None),
    ],
)
def test_malformed_attributes(change: Callable[[AttributeProto], Any], word: str | None) -> None:
    proto = changed(attributed("Softmax", axis=1), lambda m: change(m.graph.node[0].attribute[0]))
    if word is None:
        assert import_model(proto).main.nodes[0].kind == "onnx::Softmax"
    else:
        refused("IRC127", proto, word, "'n'")


def test_notes_of_exporters_mean_nothing() -> None:
    """Attributes whose names begin with two underscores, as the ONNX checker has it."""
    note = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "note", [], infos("n"))
    nodes = [
        helper.make_node("Constant", [], ["size"], value_int=4, __note=3),
        helper.make_node("HannWindow", ["size"], ["w"], __note=3),
        helper.make_node("Called", ["w"], ["v"], domain="local", __note="x"),
        helper.make_node("Relu", ["v"], ["y"], __note=note),
    ]
    body = [helper.make_node("Neg", ["a"], ["b"], __note=[1, 2])]
    function = helper.make_function("local", "Called", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    proto = from_nodes(nodes)
    proto.functions.append(function)
    proto.opset_import.add(domain="local", version=1)
    module = import_model(proto)
    module.verify()
    assert not [key for graph in module.graphs.values() for n in graph.walk() for key in n.attributes if key[0] == "_"]
    assert irc.compile(proto).run({"x": np.zeros(2, np.float32)})["y"].shape == (4,)


def test_more_malformed_attributes() -> None:
    def with_attribute(proto: onnx.ModelProto, attribute: AttributeProto) -> onnx.ModelProto:
        return changed(proto, lambda m: m.graph.node[0].attribute.append(attribute))

    refused("IRC127", with_attribute(attributed("Softmax", axis=1), helper.make_attribute("axis", 0)), "given twice")
    text = changed(attributed("Pad", 2, mode="edge"), lambda m: setattr(m.graph.node[0].attribute[0], "s", b"\xff"))
    refused("IRC127", text, "UTF-8")
    empty = AttributeProto(name="value", type=AttributeProto.TENSOR)
    refused("IRC127", with_attribute(attributed("Constant", 0), empty), "no such value")
    graphs = AttributeProto(name="gs", type=AttributeProto.GRAPHS)
    refused("IRC127", with_attribute(from_nodes([RELU]), graphs), "Relu has no attribute 'gs'")


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Add", ["x"], ["y"], name="n"), ["Add takes 2 inputs, but has 1"]),
        (helper.make_node("Relu", ["x", "x"], ["y"], name="n"), ["Relu takes 1 input, but has 2"]),
        (helper.make_node("Concat", [], ["y"], name="n", axis=0), ["1 or more"]),
        (helper.make_node("Add", ["", "x"], ["y"], name="n"), ["input 0 of Add must not be absent"]),
        (helper.make_node("Add", ["x", ""], ["y"], name="n"), ["input 1 of Add must not be absent"]),
        (helper.make_node("Concat", ["x", "", "x"], ["y"], name="n", axis=0), ["input 1 of Concat"]),
        (helper.make_node("Relu", ["x"], ["y", "z"], name="n"), ["Relu gives 1 output"]),
        (helper.make_node("Relu", ["x"], [], name="n"), ["Relu gives 1 output"]),
        (helper.make_node("Clip", ["x", "", "", "x"], ["y"], name="n"), ["1 to 3"]),
    ],
)
def test_numbers_of_inputs_and_outputs(node: onnx.NodeProto, words: list[str]) -> None:
    refused(
        "IRC128",
        from_nodes([node, RELU], outputs=["x"]) if "y" not in node.output else from_nodes([node]),
        *words,
        "'n'",
    )


# -- nested graphs -----------------------------------------------------------


def control(op: str, inputs: list[str], outputs: list[str], **graphs: Any) -> onnx.ModelProto:
    return from_nodes([helper.make_node(op, inputs, outputs, name="n", **graphs)], ["x", "c"], outputs[:1])


def branches(inputs: list[str], outputs: list[str], then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.ModelProto:
    return control("If", inputs, outputs, then_branch=then, else_branch=other)


def body(inputs: list[str], outputs: list[str]) -> onnx.GraphProto:
    made = [helper.make_node("Neg", ["x"], [name]) for name in outputs if name not in inputs]
    return helper.make_graph(made, "b", infos(*inputs), infos(*outputs))


@pytest.mark.parametrize(
    ("code", "proto", "word"),
    [
        ("IRC127", control("If", ["c"], ["y"], then_branch=body([], ["r"])), "needs attribute 'else_branch'"),
        ("IRC134", branches(["c"], ["y"], body([], ["r"]), body([], ["a", "b"])), "branch"),
        ("IRC134", branches(["c"], ["y"], body(["i"], ["r"]), body([], ["r"])), "0 inputs"),
        ("IRC134", branches(["c"], ["y", "z"], body([], ["r"]), body([], ["r"])), "2 outputs"),
        ("IRC128", branches([], ["y"], body([], ["r"]), body([], ["r"])), "If takes 1"),
        ("IRC134", control("Loop", ["", "c", "x"], ["y"], body=body(["i", "g", "v"], ["g"])), "at least 2"),
        ("IRC134", control("Loop", ["", "c", "x"], ["y"], body=body(["i", "g"], ["g", "w"])), "3 inputs"),
        ("IRC134", control("Loop", ["", "c", "x"], ["y", "z"], body=body(["i", "g", "v"], ["g", "w"])), "2 outputs"),
        ("IRC134", control("Loop", ["", "c", ""], ["y"], body=body(["i", "g", "v"], ["g", "w"])), "2 inputs"),
        ("IRC128", control("Loop", ["", "c", "", "x"], ["y"], body=body(["i", "g", "v"], ["g", "w"])), "input 2"),
        ("IRC127", control("Scan", ["x"], ["y"], body=body(["v"], ["w"])), "num_scan_inputs"),
        ("IRC134", control("Scan", ["x"], ["y"], body=body(["v"], ["w"]), num_scan_inputs=2), "num_scan_inputs"),
        ("IRC134", control("Scan", ["x"], ["y"], body=body(["v"], ["w"]), num_scan_inputs=0), "num_scan_inputs"),
        ("IRC134", control("Scan", ["x"], ["y"], body=body(["v"], ["w"]), num_scan_inputs=-(2**63)), "num_scan_inputs"),
        ("IRC134", control("SequenceMap", ["x"], ["y"], body=body([], ["w"])), "1 input"),
    ],
)
def test_nested_graphs(code: str, proto: onnx.ModelProto, word: str) -> None:
    refused(code, proto, word, "'n'")


def test_branches_of_different_kinds() -> None:
    proto = model(
        "y = If(c) <then_branch = t () => (float[2,3] r) { r = Neg(x) },"
        " else_branch = e () => (seq(float[2,3]) q) { q = SequenceConstruct(x) }>",
        inputs="bool c, float[2,3] x",
    )
    refused("IRC134", proto, "once Float and once Float[]")


def nested(depth: int) -> onnx.ModelProto:
    """If in If, made in place: protobuf copies and parses messages to some depth only."""
    proto = from_nodes([], ["c", "x"])
    at = proto.graph
    at.output[0].name = "r0"
    for level in range(depth):
        node = at.node.add(op_type="If", input=["c"], output=[f"r{level}"])
        for key in ("then_branch", "else_branch"):
            at = node.attribute.add(name=key, type=AttributeProto.GRAPH).g
            at.node.add(op_type="Neg", input=["x"], output=[f"{key}{level}"])
            at.output.add(name=f"{key}{level}")
        at.node.pop()
        at.output[0].name = f"r{level + 1}"
    at.node.add(op_type="Neg", input=["x"], output=[f"r{depth}"])
    return proto


def test_nesting_is_bounded() -> None:
    module = import_model(nested(60))
    assert sum(n.kind == "prim::If" for n in module.main.walk()) == 60
    refused("IRC133", nested(70), "64 levels")
    refused("IRC133", nested(500), "64 levels")
