"""Names, versions, inputs and outputs, initializers, control flow, captures."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.frontend.onnx import import_model
from irc.ir import NONE, DType, ListType, OptionalType, TensorType
from irc.ops import Operator, register
from tests.frontend.helpers import DATA, changed, from_nodes, imported, model, one, parse, refused, weight


def test_a_small_model() -> None:
    module = imported("t = Relu(x) y = Add(t, x)")
    relu, add = module.main.nodes
    assert (relu.kind, relu.version) == ("onnx::Relu", 14)
    assert add.inputs == (relu.output, module.main.inputs[0])
    assert module.main.outputs == (add.output,)
    assert module.main.inputs[0].type == TensorType(DType.FLOAT, (2, 3))
    assert module.metadata["opset_import.ai.onnx"] == "18"
    assert module.metadata["graph.name"] == "g"
    module.verify()


@pytest.mark.parametrize(("opset", "version"), [(6, 6), (7, 7), (12, 7), (13, 13), (14, 14), (18, 14)])
def test_nodes_bind_to_the_highest_version_not_above_the_opset(opset: int, version: int) -> None:
    assert one(imported("y = Add(x, x)", opset=opset), "onnx::Add").version == version


def test_both_names_of_the_standard_domain() -> None:
    proto = model("y = Relu(x)")
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    assert one(import_model(proto), "onnx::Relu").version == 14


def test_other_domains_keep_their_name() -> None:
    proto = parse(
        '<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 2]> g (float[2] x) => (float[2] y) '
        "{ y = ai.onnx.ml.Binarizer <threshold: float = 0.5> (x) }"
    )
    node = one(import_model(proto), "ai.onnx.ml::Binarizer")
    assert node.version == 1
    assert node.attributes == {"threshold": 0.5}


def test_operators_of_third_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    register(Operator("com.example::Split", "(Tensor x, Tensor? by, *, int n=2) -> (Tensor[], Tensor)"))
    node = helper.make_node("Split", ["x"], ["s", "y"], domain="com.example", depth=3, mode="m")
    proto = from_nodes([node])
    proto.opset_import.append(helper.make_opsetid("com.example", 4))
    found = one(import_model(proto), "com.example::Split")
    assert (found.version, found.attributes) == (None, {"depth": 3, "mode": "m"})
    assert found.outputs[0].type == ListType(TensorType())
    refused("IRC128", changed(proto, lambda m: m.graph.node[0].ClearField("input")), "1 to 3 inputs")
    refused("IRC123", changed(proto, lambda m: setattr(m.graph.node[0], "op_type", "Other")), "Other")


@pytest.mark.parametrize("domain", ["prim", "aten", "irc", "onnx"])
def test_models_cannot_name_operators_of_the_ir(domain: str) -> None:
    proto = from_nodes(
        [helper.make_node({"prim": "If", "aten": "relu_"}.get(domain, "append_"), ["x"], ["y"], domain=domain)]
    )
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    refused("IRC123", proto, f"domain {domain}")


def test_names_survive() -> None:
    names = ["gpu_0/data_0", "0", "a b", 'quo"te', "x.1", "naïve", "a,b", "1"]
    nodes = [helper.make_node("Relu", [a], [b], name=f"n/{b}") for a, b in zip(["x", *names], names)]
    graph = import_model(from_nodes(nodes, outputs=["1"])).main
    assert [n.output.name for n in graph.nodes] == names
    assert [n.name for n in graph.nodes] == [f"n/{name}" for name in names]
    assert graph.value("gpu_0/data_0").node is graph.nodes[0]


def test_numbers_as_names_survive_what_irc_adds() -> None:
    # The constant for the absent input needs a name; "0" is taken by a later node.
    nodes = [helper.make_node("Clip", ["x", "", "top"], ["0"]), helper.make_node("Relu", ["0"], ["y"])]
    top = numpy_helper.from_array(np.array(1, np.float32), "top")
    graph = import_model(from_nodes(nodes, initializers=[top])).main
    assert graph.value("0").node.kind == "onnx::Clip"
    assert graph.value("y").node.inputs[0].name == "0"


def test_absent_inputs_and_outputs() -> None:
    module = imported(
        "a = Clip(x, , top) b, , c = BatchNormalization <training_mode: int = 1> (a, s, s, s, s)"
        " d, = Dropout(b) y = Add(d, c)",
        inputs="float[2,3] x, float top, float[3] s",
    )
    clip = one(module, "onnx::Clip")
    assert [v.type for v in clip.inputs][1] == NONE
    assert clip.inputs[1].node.kind == "prim::Constant"
    assert "value" not in clip.inputs[1].node.attributes
    norm = one(module, "onnx::BatchNormalization")
    assert len(norm.outputs) == 3
    assert not norm.outputs[1].has_uses
    assert len(one(module, "onnx::Dropout").outputs) == 1
    assert len(one(module, "onnx::Dropout").inputs) == 1
    module.verify()


def test_trailing_absent_inputs_are_dropped() -> None:
    node = helper.make_node("Clip", ["x", "", ""], ["y"])
    assert len(one(import_model(from_nodes([node])), "onnx::Clip").inputs) == 1


# -- constants ---------------------------------------------------------------


def test_initializers_become_constants_and_large_ones_weights() -> None:
    splat = numpy_helper.from_array(np.full((100,), 0.5, np.float32), "splat")
    nodes = [helper.make_node("Sum", ["x", "w", "small", "splat"], ["y"])]
    module = import_model(from_nodes(nodes, initializers=[weight("w"), weight("small", (2,)), splat]))
    values = {n.output.name: n.attributes["value"] for n in module.main.nodes if n.kind == "prim::Constant"}
    assert list(module.weights) == ["w"] == [t.name for t in module.weights.values()]
    assert values["w"] is module.weights["w"]
    assert values["splat"].is_splat
    assert values["small"].numpy().tolist() == [0, 1]
    assert module.main.value("w").type == TensorType(DType.FLOAT, (4, 5))


@pytest.mark.parametrize("ir_version", [3, 4])
def test_initializers_that_are_inputs_too(ir_version: int) -> None:
    proto = from_nodes([helper.make_node("MatMul", ["x", "w"], ["y"])], ["x", "w"], initializers=[weight("w", (2,))])
    proto.ir_version = ir_version
    module = import_model(proto)
    if ir_version == 3:
        assert [v.name for v in module.main.inputs] == ["x"]
        assert module.main.value("w").node.kind == "prim::Constant"
        assert not module.defaults
    else:
        assert [v.name for v in module.main.inputs] == ["x", "w"]
        assert list(module.defaults) == ["w"]
        np.testing.assert_array_equal(module.defaults["w"].numpy(), [0, 1])
        assert module.copy().defaults == module.defaults


def test_constant_nodes_in_all_their_forms() -> None:
    forms = {
        "value_int": (3, DType.INT64, ()),
        "value_ints": ([1, 2], DType.INT64, (2,)),
        "value_float": (0.5, DType.FLOAT, ()),
        "value_floats": ([0.5, 1.5], DType.FLOAT, (2,)),
        "value_string": ("é", DType.STRING, ()),
        "value_strings": (["a", "b"], DType.STRING, (2,)),
    }
    nodes = [helper.make_node("Constant", [], [key], **{key: value}) for key, (value, _, _) in forms.items()]
    nodes.append(helper.make_node("Constant", [], ["value"], value=weight("", (3, 7))))
    module = import_model(from_nodes(nodes, outputs=["value_int"]))
    for key, (value, dtype, shape) in forms.items():
        tensor = module.main.value(key).node.attributes["value"]
        assert (tensor.dtype, tensor.shape, tensor.numpy().tolist()) == (dtype, shape, value)
        assert module.main.value(key).type == tensor.type
    assert list(module.weights) == ["value"]


def test_outputs_may_be_inputs_and_constants() -> None:
    proto = from_nodes([], ["x"], ["x", "w"], [weight("w", (3, 7))])
    graph = import_model(proto).main
    assert [v.name for v in graph.outputs] == ["x", "w"]
    assert graph.outputs[0] is graph.inputs[0]


# -- types and order


def test_kinds_of_containers_are_known_from_the_start() -> None:
    module = imported(
        "a = SequenceConstruct(x, x) b = Identity(a) o = Optional(b) p = OptionalGetElement(o) t = SequenceAt(p, i)"
        " e = SequenceEmpty <dtype: int = 7> () y = Relu(t) q = SequenceInsert(b, x)",
        inputs="float[2,3] x, int64 i",
    )
    tensor = TensorType(DType.FLOAT)
    expected = {"a": ListType(tensor), "o": OptionalType(ListType(tensor)), "t": tensor, "q": ListType(tensor)}
    expected |= {"b": ListType(tensor), "p": ListType(tensor), "e": ListType(TensorType(DType.INT64))}
    assert {name: module.main.value(name).type for name in expected} == expected


def test_value_info_adds_no_shapes_and_never_changes_what_is_known() -> None:
    proto = model("t = Relu(x) s = SequenceConstruct(t) y = Relu(t)")
    proto.graph.value_info.extend(
        [
            helper.make_tensor_value_info("t", TensorProto.FLOAT, ["N", 3]),
            helper.make_tensor_value_info("s", TensorProto.INT64, [1]),  # it is a sequence of floats
        ]
    )
    graph = import_model(proto).main
    assert graph.value("t").type == TensorType(DType.FLOAT)  # passes would believe a shape, and infer true ones
    assert graph.value("s").type == ListType(TensorType(DType.FLOAT))
    proto.graph.value_info[0].type.tensor_type.elem_type = TensorProto.INT64
    assert import_model(proto).main.value("t").type == TensorType(DType.FLOAT)


def test_named_dimensions_survive_text() -> None:
    from irc.ir import parse_module

    names = ["batch", "a b", "a,b", "3", "*", "height / 2", "é", ")"]
    proto = from_nodes([helper.make_node("Relu", ["x"], ["y"])])
    del proto.graph.input[:]
    proto.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [*names, None, 7, -1]))
    module = import_model(proto)
    expected = TensorType(DType.FLOAT, (*names, None, 7, None))
    assert module.main.inputs[0].type == expected
    assert parse_module(str(module)).main.inputs[0].type == expected


def test_nodes_in_another_order_are_sorted() -> None:
    nodes = [
        helper.make_node("Add", ["b", "a"], ["y"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Abs", ["x"], ["unused"]),
    ]
    graph = import_model(from_nodes(nodes)).main
    assert [n.output.name for n in graph.nodes] == ["a", "b", "y", "unused"]


def test_captures_count_when_nodes_are_sorted() -> None:
    proto = model(
        "y = If(c) <then_branch = t () => (float[2,3] r) { r = Abs(k) },"
        " else_branch = e () => (float[2,3] r) { r = Neg(x) }> k = Relu(x)",
        inputs="bool c, float[2,3] x",
    )
    assert [n.kind for n in import_model(proto).main.nodes] == ["onnx::Relu", "prim::If"]


def test_importing_leaves_the_proto_alone() -> None:
    proto = onnx.load(DATA / "light" / "light_zfnet512.onnx")
    before = proto.SerializeToString(deterministic=True)
    import_model(proto)
    assert proto.SerializeToString(deterministic=True) == before
