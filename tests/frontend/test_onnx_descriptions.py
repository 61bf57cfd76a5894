"""What a model says beside what it computes, and the types of its values, are there again in the exported model."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model
from irc.ir.metadata import DECLARED_TYPE

FLOAT = T.FLOAT
info = helper.make_tensor_value_info


def put(proto: Any, **properties: str) -> Any:
    for key, value in properties.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return proto


def props(proto: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in proto.metadata_props}


def ways(model: onnx.ModelProto, tmp_path: Any) -> list[tuple[str, onnx.ModelProto]]:
    """The model exported: without passes, optimised, and either after it was saved as .irc and loaded."""
    found = []
    for passes in ("", "default"):
        compiled = irc.compile(model, passes)
        compiled.save(tmp_path / "m.irc")
        for name, each in ((f"{passes!r}", compiled), (f"{passes!r}, loaded", irc.load(tmp_path / "m.irc"))):
            irc.export(each, tmp_path / "m.onnx")
            found.append((name, onnx.load(tmp_path / "m.onnx")))
            onnx.checker.check_model(found[-1][1])
    return found


def described() -> onnx.ModelProto:
    """A branch with a body of its own, a function, a sequence, and something said of all of them."""
    branch = [
        put(helper.make_node("Neg", ["h"], ["inner"], name="neg", doc_string="in a branch"), at="neg"),
        put(helper.make_node("Sin", ["inner"], ["sin"], name="sin"), at="sin"),
    ]
    then = helper.make_graph(branch, "then graph", [], [info("sin", FLOAT, ["n", 4], doc_string="sine")])
    put(then, which="then").doc_string = "taken"
    then.value_info.append(put(info("inner", FLOAT, ["n", 4], doc_string="negative"), unit="m"))
    other = helper.make_graph([helper.make_node("Identity", ["h"], ["same"])], "else", [], [info("same", FLOAT, None)])
    nodes = [
        put(helper.make_node("MatMul", ["x", "w"], ["h"], name="product", doc_string="a product"), scope="['', 'mm']"),
        put(helper.make_node("If", ["c"], ["b"], name="choose", then_branch=then, else_branch=other), scope="if"),
        put(helper.make_node("twice", ["b"], ["t"], name="call", domain="local"), scope="call"),
        helper.make_node("SequenceConstruct", ["t", "x"], ["s"], name="pair"),
    ]
    graph = helper.make_graph(
        nodes,
        "described",
        [put(info("x", FLOAT, ["n", 3], doc_string="the input"), unit="px"), info("c", T.BOOL, [])],
        [helper.make_tensor_sequence_value_info("s", FLOAT, ["n", None])],
        [put(numpy_helper.from_array(np.ones((3, 4), np.float32), "w"), origin="training")],
    )
    graph.doc_string = "a graph"
    put(graph, author="somebody")
    graph.initializer[0].doc_string = "weights"
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    element = graph.output[0].type.sequence_type.elem_type
    element.denotation = "TENSOR"
    element.tensor_type.shape.dim[1].denotation = "DATA_FEATURE"
    graph.output[0].doc_string = "both"
    annotation = graph.quantization_annotation.add()
    annotation.tensor_name = "h"
    graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 0, 1], np.int8), "zeros"))
    for key, value in (("SCALE_TENSOR", "w"), ("ZERO_POINT_TENSOR", "zeros"), ("datatype", "BIPOLAR")):
        entry = annotation.quant_parameter_tensor_names.add()
        entry.key, entry.value = key, value
    body = [put(helper.make_node("Add", ["p", "p"], ["q"], name="add"), at="add")]
    function = helper.make_function("local", "twice", ["p"], ["r"], body, [helper.make_opsetid("", 18)])
    function.node.append(helper.make_node("Exp", ["q"], ["r"], name="exp"))
    put(function, kind="helper").doc_string = "doubles"
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)
    model.doc_string, model.domain, model.model_version = "a model", "org.example", 7
    onnx.checker.check_model(put(model, licence="free"))
    return model


def test_what_is_said_of_functions_stays(tmp_path):
    for way, model in ways(described(), tmp_path)[:2]:
        (function,) = model.functions
        assert (function.doc_string, props(function)) == ("doubles", {"kind": "helper"}), way
        assert [(node.name, props(node)) for node in function.node] == [("add", {"at": "add"}), ("exp", {})], way


def test_inlined_nodes_tell_the_call_and_their_own_names(tmp_path):
    for way, model in ways(described(), tmp_path)[2:]:
        found = {node.op_type: node for node in model.graph.node}
        assert props(found["Add"]) == {"at": "add", "scope": "call", "irc.source": "call/add"}, way
        assert props(found["Exp"]) == {"scope": "call", "irc.source": "call/exp"}, way
        assert "irc.source" not in props(found["MatMul"]) and "irc.source" not in props(found["If"]), way


def test_what_is_no_utf8_is_refused():
    node = helper.make_node("Neg", ["x"], ["y"], doc_string="DOC")
    graph = helper.make_graph([node], "g", [info("x", FLOAT, [2])], [info("y", FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    broken = onnx.ModelProto()
    broken.ParseFromString(model.SerializeToString().replace(b"DOC", b"\xff\xfe\xfd"))
    with pytest.raises(irc.Error, match=r"^IRC121: "):
        import_model(broken)


# -- types of values -----------------------------------------------------------


def sizes(infos: Any) -> dict[str, list[int | str]]:
    """The declared shapes by name; unknown sizes are ''."""
    found = {}
    for each in infos:
        shape = each.type.tensor_type.shape.dim
        found[each.name] = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in shape]
    return found


def chain(**declared: Any) -> onnx.ModelProto:
    """x (n, 3) -> a (n, 5) -> b, twice a -> c, whose size depends on contents -> y."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Concat", ["a", "a"], ["b"], axis=0),
        helper.make_node("Compress", ["b", "keep"], ["c"], axis=0),
        helper.make_node("Exp", ["c"], ["e"]),
        helper.make_node("ReduceMax", ["e"], ["y"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", FLOAT, ["n", 3]), info("keep", T.BOOL, ["m"])],
        [info("y", FLOAT, [])],
        [numpy_helper.from_array(np.ones((3, 5), np.float32), "w")],
        value_info=[info(name, *type) for name, type in declared.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_the_model_declares_fills_in_what_is_not_known(tmp_path):
    given = chain(a=(FLOAT, ["n", 5]), b=(FLOAT, ["twice", 5]), c=(FLOAT, ["kept", 5]), e=(FLOAT, ["kept", None]))
    for way, model in ways(given, tmp_path):
        found = sizes(model.graph.value_info)
        assert found == {"a": ["n", 5], "b": ["twice", 5], "c": ["kept", 5], "e": ["kept", 5]}, way


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({"a": (FLOAT, ["n", 6])}, {"a": ["n", 5]}),
        ({"a": (FLOAT, ["n", 5, 1])}, {"a": ["n", 5]}),
        ({"a": (T.DOUBLE, ["n", 5])}, {"a": ["n", 5]}),
        ({"b": (FLOAT, ["n", 5])}, {"b": ["", 5]}),  # it is twice that
        ({"a": (FLOAT, ["m", 5])}, {"a": ["n", 5]}),
        ({"c": (FLOAT, [7, 6])}, {"c": ["", 5]}),
        ({"a": (FLOAT, None), "c": (FLOAT, ["kept", "width"])}, {"a": ["n", 5], "c": ["kept", 5]}),
    ],
)
def test_wrong_declarations_are_not_copied(declared, wanted, tmp_path):
    for way, model in ways(chain(**declared), tmp_path):
        found = sizes(model.graph.value_info)
        assert {name: found[name] for name in wanted} == wanted, way


def test_a_name_for_two_sizes_names_none():
    nodes = [helper.make_node("Concat", ["x"] * k, [f"c{k}"], axis=0) for k in (2, 3)]
    nodes.append(helper.make_node("Concat", ["c2", "c3"], ["y"], axis=0))
    declared = [info("c2", FLOAT, ["wide"]), info("c3", FLOAT, ["wide"])]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, ["n"])], [info("y", FLOAT, [None])], value_info=declared)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert sizes(export_model(import_model(model)).graph.value_info) == {"c2": [""], "c3": [""]}


def test_fixed_sizes_replace_declared_names():
    module = import_model(chain(b=(FLOAT, ["n", 5]), c=(FLOAT, ["n", None])))
    assert module.main.value("c").metadata == {DECLARED_TYPE: "Float(n, *)"}
    compiled = irc.compile(module, "", sizes={"n": 2})
    assert compiled.module.main.value("c").metadata == {DECLARED_TYPE: "Float(2, *)"}
    assert sizes(irc.frontend.onnx_export.export_model(compiled.module).graph.value_info)["b"] == [4, 5]


def test_only_what_the_model_has_is_declared(tmp_path):
    """Neither absent outputs, nor inputs, weights and outputs; each value once."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 4] x) => (float[n, 4] y, float[n, 4] a) {
      one = Constant <value = float {1.0}> ()
      a, mask = Dropout (x)
      s = Add (a, one)
      y, mean = LayerNormalization (s, w)
    }"""
    given = onnx.parser.parse_model(text)
    given.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    for way, model in ways(given, tmp_path):
        names = [each.name for each in model.graph.value_info]
        made = {name for node in model.graph.node for name in node.output}
        assert len(set(names)) == len(names) and set(names) <= made - {"y", "a"}, way
        assert "s" in names, way


def optimised(model: onnx.ModelProto, tmp_path: Any) -> Counter[str]:
    """How often each operator is in what ONNX Runtime makes of a model."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node)


@pytest.mark.parametrize("passes", ["constant-pool", "cse", "default", "default,constant-pool,cse"])
@pytest.mark.parametrize("of_what", ["weights", "operators"])
@pytest.mark.parametrize("alike", [False, True])
def test_quantization_annotations_of_equal_tensors_stay(of_what: str, alike: bool, passes: str) -> None:
    """Equal weights, or equal results, with ranges of their own stay two; so do scales that annotations name."""
    weights = {"p": np.array([1, 2, 3], np.float32), "q": np.array([1, 2, 3], np.float32)}
    scales = {"s": np.array([0.5], np.float32), "t": np.array([0.5 if alike else 0.25], np.float32)}
    made = [helper.make_node("Exp", ["x"], [name]) for name in weights] if of_what == "operators" else []
    nodes = [*made, helper.make_node("Mul", ["x", "p"], ["a"]), helper.make_node("Add", ["a", "q"], ["y"])]
    given = scales | (weights if of_what == "weights" else {})
    initializers = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, [3])], [info("y", FLOAT, [3])], initializers)
    for name, scale in (("p", "s"), ("q", "t")):
        annotation = graph.quantization_annotation.add()
        annotation.tensor_name = name
        entry = annotation.quant_parameter_tensor_names.add()
        entry.key, entry.value = "SCALE_TENSOR", scale
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    written = export_model(irc.compile(model, passes).module).graph
    said = {
        (annotation.tensor_name, entry.key, entry.value)
        for annotation in written.quantization_annotation
        for entry in annotation.quant_parameter_tensor_names
    }
    assert said == {("p", "SCALE_TENSOR", "s"), ("q", "SCALE_TENSOR", "t")}
    kept = {each.name: numpy_helper.to_array(each) for each in written.initializer}
    assert all(kept[name] == array for name, array in scales.items())
