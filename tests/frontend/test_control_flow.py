"""If, Loop, Scan and SequenceMap: blocks, captures, names, arities."""

import pytest
from onnx import TensorProto, helper

from irc.frontend.onnx import import_model
from irc.ir import NONE, DType, ListType, TensorType
from tests.frontend.helpers import from_nodes, imported, model, one, weight


def test_if_captures_and_repeated_names() -> None:
    module = imported(
        "k = Relu(x) y = If(c) <then_branch = t () => (float[2,3] r) { r = Add(k, x) },"
        " else_branch = e () => (float[2,3] r) { r = Mul(k, x) }>",
        inputs="bool c, float[2,3] x",
    )
    node = one(module, "prim::If")
    assert node.version is None
    assert not node.attributes
    assert [v.name for v in node.inputs] == ["c"]
    first, second = node.blocks
    assert not first.params
    assert [v.name for v in (*first.returns, *second.returns)] == ["r", "r.1"]
    k = module.main.value("k")
    assert first.returns[0].node.inputs[0] is k
    assert second.returns[0].node.inputs[0] is k
    assert node.output.type == TensorType(DType.FLOAT)  # the branches tell the shape, once it is inferred
    module.verify()


def test_nested_names_give_way_to_outer_ones() -> None:
    proto = model(
        "z = If(c) <then_branch = t () => (float[2,3] y) { y = Neg(x) },"
        " else_branch = e () => (float[2,3] x1) { x1 = Abs(x) }> y = Relu(z)",
        inputs="bool c, float[2,3] x",
    )
    otherwise = proto.graph.node[0].attribute[1].g
    otherwise.output[0].name = otherwise.node[0].output[0] = "x.1"
    module = import_model(proto)
    assert module.main.outputs[0].name == "y"
    assert module.main.outputs[0].node.kind == "onnx::Relu"
    then, otherwise = one(module, "prim::If").blocks
    assert then.returns[0].name == "y.1"
    assert otherwise.returns[0].name == "x.1"


def test_a_nested_name_may_hide_an_outer_one() -> None:
    module = imported(
        "y = If(c) <then_branch = t () => (float[2,3] r) { x = Neg(k) r = Relu(x) },"
        " else_branch = e () => (float[2,3] r) { r = Abs(x) }>",
        inputs="bool c, float[2,3] x, float[2,3] k",
    )
    then, otherwise = one(module, "prim::If").blocks
    assert then.returns[0].node.inputs[0].node.kind == "onnx::Neg"
    assert otherwise.returns[0].node.inputs[0].is_param


LOOP = (
    "y, s = Loop({m}, {c}, x) <body = b (int64 i, bool go, float[2,3] v) => (bool go2, float[2,3] w, float[2,3] w)"
    " {{ go2 = Identity(go) w = Add(v, k) }}>"
)


@pytest.mark.parametrize(("m", "c"), [("m", "c"), ("m", ""), ("", "c")])
def test_loop(m: str, c: str) -> None:
    module = imported(
        "k = Relu(x) " + LOOP.format(m=m, c=c),
        inputs="int64 m, bool c, float[2,3] x",
        outputs="float[2,3] y, float[n,2,3] s",
    )
    node = one(module, "onnx::Loop")
    assert (node.version, node.attributes) == (16, {"declared_rows": ["Float(2, 3)"]})
    assert [v.type == NONE for v in node.inputs] == [not m, not c, False]
    (body,) = node.blocks
    assert [p.name for p in body.params] == ["i", "go", "v"]
    assert [p.type for p in body.params] == [
        TensorType(DType.INT64, ()),
        TensorType(DType.BOOL, ()),
        TensorType(DType.FLOAT),
    ]
    assert [r.name for r in body.returns] == ["go2", "w", "w"]
    assert body.nodes[1].inputs == (body.params[2], module.main.value("k"))
    assert [v.name for v in node.outputs] == ["y", "s"]
    assert node.outputs[1].type == TensorType(DType.FLOAT), "what the model declares of it is no proof"
    module.verify()


def test_loop_outputs_that_the_model_does_not_name_exist() -> None:
    text = LOOP.format(m="m", c="c").replace("y, s =", "y =")
    module = imported("k = Relu(x) " + text, inputs="int64 m, bool c, float[2,3] x")
    assert len(one(module, "onnx::Loop").outputs) == 2


@pytest.mark.parametrize("opset", [8, 9, 18])
def test_scan(opset: int) -> None:
    inputs = ["", "s", "x", "x"] if opset == 8 else ["s", "x", "x"]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("a", "b", "c", "o")]
    nodes = [helper.make_node("Sum", ["a", "b", "c"], ["o"]), helper.make_node("Neg", ["a"], ["p"])]
    infos.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, [2]))
    body = helper.make_graph(nodes, "body", infos[:3], infos[3:])
    node = helper.make_node("Scan", inputs, ["f", "y"], num_scan_inputs=2, body=body)
    scan = one(import_model(from_nodes([node], ["s", "x"], opset=opset)), "onnx::Scan")
    assert scan.version == {8: 8, 9: 9, 18: 16}[opset]
    declared = {"declared_rows": ["Float(2)"], "declared_inputs": ["Float(*)"] * 3}
    assert scan.attributes == {"num_scan_inputs": 2, **declared}
    assert [v.type == NONE for v in scan.inputs] == [n == "" for n in inputs]
    assert [p.name for p in scan.blocks[0].params] == ["a", "b", "c"]
    assert [v.name for v in scan.outputs] == ["f", "y"]


def test_subgraphs_with_initializers() -> None:
    then = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["r"])],
        "t",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [2])],
        [weight("w", (20,))],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=then)
    module = import_model(from_nodes([node], ["c", "x"]))
    first, second = (b.nodes[0].output for b in one(module, "prim::If").blocks)
    assert (first.name, second.name) == ("w", "w.1")
    assert list(module.weights) == ["w", "w.1"]
    # IR version 3 lists them as inputs too, which makes them no parameters
    for graph in (node.attribute[0].g, node.attribute[1].g):
        graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [20]))
    module = import_model(from_nodes([node], ["c", "x"], ir_version=3))
    assert not one(module, "prim::If").blocks[0].params


def test_nested_loops_capture_from_every_level() -> None:
    module = imported(
        "y = If(c) <else_branch = e () => (float[2,3] r) { r = Identity(x) }, then_branch = t () => (float[2,3] q) {"
        " a = Neg(x) q = Loop(m, c, a) <body = b (int64 i, bool go, float[2,3] v) => (bool go, float[2,3] w) {"
        " u = Add(v, a) w = Add(u, x) }> }>",
        inputs="int64 m, bool c, float[2,3] x",
    )
    body = one(module, "onnx::Loop").blocks[0]
    assert body.nodes[0].inputs[1] is module.main.value("a")
    assert body.nodes[1].inputs[1] is module.main.inputs[2]
    assert body.returns[0] is body.params[1]
    module.verify()


def test_sequence_map_becomes_the_loop_that_defines_it() -> None:
    module = imported(
        "y = SequenceMap(s, x) <body = b (float[3] e, float[2,3] k) => (float[2,3] r) { r = Add(e, k) }>",
        inputs="seq(float[3]) s, float[2,3] x",
        outputs="seq(float[2,3]) y",
    )
    loop = one(module, "onnx::Loop")
    assert [n.kind for n in loop.blocks[0].nodes] == ["onnx::SequenceAt", "onnx::Add", "onnx::SequenceInsert"]
    assert one(module, "onnx::SequenceEmpty").attributes == {"dtype": 1}
    assert loop.output.name == "y"
    assert isinstance(loop.output.type, ListType)
    module.verify()
