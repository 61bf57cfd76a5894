"""Declared types of what operators give that irc does not know, where other nodes hand it on."""

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, NodeProto, helper

import irc
from irc.frontend.onnx_export import export_model
from irc.ir import parse_module
from tests.frontend.test_opaque import acme, infos, node

BRANCHES = {
    name: helper.make_graph([acme("MyOp", "x", name, k=k)], name, [], infos(name))
    for k, name in enumerate(("then_branch", "else_branch"))
}

HANDED_ON: dict[str, list[NodeProto]] = {
    "itself": [acme("MyOp", "x", "r")],
    "identity": [acme("MyOp", "x", "a"), node("Identity", "a", "r")],
    "function": [node("F", "x", "r", domain="loc")],
    "function of a function": [node("G", "x", "r", domain="loc")],
    "function, and identity": [node("F", "x", "a", domain="loc"), node("Identity", "a", "r")],
    "if": [node("Cast", "n", "c", to=onnx.TensorProto.BOOL), helper.make_node("If", ["c"], ["r"], **BRANCHES)],
}
"""Nodes that make ``r`` from ``x`` with an operator that irc does not know."""


def model(nodes: list[NodeProto], output: str) -> ModelProto:
    imports = [helper.make_opsetid(domain, version) for domain, version in (("", 17), ("acme", 1), ("loc", 1))]
    inputs = [*infos("x"), *infos("n", shape=())]
    graph = helper.make_graph(nodes, "g", inputs, infos(output), value_info=infos("r") if output != "r" else [])
    bodies = {"F": acme("MyOp", "p", "q"), "G": node("F", "p", "q", domain="loc")}
    functions = [helper.make_function("loc", name, ["p"], ["q"], [body], imports) for name, body in bodies.items()]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)


@pytest.mark.parametrize("passes", ["", "default"])
@pytest.mark.parametrize("way", HANDED_ON)
def test_declared_types_are_written(way: str, passes: str, tmp_path: Path) -> None:
    irc.compile(model(HANDED_ON[way], "r"), passes).save(tmp_path / "m.irc")
    compiled = irc.compile(model(HANDED_ON[way], "r"), passes)
    for source in (compiled, irc.load(tmp_path / "m.irc"), irc.compile(parse_module(str(compiled.module)), passes)):
        irc.export(source, tmp_path / "m.onnx")
        written = onnx.load(tmp_path / "m.onnx")
        onnx.checker.check_model(written)
        assert list(written.graph.output) == infos("r")
    inner = irc.compile(model([*HANDED_ON[way], node("Relu", "r", "y")], "y"), passes)
    for source in (inner, irc.compile(parse_module(str(inner.module)), passes)):
        irc.export(source, tmp_path / "m.onnx")
        written = onnx.load(tmp_path / "m.onnx")
        onnx.checker.check_model(written)
        assert list(written.graph.output) == infos("y")
        if way != "identity" and way != "function, and identity":  # of which `r` is the name of a node that goes
            assert infos("r")[0] in written.graph.value_info


DECLARED = {
    "tensor": helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["k", 5]),
    "without a shape": helper.make_tensor_type_proto(onnx.TensorProto.INT8, None),
    "sequence": helper.make_sequence_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)),
    "map": helper.make_map_type_proto(
        onnx.TensorProto.INT64, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    ),
}


@pytest.mark.parametrize("passes", ["", "default"])
@pytest.mark.parametrize("declared", DECLARED)
def test_declared_types_of_whatever_kind_go_through_text(declared: str, passes: str) -> None:
    """Of a value inside, which is an operand of an unknown operator again, and of an output."""
    info = helper.make_value_info("r", DECLARED[declared])
    out = helper.make_value_info("y", DECLARED[declared])
    graph = helper.make_graph(
        [acme("MyOp", "x", "r"), acme("MyOp", "r", "y")], "g", infos("x"), [out], value_info=[info]
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in (("", 17), ("acme", 1))]
    module = irc.compile(helper.make_model(graph, opset_imports=imports, ir_version=8), passes).module
    for _ in range(2):
        module = irc.compile(parse_module(str(module)), passes).module
        written = export_model(module).graph
        assert [*written.value_info, *written.output] == [info, out]


@pytest.mark.parametrize("way", HANDED_ON)
def test_outputs_that_nobody_declares(way: str) -> None:
    """A file may leave the type of an output out if irc does not know the operator that makes it."""
    proto = model(HANDED_ON[way], "r")
    proto.graph.output[0].ClearField("type")
    for passes in ("", "default"):
        written = export_model(irc.compile(proto, passes).module)
        assert [value.name for value in written.graph.output] == ["r"]
