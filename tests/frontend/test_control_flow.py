"""If, Loop, Scan and SequenceMap: blocks, captures, names, arities."""

import pytest
from onnx import TensorProto, helper

from irc.frontend.onnx import import_model
from irc.ir import NONE, DType, TensorType
from tests.frontend.helpers import from_nodes, imported, one

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
