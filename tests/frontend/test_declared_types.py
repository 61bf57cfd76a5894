"""What a model declares of its intermediate values is not believed: passes would act on it."""

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper

import irc
from tests.elsewhere import run_onnxruntime

# y is declared [2, 3], but its shape is what the caller says.
MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, int64[2] s) => (float[2, 3] z) <float[2, 3] y>
{
    y = Reshape (x, s)
    t = Constant <value = int64[2] {2, 3}> ()
    w = Reshape (y, t)
    z = Neg (w)
}
""")


def test_a_wrong_value_info_changes_no_result():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = irc.compile(MODEL).run({"x": x, "s": np.array([3, 2])})["z"]
    np.testing.assert_array_equal(result, -x)


def test_a_wrong_output_shape_changes_no_result_either():
    """Models whose batch size somebody has made a name often still declare the old number for their outputs."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 3] x, int64[2] p) => (float[1, 3] y, float[1, 3] z)
    {
        y = Tile (x, p)
        s = Shape (y)
        t = Constant <value = int64[2] {3, -1}> ()
        u = Reshape (y, t)
        z = Reshape (u, s)
    }
    """)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = irc.compile(model).run({"x": x, "p": np.array([1, 1])})
    np.testing.assert_array_equal(results["y"], x)
    np.testing.assert_array_equal(results["z"], x)


@pytest.mark.parametrize(
    ("inputs", "node", "given", "shape"),
    [
        ("float[batch, 3] x, int64[1] a, int64[1] b", "Slice (x, a, b)", ([1], [3]), (2, 3)),
        ("float[batch, 3] x, int64[2] s", "Expand (x, s)", ([4, 5, 3],), (4, 5, 3)),
        ("float[batch, 3] x, int64[2] p", "Tile (x, p)", ([2, 1],), (10, 3)),
        ("float[batch, 3] x, int64[2] s", "Reshape (x, s)", ([3, 5],), (3, 5)),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_an_output_declared_like_the_input_is_no_proof_of_it(inputs, node, given, shape, nested):
    if node.startswith("Expand"):
        inputs = inputs.replace("int64[2]", "int64[3]")
    names = [declaration.split()[1] for declaration in inputs.split(", ")[-len(given) :]]
    outputs = "float[batch, 3] y"
    body = f"y = {node}"
    if nested:
        then, other = (f"{name} () => ({outputs}) {{ {body} }}" for name in "te")
        body = f"y = If (c) <then_branch = {then}, else_branch = {other}>"
        inputs += ", bool c"
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g ({inputs}) => ({outputs}) {{ {body} }}
    """)
    feeds = {"x": np.ones((5, 3), np.float32), **{n: np.array(g) for n, g in zip(names, given)}}
    if nested:
        feeds["c"] = np.array(True)
    for passes in ("none", "default"):
        assert irc.compile(model, passes).run(feeds)["y"].shape == shape


def test_users_are_told_what_the_model_declares_of_its_outputs(tmp_path):
    """Sizes that irc knows stay; what it does not know is as declared."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 3] x, int64[1] a, int64[1] b, float[2, n] w) => (float[part, 3] y, float[4, m] z)
    {
        y = Slice (x, a, b)
        z = Neg (w)
    }
    """)
    compiled = irc.compile(model)
    assert [v.type.shape for v in compiled.graph.outputs] == [(None, None), (2, "n")]
    path = tmp_path / "m.irc"
    compiled.save(path)
    for found in (compiled, irc.load(path)):
        assert [o.shape for o in found.outputs] == [("part", 3), (2, "n")]


def test_a_name_in_the_type_of_a_list_is_another_size_in_each_element():
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (seq(float[N]) s) => (float[K] e)
    <int64 i = {0}, int64 j = {1}>
    {
        a = SequenceAt (s, i)
        b = SequenceAt (s, j)
        t = Shape (b)
        e = Expand (a, t)
    }
    """)
    found = irc.compile(model).run({"s": [np.ones(1, np.float32), np.ones(4, np.float32)]})
    assert found["e"].shape == (4,)


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(
    ("given", "returned", "shape"),
    [
        ([2, 3], [2, 3], (0, 2, 3)),
        ([2, 3], None, (0, 2, 3)),
        (None, [2, 3], (0, 2, 3)),
        (None, [None, None], (0, 0, 0)),
        ([None, 3], None, (0, 0, 3)),
        ([4, 3], [4, 3], (0, 4, 3)),
        (None, None, (0,)),
    ],
)
def test_empty_scan_outputs_have_the_shape_that_the_body_declares(passes, given, returned, shape):
    """And only these: rows are what they are."""
    infos = [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("a", TensorProto.FLOAT, given)]
    results = [("d", TensorProto.BOOL, []), ("b", TensorProto.FLOAT, None), ("r", TensorProto.FLOAT, returned)]
    nodes = [helper.make_node("Identity", [x], [y]) for x, y in ("cd", "ab")] + [helper.make_node("Neg", ["a"], ["r"])]
    body = helper.make_graph(nodes, "b", *([helper.make_tensor_value_info(*i) for i in x] for x in (infos, results)))
    graph = helper.make_graph(
        [helper.make_node("Loop", ["m", "", "x"], ["last", "y"], body=body)],
        "g",
        [helper.make_tensor_value_info("m", TensorProto.INT64, []), helper.make_tensor_value_info("x", 1, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    compiled = irc.compile(model, passes)
    for iterations in (0, 2):
        feeds = {"m": np.array(iterations), "x": np.ones((2, 3), np.float32)}
        assert compiled.run(feeds)["y"].shape == (shape if iterations == 0 else (2, 2, 3))
    if given or returned:  # else ONNX Runtime crashes
        feeds["m"] = np.array(0)
        assert run_onnxruntime(model, feeds)[0].shape == shape


def test_scan_outputs_of_sizes_that_no_tensor_has():
    row, body = "float[4611686018427387904, 4611686018427387904] r", "d = Identity (c) r = Identity (x)"
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64 m, bool t, float[N, M] x) => (float[K, N, M] y) {{
        y = Loop (m, t) <body = b (int64 i, bool c) => (bool d, {row}) {{ {body} }}>
    }}
    """)
    with pytest.raises(irc.Error, match=r"^IRC422: "):
        irc.compile(model).run({"m": np.array(0), "t": np.array(True), "x": np.ones((2, 3), np.float32)})


def declared(type: str, body: str = "y = Neg (x)") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3] x) => ({type} y) {{ {body} }}
    """)


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(
    ("type", "body"),
    [
        ("int64[2, 3]", "y = Neg (x)"),
        ("float16", "y = Identity (x)"),
        ("float[2]", "y = Shape (x)"),
        ("float[2, 3]", "y = SequenceConstruct (x)"),
        ("seq(int64)", "y = SequenceConstruct (x)"),
        ("seq(float)", "y = Neg (x)"),
        ("optional(int64)", "y = Neg (x)"),
    ],
)
def test_another_element_type_of_an_output_is_refused(passes, type, body):
    with pytest.raises(irc.Error, match=r"^IRC135: .*output 'y': the model declares it as"):
        irc.compile(declared(type, body), passes)


def test_element_types_that_only_inference_finds():
    """What a function gives has no type at first."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[2, 3] x) => (int64[2, 3] y) { y = local.F (x) }
    <opset_import: ["" : 17], domain: "local">
    F (a) => (b) { b = Neg (a) }
    """)
    with pytest.raises(irc.Error, match=r"^IRC135: .*declares it as Long"):
        irc.compile(model)
