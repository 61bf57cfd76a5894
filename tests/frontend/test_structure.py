"""Names, versions, inputs and outputs, initializers, control flow, captures."""

import onnx
from onnx import TensorProto, helper

from irc.frontend.onnx import import_model
from irc.ir import DType, ListType, OptionalType, TensorType
from tests.frontend.helpers import DATA, from_nodes, imported, model


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


def test_names_survive() -> None:
    names = ["gpu_0/data_0", "0", "a b", 'quo"te', "x.1", "naïve", "a,b", "1"]
    nodes = [helper.make_node("Relu", [a], [b], name=f"n/{b}") for a, b in zip(["x", *names], names)]
    graph = import_model(from_nodes(nodes, outputs=["1"])).main
    assert [n.output.name for n in graph.nodes] == names
    assert [n.name for n in graph.nodes] == [f"n/{name}" for name in names]
    assert graph.value("gpu_0/data_0").node is graph.nodes[0]


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


def test_nodes_in_another_order_are_sorted() -> None:
    nodes = [
        helper.make_node("Add", ["b", "a"], ["y"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Abs", ["x"], ["unused"]),
    ]
    graph = import_model(from_nodes(nodes)).main
    assert [n.output.name for n in graph.nodes] == ["a", "b", "y", "unused"]


def test_importing_leaves_the_proto_alone() -> None:
    proto = onnx.load(DATA / "light" / "light_zfnet512.onnx")
    before = proto.SerializeToString(deterministic=True)
    import_model(proto)
    assert proto.SerializeToString(deterministic=True) == before
