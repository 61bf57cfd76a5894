"""Operators that irc does not know pass through: from the file to what is written, and around passes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx_export import export_model
from irc.ir import parse_graph, parse_module
from irc.ops.opaque import is_opaque, opaque_kind, opaque_operator, opaque_operators
from tests.frontend.helpers import from_nodes, refused
from tests.graphs import ir
from tests.passes.helpers import kinds, transform

PIPELINES = ("none", "default")
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def infos(*names: str, shape: Any = (2, 3), dtype: int = TensorProto.FLOAT) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, dtype, shape) for name in names]


def model(
    nodes: list[NodeProto],
    outputs: tuple[str, ...] = ("y",),
    inputs: tuple[str, ...] = ("x",),
    opset: int = 17,
    **imports: int,
) -> ModelProto:
    graph = helper.make_graph(nodes, "g", infos(*inputs), infos(*outputs))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in ({"acme": 3} | imports).items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def acme(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    names = [["" if name == "_" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, domain="acme", **attributes)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def ways(proto: ModelProto, tmp_path: Path) -> list[ModelProto]:
    """The model as irc writes it: by each pipeline, also after saving and loading, and after text."""
    found = [export_model(import_model(proto)), export_model(parse_module(str(import_model(proto))))]
    for passes in PIPELINES:
        compiled = irc.compile(proto, passes)
        compiled.save(tmp_path / "m.irc")
        found += [export_model(each.module) for each in (compiled, irc.load(tmp_path / "m.irc"))]
        irc.export(compiled, tmp_path / "m.onnx")
        found.append(onnx.load(tmp_path / "m.onnx"))
        again = irc.compile(found[-1], passes)
        found.append(export_model(again.module))
    return found


def written(proto: ModelProto, op_type: str) -> NodeProto:
    (found,) = [each for each in proto.graph.node if each.op_type == op_type]
    return found


def everything() -> NodeProto:
    """A node with attributes of all types, which an unknown operator may have."""
    closed = helper.make_graph([node("Relu", "p", "q")], "inner", infos("p", shape=["n", 4]), infos("q", shape=None))
    dense = numpy_helper.from_array(np.array([3, 5], np.float32), "v")
    sparse = helper.make_sparse_tensor(dense, numpy_helper.from_array(np.array([0, 2]), "i"), [4])
    type = helper.make_tensor_type_proto(TensorProto.INT64, ["n", None, 3])
    made = acme(
        "Everything",
        "x _ x _",
        "y _ z",
        i=-3,
        zero=0,
        f=1.5,
        nan=float("nan"),
        s="text é",
        t=numpy_helper.from_array(np.arange(6.0).reshape(2, 3)),
        names=numpy_helper.from_array(np.array(["a", "b"], object)),
        ints=[1, 2],
        floats=[1.0, -0.0],
        strings=["a", ""],
        raw=b"\xff\xfe",
        g=closed,
        sparse=sparse,
        tp=type,
        name="called so",
    )
    made.attribute.extend(
        [
            helper.make_attribute("tensors", [numpy_helper.from_array(np.array([7])), numpy_helper.from_array(X)]),
            AttributeProto(name="graphs", type=AttributeProto.GRAPHS, graphs=[closed, closed]),
            AttributeProto(name="sparses", type=AttributeProto.SPARSE_TENSORS, sparse_tensors=[sparse]),
            AttributeProto(name="tps", type=AttributeProto.TYPE_PROTOS, type_protos=[type, type]),
            AttributeProto(name="no floats", type=AttributeProto.FLOATS),
            AttributeProto(name="no graphs", type=AttributeProto.GRAPHS),
            AttributeProto(name="raws", type=AttributeProto.STRINGS, strings=[b"a", b"\x80"]),
            AttributeProto(name="since_version", type=AttributeProto.INT, i=5),
            AttributeProto(name="irc.graphs", type=AttributeProto.STRINGS, strings=[b"odd"]),
            AttributeProto(name="Subgraph", type=AttributeProto.GRAPH, g=closed),
            AttributeProto(name="documented", type=AttributeProto.INT, i=1, doc_string="why"),
        ]
    )
    return made


def plain(attribute: AttributeProto) -> AttributeProto:
    """``attribute`` without what says nothing: names of tensors, empty names of nodes."""
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    for tensor in ([copy.t] if copy.HasField("t") else []) + list(copy.tensors):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor)))
    for graph in ([copy.g] if copy.HasField("g") else []) + list(copy.graphs):
        for each in graph.node:
            for field in ("name", "domain"):
                if not getattr(each, field):
                    each.ClearField(field)
    return copy


def test_nodes_are_kept_exactly(tmp_path: Path) -> None:
    given = everything()
    proto = model([given, node("Identity", "y", "a"), node("Relu", "a", "b")], ("b", "z"))
    for found in ways(proto, tmp_path):
        made = written(found, "Everything")
        assert (made.domain, made.name) == ("acme", "called so")
        assert list(made.input) == ["x", "", "x", ""]
        assert [bool(name) for name in made.output] == [True, False, True]
        attributes = {a.name: plain(a).SerializeToString(deterministic=True) for a in made.attribute}
        assert attributes == {a.name: plain(a).SerializeToString(deterministic=True) for a in given.attribute}
        assert {entry.domain: entry.version for entry in found.opset_import} == {"": 17, "acme": 3}


def test_the_rest_is_optimised() -> None:
    one = node("Constant", "", "one", value_float=1.0)
    nodes = [
        one,
        node("Identity", "x", "a"),
        node("Mul", "a one", "b"),
        acme("Op", "b", "c"),
        node("Identity", "c", "d"),
    ]
    proto = model([*nodes, node("Relu", "d", "y")])
    proto.graph.value_info.extend(infos("c"))
    graph = irc.compile(proto).graph
    assert kinds(graph) == ["Op", "Relu"]
    op = graph.nodes[0]
    assert (op.kind, op.version, op.inputs[0]) == ("opaque.acme::Op", 3, graph.inputs[0])
    assert str(graph.value("y").type) == "Float(2, 3)"  # as the model declares what Relu is given


@pytest.mark.parametrize(
    ("op_type", "domain", "version"),
    [
        ("Rleu", "", 17),
        ("Relu_", "", 17),
        ("Add_", "acme", 3),
        ("Upsample", "", 17),  # removed
        ("Gelu", "", 17),  # newer
        ("Add", "aten", 1),
        ("If", "prim", 1),
        ("append_", "irc", 1),
        ("Relu", "onnx", 1),
        ("Op", "opaque.acme", 2),
        ("Op", "ai.onnx.contrib", 1),
        ("odd::name with spaces_7", "odd-domain/é", 4),
        ("Attention", "com.microsoft.nchwc", 1),
    ],
)
def test_names_and_versions(op_type: str, domain: str, version: int, tmp_path: Path) -> None:
    given = helper.make_node(op_type, ["x", "x"], ["c"], domain=domain)
    imports = {} if domain in ("", "acme") or domain.startswith("com.") else {domain: version}
    proto = model([given, node("Neg", "c", "y")], **imports)
    for found in ways(proto, tmp_path):
        made = written(found, op_type)
        assert (made.domain, list(made.input)) == (domain, ["x", "x"])
        assert version in [entry.version for entry in found.opset_import if entry.domain == domain]
    kind = opaque_kind(domain, op_type)
    assert is_opaque(kind) and opaque_operator(kind) == (domain, op_type)
    refused("IRC123", proto, op_type, domain or "ai.onnx")


def test_what_is_an_error_all_the_same() -> None:
    nowhere = helper.make_node("Op", ["x"], ["y"], domain="com.example")
    with pytest.raises(irc.Error, match=r"(?s)^IRC123: .*imports no operator set of domain 'com\.example'"):
        import_model(from_nodes([nowhere]))
    twice = acme("Op", "x", "y")
    twice.attribute.extend([helper.make_attribute("a", 1), helper.make_attribute("a", 2)])
    refused("IRC127", model([twice]), "'a' is given twice")
    refused("IRC125", model([acme("Op", "w", "y")]), "'w'")
    external = numpy_helper.from_array(X, "v")
    external.data_location = TensorProto.EXTERNAL
    sparse = onnx.SparseTensorProto(values=external)
    refused("IRC130", model([acme("Op", "x", "y", sparse=sparse)]), "'sparse'", "own file")


# -- nested graphs ---------------------------------------------------------------


def body(*nodes: NodeProto, returns: str, params: tuple[str, ...] = ("p",)) -> GraphProto:
    return helper.make_graph(
        list(nodes), "body", infos(*params, shape=["n", 3]), infos(*returns.split(), shape=["n", 3])
    )


def test_graphs_that_use_values_from_outside(tmp_path: Path) -> None:
    two = numpy_helper.from_array(np.float32(2), "two")
    first = body(node("Mul", "p two", "q"), node("Add", "q outer", "r"), returns="r")
    first.initializer.append(two)
    second = body(node("Sub", "p outer", "r"), returns="r")  # the same names as beside it
    nodes = [
        node("Abs", "x", "outer"),
        acme("Run", "x", "y", then=first, alternatives=None, closed=body(node("Relu", "p", "r"), returns="r")),
    ]
    nodes[1].attribute.append(AttributeProto(name="others", type=AttributeProto.GRAPHS, graphs=[second, first]))
    proto = model(nodes)
    for found in ways(proto, tmp_path):
        made = {a.name: a for a in written(found, "Run").attribute}
        graphs = [made["then"].g, *made["others"].graphs, made["closed"].g]
        for graph in graphs:
            assert [i.name for i in graph.input] == ["p"]
            assert [o.name for o in graph.output] == ["r"]
            assert [d.dim_param or d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == ["n", 3]
        assert [[n.op_type for n in graph.node if n.op_type != "Identity"] for graph in graphs] == [
            ["Mul", "Add"],
            ["Sub"],
            ["Mul", "Add"],
            ["Relu"],
        ]
        assert {graph.name for graph in graphs} == {"body"}
        assert "outer" in [name for n in made["then"].g.node for name in n.input]
    graph = irc.compile(proto).graph
    assert "Abs" in kinds(graph)  # only the nested graphs use it


def test_a_name_that_would_hide_what_is_used_is_not_given_back() -> None:
    text = """
graph(%x : Float(2, 3), %p : Float(2, 3)):
  %y : Float(2, 3) = opaque.acme::Run["irc.graphs"=["g:then"], "irc.names"=["then", "p", "r"], since_version=1](%x)
    block0(%q : Float(2, 3)):
      %s : Float(2, 3) = onnx::Add[since_version=14](%q, %p)
      -> (%s)
  return (%y)
"""
    graph = export_model(parse_module(text)).graph.node[0].attribute[0].g
    assert [i.name for i in graph.input] == ["q"]
    assert list(graph.node[0].input) == ["q", "p"]
    assert [o.name for o in graph.output] == ["r"]


def test_contrib_operators_in_nested_graphs_stay_as_they_are() -> None:
    inner = body(
        helper.make_node("Gelu", ["p"], ["a"], domain="com.microsoft"),
        node("LayerNormalization", "a s", "r", epsilon=1e-3),
        returns="r",
        params=("p", "s"),
    )
    proto = model([acme("Run", "x", "y", body=inner)], opset=12)
    found = export_model(irc.compile(proto).module)
    graph = written(found, "Run").attribute[0].g
    assert [(n.domain, n.op_type) for n in graph.node] == [("com.microsoft", "Gelu"), ("", "LayerNormalization")]
    assert {entry.domain: entry.version for entry in found.opset_import} == {"": 12, "acme": 3, "com.microsoft": 1}


@pytest.mark.parametrize("op_type", ["If", "Loop", "function"])
def test_inside_of_control_flow_and_functions(op_type: str, tmp_path: Path) -> None:
    if op_type == "function":
        inner = [acme("Op", "a", "b", k=1), node("Relu", "b", "c")]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 3)]
        function = helper.make_function("local", "F", ["a"], ["c"], inner, imports)
        proto = model([helper.make_node("F", ["x"], ["y"], domain="local")], local=1)
        proto.functions.append(function)
    else:
        branch = [acme("Op", "x" if op_type == "If" else "v", "t", k=1), node("Relu", "t", "u")]
        if op_type == "If":
            graph = helper.make_graph(branch, "b", [], infos("u", shape=None))
            true = node("Constant", "", "t0", value=numpy_helper.from_array(np.array(True)))
            some = node("ReduceMax", "x", "m", keepdims=0)
            test = node("Greater", "m m", "cond")
            nodes = [true, some, test, node("If", "cond", "y", then_branch=graph, else_branch=graph)]
        else:
            params = [*infos("i", shape=[], dtype=7), *infos("on", shape=[], dtype=9), *infos("v", shape=None)]
            results = [*infos("on", shape=[], dtype=9), *infos("u", shape=None)]
            graph = helper.make_graph(branch, "b", params, results)
            iterations = node("Constant", "", "n", value=numpy_helper.from_array(np.array(2)))
            nodes = [iterations, helper.make_node("Loop", ["n", "", "x"], ["y"], body=graph)]
        proto = model(nodes)
    for found in ways(proto, tmp_path):
        assert "acme" in {entry.domain: entry.version for entry in found.opset_import}
        assert b"Op" in found.SerializeToString()
    compiled = irc.compile(proto)
    assert list(opaque_operators(*compiled.module.graphs.values())) == ["Op (domain acme, opset 3)"]
    with pytest.raises(irc.Error, match=r"(?s)^IRC323: .*Op: domain acme"):
        compiled.run({"x": X})


def test_a_branch_that_is_not_taken_needs_no_kernel() -> None:
    then = helper.make_graph([acme("Op", "x", "t")], "then", [], infos("t"))
    other = helper.make_graph([node("Neg", "x", "e")], "else", [], infos("e"))
    nodes = [
        node("ReduceMax", "x", "m", keepdims=0),
        node("Constant", "", "limit", value_float=100.0),
        node("Greater", "m limit", "cond"),
        node("If", "cond", "y", then_branch=then, else_branch=other),
    ]
    for passes in PIPELINES:
        compiled = irc.compile(model(nodes), passes)
        np.testing.assert_array_equal(compiled.run({"x": X})["y"], -X)
        with pytest.raises(irc.Error, match="IRC323"):
            compiled.run({"x": X + 100})


def test_versions_of_one_domain_that_cannot_be_together() -> None:
    inner = [acme("Op", "a", "b")]
    imports = [helper.make_opsetid("acme", 2)]
    proto = model([helper.make_node("F", ["x"], ["a"], domain="local"), acme("Op", "a", "y")], local=1)
    proto.functions.append(helper.make_function("local", "F", ["a"], ["b"], inner, imports))
    with pytest.raises(irc.Error, match=r"(?s)^IRC351: .*no operator set of acme has both"):
        export_model(irc.compile(proto).module)


# -- passes and memory -------------------------------------------------------------


def test_equal_nodes_are_kept_apart_and_in_order() -> None:
    nodes = [acme("Op", "x", "a"), acme("Op", "x", "b"), acme("Print", "x", ""), acme("Op", "x", "unused")]
    graph = irc.compile(model([*nodes, node("Add", "a b", "y")])).graph
    assert kinds(graph) == ["Op", "Op", "Print", "Op", "Add"]


def test_nothing_is_written_over_what_they_were_given_or_returned() -> None:
    text = ir("""
        x: Float(2, 3) -> g
        a: Float(2, 3) = Neg(x, since_version=13); c: Float(2, 3) = opaque.acme.Op(a, since_version=1)
        d: Float(2, 3) = Abs(a, since_version=13); e: Float(2, 3) = Relu(c, since_version=14)
        f: Float(2, 3) = Sqrt(e, since_version=13); g: Float(2, 3) = Add(d, f, since_version=14)
    """)
    graph = transform(text, "in-place")
    writing = {node.kind: node.inputs[0].name for node in graph.nodes if node.kind.endswith("_")}
    assert writing and not {"a", "c"} & set(writing.values())


@pytest.mark.parametrize("pipeline", ["reorder", "reorder,in-place", "cse,dce,constant-pool,reorder", "default"])
def test_they_stay_in_order(pipeline: str) -> None:
    nodes = [acme(f"Op{i}", "x", f"a{i}") for i in range(4)]
    graph = transform(str(import_model(model([*nodes, node("Sum", "a3 a1 a0 a2", "y")])).main), pipeline)
    assert [kind for kind in kinds(graph) if kind.startswith("Op")] == ["Op0", "Op1", "Op2", "Op3"]


# -- running ---------------------------------------------------------------------


def test_running_lists_them_all_and_what_does_not_need_them_runs(tmp_path: Path) -> None:
    nodes = [
        node("Neg", "x", "a"),
        acme("First", "a", "b"),
        acme("Second", "b", "c"),
        node("Abs", "c", "y"),
        node("Relu", "a", "z"),
    ]
    proto = model([*nodes, helper.make_node("Rleu", ["x"], ["w"])], ("y", "z", "w"))
    for passes in PIPELINES:
        compiled = irc.compile(proto, passes)
        assert any("pass through" in note and "First (domain acme" in note for note in compiled.report.notes)
        compiled.save(tmp_path / "m.irc")
        for each in (compiled, irc.load(tmp_path / "m.irc")):
            for outputs in (None, ["y"], ["w", "z"]):
                with pytest.raises(irc.Error) as caught:
                    each.run({"x": X}, outputs)
                assert caught.value.code == "IRC323"
                assert all(name in str(caught.value) for name in ("First", "Second", "Rleu", "3 operators"))
            found = each.run({"x": X}, ["z"])
            assert list(found) == ["z"]
            np.testing.assert_array_equal(found["z"], np.maximum(-X, 0))
            given = X.copy()
            np.testing.assert_array_equal(each.run({"x": given}, ["z"], donate=["x"])["z"], np.maximum(-X, 0))
            np.testing.assert_array_equal(each.profile({"x": X}, ["z"]).outputs["z"], np.maximum(-X, 0))
            with pytest.raises(irc.Error, match="IRC411"):
                each.run({"x": X}, ["nothing"])


def test_a_part_runs_what_writes_into_its_memory() -> None:
    text = ir("""
        x: Float(2, 3) -> a, q
        a: Float(2, 3) = Neg(x, since_version=13); v: Float(3, 2) = Transpose(a, perm=[1, 0], since_version=13)
        w: Float(3, 2) = Relu_(v, since_version=14); u: Float(2, 3) = opaque.acme.Op(x, since_version=1)
        q: Float(2, 3) = Relu(u, since_version=14)
    """)
    compiled = irc.compile(parse_graph(text), "none")
    np.testing.assert_array_equal(compiled.run({"x": X}, ["a"])["a"], np.maximum(-X, 0))


def test_the_check_says_that_it_cannot_run() -> None:
    with pytest.raises(irc.Error, match="IRC323"):
        irc.compile(model([acme("Op", "x", "y")]), check=True)


def test_refusing_them() -> None:
    proto = model([acme("Op", "x", "a"), acme("Op", "a", "b"), helper.make_node("Rleu", ["b"], ["y"])])
    with pytest.raises(irc.Error, match="2 operators are not supported") as caught:
        irc.compile(proto, refuse_unknown=True)
    assert caught.value.code == "IRC123"
    for given in (import_model(proto), import_model(proto).main):
        with pytest.raises(irc.Error, match=r"2 operators that irc does not know") as caught:
            irc.compile(given, refuse_unknown=True)
        assert caught.value.code == "IRC123"
    assert irc.compile(model([node("Relu", "x", "y")]), refuse_unknown=True).run({"x": X})


@pytest.mark.parametrize(
    "change", ['"irc.graphs"=["g:a"]', '"irc.graphs"=[1]', '"irc.attributes"=["?"]', '"irc.types"=3']
)
def test_texts_that_are_inconsistent(change: str) -> None:
    graph = parse_graph(f"graph(%x : Float(2)):\n  %y : Float(2) = opaque.acme::Op[{change}](%x)\n  return (%y)\n")
    with pytest.raises(irc.Error, match=r"^IRC350: "):
        export_model(irc.compile(graph).module)
