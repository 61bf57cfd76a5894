"""What mutated models have found: each is refused with a code that fits, or computed."""

from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.alias import AliasDb
from irc.frontend.onnx_export import export_model
from tests.kernels.helpers import run_kernel

FLOAT, INT, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def run(op: str, *inputs: Any, outputs: int = 1, opset: int = 20, passes: str = "none", **attributes: Any) -> Any:
    """One operator on inputs that are given at run time; absent ones are None."""
    return run_known(op, *inputs, outputs=outputs, opset=opset, passes=passes, known=(), **attributes)


def run_known(
    op: str,
    *inputs: Any,
    known: tuple[int, ...],
    outputs: int = 1,
    opset: int = 20,
    passes: str = "default",
    **attributes: Any,
) -> Any:
    """As `run`, on inputs that are constants where ``known`` says so."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: np.asarray(x) for name, x in zip(names, inputs) if name}
    constants = {names[i] for i in known}
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="it", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), [None] * x.ndim)
            for name, x in given.items()
            if name not in constants
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(x, name) for name, x in given.items() if name in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    compiled = irc.compile(model, passes)
    return compiled.run({name: x for name, x in given.items() if name not in constants})


def parsed(
    body: str, inputs: str = "float[2,3] x", constants: str = "", functions: str = "", opset: int = 20
) -> onnx.ModelProto:
    """A model that makes ``y``, of a type that it does not declare."""
    head = f'<ir_version: 9, opset_import: ["": {opset}, "local": 1]> g ({inputs}) => (y) <{constants}>'
    return onnx.parser.parse_model(f"{head} {{ {body} }} {functions}")


def function(name: str, body: str, opset: int = 20) -> str:
    return f'<domain: "local", opset_import: ["": {opset}]> {name} {{ {body} }}'


def refused(code: str, words: str, action: Any, *arguments: Any, **options: Any) -> None:
    with pytest.raises(irc.Error) as caught:
        action(*arguments, **options)
    assert caught.value.code == code, caught.value
    assert words in str(caught.value)


X = np.ones((2, 3), np.float32)
MATRIX = np.ones((1, 1), np.int64)


@pytest.mark.parametrize(
    ("op", "others", "attributes"),
    [
        ("Reshape", [MATRIX * 6], {}),
        ("Expand", [MATRIX], {}),
        ("Squeeze", [MATRIX], {}),
        ("Unsqueeze", [MATRIX], {}),
        ("ReduceSum", [MATRIX], {}),
        ("Tile", [np.ones((2, 1), np.int64)], {}),
        ("Slice", [np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64), MATRIX], {}),
        ("Resize", [None, None, np.ones((2, 1), np.int64)], {}),
    ],
)
def test_sizes_and_axes_are_vectors(op: str, others: list[Any], attributes: dict[str, Any]) -> None:
    refused("IRC421", "as a vector", run, op, X, *others, **attributes)


@pytest.mark.parametrize(
    ("op", "inputs", "words"),
    [
        ("Reshape", [X, np.float32(6)], "input 1 (shape) of onnx::Reshape cannot be tensor(float)"),
        ("MatMul", [X, np.array([["a"], ["b"], ["c"]], object)], "of onnx::MatMul cannot be tensor(string)"),
        ("Add", [X, np.array("a", object)], "of onnx::Add cannot be tensor(string)"),
        ("StringConcat", [np.arange(2), np.arange(2)], "of onnx::StringConcat cannot be tensor(int64)"),
    ],
)
def test_operands_of_types_that_the_operator_does_not_allow(op: str, inputs: list[Any], words: str) -> None:
    refused("IRC136", words, run, op, *inputs)


def test_sequences_where_tensors_are_meant() -> None:
    """The importer knows no type of what a function gives, so that this comes to the kernels."""
    for op, passes in (("MatMul", "none"), ("Concat<axis = 0>", "none"), ("Concat<axis = 0>", "default")):
        called = function("F (a) => (b)", f"s = SequenceConstruct(a, a) b = {op}(s, s)")
        with pytest.raises(irc.Error) as caught:
            irc.compile(parsed("y = local.F(x)", functions=called), passes).run({"x": X})
        assert caught.value.code not in ("IRC309", "IRC401"), caught.value


def test_no_more_dimensions_than_arrays_have() -> None:
    x = np.ones([1] * 40, np.float32)
    refused("IRC422", "64", run, "Unsqueeze", x, np.arange(30))
    refused("IRC422", "64", run, "Expand", X, np.ones(70, np.int64))
    assert run("Unsqueeze", x, np.arange(24))["y0"].ndim == 64


def test_more_dimensions_than_numpy_broadcasts() -> None:
    x = np.ones([1] * 38 + [2, 2], np.float32)
    for op, expected in (("Add", 2), ("MatMul", 2)):
        compiled = irc.compile(parsed(f"y = {op}(x, x)", f"float[{','.join(map(str, x.shape))}] x"))
        found = compiled.run({"x": x}, limits=irc.Limits(bytes=1 << 20))["y"]
        assert found.shape == x.shape
        assert (found == expected).all()


MANY = np.arange(4, dtype=np.float32).reshape([1] * 38 + [2, 2])


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Expand", [MANY, np.array([3] + [1] * 39)], np.concatenate([MANY] * 3)),
        ("Where", [MANY > 1, MANY, -MANY], np.where(MANY > 1, MANY, -MANY)),
        ("Max", [MANY, -MANY, MANY], MANY),
        ("PRelu", [-MANY, MANY], -MANY * MANY),
        ("StringConcat", [np.full(MANY.shape, "a", object)] * 2, np.full(MANY.shape, "aa", object)),
        ("TopK", [MANY, np.array([1])], MANY[..., 1:]),
        ("Resize", [MANY, None, np.ones(40, np.float32)], MANY),
    ],
)
def test_operators_of_more_dimensions_than_some_of_numpys_functions(
    passes: str, op: str, inputs: list[Any], expected: Any
) -> None:
    found = run(op, *inputs, outputs=2 if op == "TopK" else 1, passes=passes)["y0"]
    assert found.shape == expected.shape
    assert (found == expected).all()


@pytest.mark.parametrize("count", [33, 65, 200])
def test_more_operands_than_numpys_functions_take(count: int) -> None:
    """Of one node, and of one fusion group."""
    names = [f"x{i}" for i in range(count)]
    sums = " ".join(f"t{i} = Add({'x0' if i == 1 else f't{i - 1}'}, x{i})" for i in range(1, count))
    shapes = [[1, 3], [2, 1]]
    given = ", ".join(f"float{shapes[i % 2]} {name}" for i, name in enumerate(names))
    every = ", ".join(names)
    head = f'<ir_version: 9, opset_import: ["": 20]> g ({given}) => (s, m, t{count - 1})'
    compiled = irc.compile(onnx.parser.parse_model(f"{head} {{ s = Sum({every}) m = Max({every}) {sums} }}"))
    assert any(node.kind == "prim::FusionGroup" and len(node.inputs) >= min(count, 60) for node in compiled.graph.nodes)
    feeds = {name: np.full(shapes[i % 2], i, np.float32) for i, name in enumerate(names)}
    total = count * (count - 1) / 2
    for found, expected in zip(compiled.run(feeds).values(), (total, count - 1, total)):
        assert found.shape == (2, 3)
        assert (found == expected).all()


def test_bounds_of_several_elements() -> None:
    refused("IRC421", "one element", run, "Clip", X, np.float32([1, 2]))
    refused("IRC421", "one element", run, "Clip", X, None, np.float32([1, 2]))


def test_biases_and_peepholes_of_other_sizes() -> None:
    x, w, r = np.ones((3, 2, 4), np.float32), np.ones((1, 12, 4), np.float32), np.ones((1, 12, 3), np.float32)
    refused("IRC421", "B has the shape", run, "LSTM", x, w, r, np.ones((1, 48), np.float32), hidden_size=3)
    peepholes = [None, None, None, None, np.ones((1, 6), np.float32)]
    refused("IRC421", "P has the shape", run, "LSTM", x, w, r, *peepholes, hidden_size=3)


@pytest.mark.parametrize("shape", [(3, 0, 4), (0, 2, 4)])
def test_recurrent_layers_over_nothing(shape: tuple[int, ...]) -> None:
    w, r = np.ones((1, 12, 4), np.float32), np.ones((1, 12, 3), np.float32)
    y, h, c = run_kernel("LSTM", [np.ones(shape, np.float32), w, r], {"hidden_size": 3}, 14, 3)
    assert y.shape == (shape[0], 1, shape[1], 3)
    assert h.shape == c.shape == (1, shape[1], 3)
    assert not h.any()


@pytest.mark.parametrize(("channels", "features"), [(2, 0), (0, 2), (0, 0)])
def test_convolutions_from_or_to_no_channels(channels: int, features: int) -> None:
    x, bias = np.ones((1, channels, 3, 3), np.float32), np.full(features, 2, np.float32)
    for op, shape, side in (("ConvTranspose", (channels, features, 3, 3), 5), ("Conv", (features, channels, 3, 3), 1)):
        found = run(op, x, np.ones(shape, np.float32), bias)["y0"]
        assert found.shape == (1, features, side, side)
        assert channels or (found == 2).all()


def test_trip_counts_are_integers() -> None:
    text = "body (int64 i, bool go) => (bool on, row) { on = Identity(go) row = Cast<to = 1>(i) }"
    for count in (np.float32(np.inf), np.float32(2.5)):
        refused("IRC214", "trip count", run, "Loop", count, None, body=onnx.parser.parse_graph(text))
    model = parsed(f"s = SequenceConstruct(x) y = Loop<body = {text}>(s, yes)", "int64 x", "bool yes = {1}")
    with pytest.raises(irc.Error) as caught:
        irc.compile(model).run({"x": np.array(2)})
    assert caught.value.code not in ("IRC309", "IRC401"), caught.value


def test_slopes_that_are_no_numbers_do_not_matter_where_they_do_not_apply() -> None:
    x = np.float32([[-1, 0, 2], [-2, 1, 3]])
    found = run("PRelu", x, np.float32([np.inf, np.nan, -np.inf]))["y0"]
    assert found.tolist() == [[-np.inf, 0, 2], [-np.inf, 1, 3]]
    assert run("LeakyRelu", x, alpha=float("inf"))["y0"].tolist() == found.tolist()


def test_attributes_of_scans_that_are_not_as_many_as_what_they_are_about() -> None:
    body = "body (float[3] a) => (float[3] b, float[3] c) { b = Neg(a) c = Abs(a) }"
    node = f"y, z = Scan<body = {body}, num_scan_inputs = 1, scan_output_directions = [0, 0, 1]>(x)"
    refused("IRC215", "scan_output_directions", irc.compile, parsed(node))


def test_shapes_larger_than_any_tensor() -> None:
    for op, inputs in (("ConstantOfShape", [[2**62]]), ("Expand", [X, [2**62, 2, 3]]), ("Tile", [X, [2**40, 2**40]])):
        known = (0,) if op == "ConstantOfShape" else (0, 1)
        refused("IRC422", "", run_known, op, *map(np.asarray, inputs), known=known)
    refused("IRC422", "", run_known, "ConstantOfShape", np.array([2**62, 0, 2**62]), known=(0,))


@pytest.mark.parametrize(
    ("op", "inputs", "known", "attributes"),
    [
        ("Resize", [X, None, np.float32([np.nan, 1])], (2,), {}),
        ("Resize", [X, None, np.float32([np.inf, 1])], (2,), {}),
        ("OneHot", [np.arange(2), np.zeros(0, np.int64), np.float32([0, 1])], (1,), {}),
        ("Range", [np.array(0), np.zeros(0, np.int64), np.array(1)], (1,), {}),
        ("Range", [np.array([0, 1]), np.array(3), np.array([1, 1])], (0, 2), {}),
        ("ConvTranspose", [np.ones((1, 1, 3, 3), np.float32)] * 2, (1,), {"kernel_shape": [3]}),
        ("GatherND", [X, np.zeros((2, 1), np.int64)], (), {"batch_dims": -(2**31)}),
        ("ConstantOfShape", [np.zeros(100, np.int64)], (), {}),
        ("RoiAlign", [np.ones((1, 1, 4, 4), np.float32), np.float32([[np.nan] * 4]), np.zeros(1, np.int64)], (), {}),
        (
            "MaxRoiPool",
            [np.ones((1, 1, 4, 4), np.float32), np.float32([[0] + [np.inf] * 4])],
            (),
            {"pooled_shape": [1, 1]},
        ),
        ("LSTM", [X, np.ones((1, 12, 4), np.float32), np.ones((1, 12, 3), np.float32)], (), {"hidden_size": 3}),
    ],
)
def test_rules_for_shapes_say_what_is_wrong(
    op: str, inputs: list[Any], known: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    with pytest.raises(irc.Error) as caught:
        run_known(op, *inputs, known=known, **attributes)
    assert caught.value.code not in ("IRC309", "IRC401"), caught.value


@pytest.mark.parametrize("op", ["Reshape", "Expand", "ConstantOfShape"])
def test_shapes_that_claim_to_have_very_many_sizes(op: str) -> None:
    """The length of a shape is a rank, which no rule may take for the length of a list."""
    inputs = "s" if op == "ConstantOfShape" else "x, s"
    refused("IRC310", "dimensions", irc.compile, parsed(f"y = {op}({inputs})", f"float[2] x, int64[{2**40}] s"))


def test_sizes_that_wrap_around() -> None:
    """What shapes are computed to is known before the run, but only as far as integers go."""
    model = parsed("s = Shape(x) t = Mul(s, large) y = Mul(t, large)", constants=f"int64[2] large = {{{2**62}, 3}}")
    expected = np.array([2, 3]) * np.array([2**62, 3]) * np.array([2**62, 3])
    for passes in ("none", "default"):
        assert irc.compile(model, passes).run({"x": X})["y"].tolist() == expected.tolist()


def test_scales_of_sizes_beyond_what_floats_hold() -> None:
    constants = f"int64[2] sizes = {{{2**62}, {2**62}}}, float[2] scales = {{3e38, 3e38}}"
    model = parsed("e = Expand(x, sizes) y = Resize(e, , scales)", "float[1,1] x", constants)
    with pytest.raises(irc.Error, match=r"^IRC422: "):
        irc.compile(model).run({"x": np.ones((1, 1), np.float32)})


def test_long_chains_of_concats_compile_in_linear_time() -> None:
    """Every chain was once walked from each of its nodes."""

    def queries(count: int) -> int:
        chain = " ".join(f"x{i + 1} = Concat<axis = 0>(x{i}, w)" for i in range(count))
        source = parsed(f"{chain} y = Identity(x{count})", "float[n,3] x0, float[m,3] w")
        with patch.object(AliasDb, "location_set", autospec=True, side_effect=AliasDb.location_set) as asked:
            irc.compile(source, "growable")
        return asked.call_count

    assert 0 < queries(400) <= 10 * queries(40) + 10


@pytest.mark.parametrize("passes", ["none", "inline", "default"])
@pytest.mark.parametrize("declared", [False, True])
def test_loops_without_iterations_whose_stacks_nobody_declared(passes: str, declared: bool) -> None:
    """What a body would yield is inferred: an empty stack has its element type and sizes."""
    row, doubled = "float[] row" if declared else "row", "row = Concat<axis = 1>(x, x)"
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 20]>
        g (int64 iterations, float[n] none, float[2,3] x) => (y, z) <bool yes = {{1}}> {{
            y = Loop<body = a (int64 i, bool go) => (bool on, {row}) {{ on = Identity(go) {doubled} }}>(iterations, yes)
            z = Scan<body = b (float e) => ({row}) {{ {doubled} }}, num_scan_inputs = 1>(none)
        }}""")
    feeds = {"iterations": np.array(0), "none": np.zeros(0, np.float32), "x": X}
    found = irc.compile(model, passes).run(feeds)
    assert [(found[name].shape, found[name].dtype) for name in "yz"] == [((0, 2, 6), np.float32)] * 2
    assert irc.compile(model, passes).run(feeds | {"iterations": np.array(2)})["y"].shape == (2, 2, 6)


def test_loops_without_iterations_of_which_nothing_can_be_known() -> None:
    body = "body (int64 i, bool go) => (bool on, row) { on = Identity(go) row = Neg(x) }"
    called = function(
        "F (iterations, x) => (y)", f"yes = Constant<value = bool {{1}}>() y = Loop<body = {body}>(iterations, yes)"
    )
    model = parsed("y = local.F(iterations, x)", "int64 iterations, float[2,3] x", functions=called)
    feeds = {"iterations": np.array(0), "x": X}
    refused("IRC432", "inline the function", irc.compile(model, "none").run, feeds)
    assert irc.compile(model, "inline").run(feeds)["y"].shape == (0, 2, 3)


@pytest.mark.parametrize("op", ["Size", "Shape"])
@pytest.mark.parametrize("passes", ["default", "constant-fold", "shape-inference"])
def test_sizes_beyond_what_integers_hold(op: str, passes: str) -> None:
    """Types may claim them; no input has them."""
    model = parsed(f"c = Concat<axis = 0>(x, x, x) y = {op}(c)", f"float[{2**62},2] x")
    compiled = irc.compile(model, passes)
    refused("IRC413", "4611686018427387904", compiled.run, {"x": X[:, :2]})
    model.graph.output[0].name = "c"
    after = export_model(irc.compile(model, "shape-inference").module)
    assert not after.graph.output[0].type.tensor_type.shape.dim[0].HasField("dim_value")


def test_a_sequence_in_a_sequence_is_refused_where_it_would_come_to_be() -> None:
    rest = "outer = SequenceConstruct(x, inner) y = ConcatFromSequence<axis = 0>(outer)"
    known = parsed(f"inner = SequenceConstruct(x) {rest}", "float[n] x", opset=12)
    refused("IRC136", "of onnx::SequenceConstruct cannot be seq(tensor(float))", irc.compile, known)
    # the importer knows no type of what a function gives; the verifier does
    made = function("F (x) => (inner)", "inner = SequenceConstruct(x)", 12)
    hidden = parsed(f"inner = local.F(x) {rest}", "float[n] x", functions=made, opset=12)
    refused("IRC214", "of onnx::SequenceConstruct cannot be Tensor[]", irc.compile, hidden)
