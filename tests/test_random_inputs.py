"""Inputs that are made up fit the model: their readers accept the values, shape arithmetic the sizes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.errors import Error
from irc.frontend.torchscript import import_torchscript
from irc.ir import DType, TensorType, parse_graph
from irc.runtime.arguments import Argument
from irc.runtime.model import CompiledModel
from irc.tools.check import check_model
from irc.tools.check.peers import exact_onnxruntime
from irc.tools.random_inputs.draw import Domain, Style, seeded_inputs, sizes_of_shapes
from irc.tools.random_inputs.fitting import Fitting
from irc.tools.random_inputs.readers import domains
from tests.cli.helpers import Command
from tests.graphs import ir, ir_graph


def parsed(inputs: str, body: str, constants: str = "", opset: int = 20) -> onnx.ModelProto:
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> g ({inputs}) => (float y) <{constants}> {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.Clear()
    return proto


def made(model: CompiledModel, size: int = 1, seed: int = 0, style: Style = Style.PLAIN) -> dict[str, Any]:
    fitting = Fitting(model, {}, {})
    return fitting.make(seed, dict.fromkeys(fitting.free, size), style).feeds


TABLE = "float[10, 4] w = {" + ", ".join(["1"] * 40) + "}"
IDS = "int64[n, 3] i"
NUMBERS = "float[n, 6] x"

FITTING: dict[str, tuple[str, str, str]] = {
    "indices": (IDS, "y = Gather(w, i)", TABLE),
    "indices that are cast": ("int32[n, 3] i", "j = Cast<to=7>(i) y = Gather(w, j)", TABLE),
    "indices that are reshaped": (IDS, "j = Reshape(i, s) y = Gather(w, j)", f"{TABLE}, int64[1] s = {{-1}}"),
    "indices behind an offset": (IDS, "j = Add(i, two) y = Gather(w, j)", f"{TABLE}, int64 two = {{2}}"),
    "indices less an offset": (IDS, "j = Sub(i, two) y = Gather(w, j)", f"{TABLE}, int64 two = {{2}}"),
    "indices of two tables": (
        IDS,
        "a = Gather(w, i) b = Gather(v, i) y = Add(a, b)",
        f"{TABLE}, float[2, 4] v = {{1,2,3,4,5,6,7,8}}",
    ),
    "indices in a branch": (
        f"{IDS}, bool c",
        "y = If(c) <then_branch = t () => (a) { a = Gather(w, i) }, else_branch = e () => (b) { b = Gather(w, i) }>",
        TABLE,
    ),
    "indices in a loop": (
        f"{IDS}, int64 m",
        """
        c = Constant<value=bool {1}>()
        y = Loop(m, c) <body = b (int64 k, bool d) => (e, r) { e = Identity(d) r = Gather(w, i) }>
        """,
        TABLE,
    ),
    "indices along an open axis": ("float[b, n] x, int64[k] i", "y = Gather<axis=1>(x, i)", ""),
    "GatherElements": ("float[n, m] x, int64[n, m] i", "y = GatherElements<axis=1>(x, i)", ""),
    "GatherND": ("float[n, m, 3] x, int64[k, 2] i", "y = GatherND(x, i)", ""),
    "ScatterND": ("float[5, 4] x, int64[3, 1] i, float[3, 4] u", "y = ScatterND(x, i, u)", ""),
    "ScatterElements": ("float[6, n] x, int64[3, n] i, float[3, n] u", "y = ScatterElements(x, i, u)", ""),
    "classes": ("float[n, 5] x, int64[n] t", "y = NegativeLogLikelihoodLoss(x, t)", ""),
    "how many of the top": (f"{NUMBERS}, int64[1] k", "y, z = TopK(x, k)", ""),
    "diagonal": ("float[n, m] x, int64 k", "y = Trilu(x, k)", ""),
    "lengths": (
        "float[t, b, 2] x, int32[b] n",
        "y = RNN<hidden_size=3>(x, w, r, , n)",
        "float[1,3,2] w = {1,2,3,4,5,6}, float[1,3,3] r = {1,2,3,4,5,6,7,8,9}",
    ),
    "lengths of sequences to turn around": (
        "float[t, b] x, int64[b] n",
        "y = ReverseSequence<time_axis=0, batch_axis=1>(x, n)",
        "",
    ),
    "a target shape": (f"{NUMBERS}, int64[3] s", "y = Reshape(x, s)", ""),
    "a shape to broadcast to": (f"{NUMBERS}, int64[3] s", "y = Expand(x, s)", ""),
    "repeats": (f"{NUMBERS}, int64[2] s", "y = Tile(x, s)", ""),
    "a shape to fill": ("int64[3] s", "y = ConstantOfShape(s)", ""),
    "the end of a range": ("int64 n", "z = Constant<value_int=0>() o = Constant<value_int=1>() y = Range(z, n, o)", ""),
    "scales": ("float[1, 2, h, w] x, float[4] s", 'y = Resize<mode="nearest">(x, , s)', ""),
    "sizes": ("float[1, 2, h, w] x, int64[4] s", 'y = Resize<mode="nearest">(x, , , s)', ""),
    "bounds of a slice": (f"{NUMBERS}, int64[1] a, int64[1] b", "y = Slice(x, a, b)", ""),
    "axes of a slice": (f"{NUMBERS}, int64[1] a, int64[1] b, int64[1] c", "y = Slice(x, a, b, c)", ""),
    "pads": (f"{NUMBERS}, int64[4] p", "y = Pad(x, p)", ""),
    "parts": (f"{NUMBERS}, int64[3] p", "y, a, b = Split<axis=1>(x, p)", ""),
    "axes to reduce": (f"{NUMBERS}, int64[1] a", "y = ReduceSum(x, a)", ""),
    "an axis to sum along": (f"{NUMBERS}, int64 a", "y = CumSum(x, a)", ""),
    "axes to add": (f"{NUMBERS}, int64[2] a", "y = Unsqueeze(x, a)", ""),
    "axes to drop": ("float[n, 1, 3] x, int64[1] a", "y = Squeeze(x, a)", ""),
    "one of several": ("int64[n] i, int64 d", "y = OneHot(i, d, v)", "float[2] v = {0, 1}"),
    "divisors": ("int64[n] x, int64[n] z", "y = Mod(x, z)", ""),
    "sizes that must be equal": ("float[a, b] x, float[c, d] z", "y = Concat<axis=1>(x, z)", ""),
    "sizes of a product": ("float[a, b] x, float[c, d] z", "y = MatMul(x, z)", ""),
    "a size that a weight states": ("float[a, b] x", "y = MatMul(x, w)", TABLE),
    "a size that must be divisible": ("float[a, b] x", "y = Reshape(x, s)", "int64[3] s = {0, 4, -1}"),
    "windows": ("float[b, 1, h, w] x", "y = MaxPool<kernel_shape=[5, 3]>(x)", ""),
    "images that are halved and doubled": (
        "float[b, 1, h, w] x",
        """
        a = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x) c = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(a)
        d = Resize<mode="nearest">(c, , s) y = Concat<axis=1>(x, d)
        """,
        "float[4] s = {1, 1, 4, 4}",
    ),
    "what is remembered and what is new": (
        "float[b, past, 4] p, float[b, new, 4] x, float[b, total] mask",
        """
        k = Concat<axis=1>(p, x) t = Transpose<perm=[0, 2, 1]>(k) s = MatMul(x, t) u = Unsqueeze(mask, one)
        y = Add(s, u)
        """,
        "int64[1] one = {1}",
    ),
    "unnamed sizes": ("float[?, ?] x", "y = MatMul(x, w)", TABLE),
    "axes to pad": (f"{NUMBERS}, int64[2] p, float v, int64[1] a", "y = Pad(x, p, v, a)", ""),
    "parts of a sequence": (
        f"{NUMBERS}, int64[2] p",
        "s = SplitToSequence<axis=1>(x, p) y = ConcatFromSequence<axis=1>(s)",
        "",
    ),
    "the shape of a grid": ("float[n, 2, 3] t, int64[4] s", "y = AffineGrid(t, s)", ""),
    "the shape of an image of blocks": ("float[n, 6, 4] x, int64[2] s, int64[2] b", "y = Col2Im(x, s, b)", ""),
    "the axis of a transform": ("float[n, 8, 3, 2] x, int64 a", "y = DFT(x, , a)", ""),
    "the length of a transform": ("float[n, 8, 1] x, int64 l", "y = DFT(x, l)", ""),
    "frames": ("float[n, 20, 1] x, int64 s, int64 l", "y = STFT(x, s, , l)", ""),
    "a sequence": ("seq(float[n]) x, int64 i", "y = SequenceAt(x, i)", ""),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("name", FITTING)
def test_inputs_fit(name: str, passes: str, size: int) -> None:
    proto = parsed(*FITTING[name])
    model = irc.compile(proto, passes)
    feeds = made(model, size)
    assert all(np.isfinite(x).all() for x in model.run(feeds).values() if not isinstance(x, list))
    exact_onnxruntime(proto, "")(feeds, None)


@pytest.mark.parametrize("name", FITTING)
def test_models_are_checked_on_them(name: str) -> None:
    proto = parsed(*FITTING[name])
    assert check_model(irc.compile(proto), proto).oracle == "ONNX Runtime"


def test_indices_are_all_over_what_they_index() -> None:
    model = irc.compile(parsed("int64[n, 3] i", "y = Gather(w, i)", TABLE))
    drawn = made(model, 50)["i"]
    assert set(drawn.ravel()) == set(range(10))
    model = irc.compile(parsed("int64[n, 3] i", "j = Add(i, two) y = Gather(w, j)", f"{TABLE}, int64 two = {{2}}"))
    assert set(made(model, 50)["i"].ravel()) == set(range(-2, 8))


def test_what_is_scattered_to_one_place_is_one_element() -> None:
    model = irc.compile(parsed("float[6, n] x, int64[4, n] i, float[4, n] u", "y = ScatterElements(x, i, u)"))
    for seed in range(5):
        drawn = made(model, 3, seed)["i"]
        assert all(len(set(column)) == 4 for column in drawn.T)


MASKED = "h = Unsqueeze(mask, one) f = Cast<to=1>(h) g = Sub(l, f) k = Mul(g, far) s = Add(x, k) y = Softmax(s)"
MASKS = {
    "one less it": ("float[b, t, t] x, int64[b, t] mask", MASKED, "int64[1] one={1}, float l={1}, float far={-10000}"),
    "under another name": (
        "float[b, t, t] x, int64[b, t] seen",
        MASKED.replace("mask", "seen"),
        "int64[1] one={1}, float l={1}, float far={-10000}",
    ),
    "a condition": (
        "float[b, t] x, int64[b, t] seen",
        "c = Cast<to=9>(seen) s = Where(c, x, far) y = Softmax(s)",
        "float far = {-10000}",
    ),
    "floats": ("float[b, t] x, float[b, t] seen", "g = Sub(l, seen) y = Add(x, g)", "float l = {1}"),
    "by name alone": ("float[b, t] x, float[b, t] attention_mask", "y = Mul(x, attention_mask)", ""),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_of_ones_then_zeros(name: str) -> None:
    model = irc.compile(parsed(*MASKS[name]), "none")
    mask = np.concatenate([made(model, 6, seed)[model.inputs[1].name] for seed in range(4)]).astype(int)
    assert set(mask.ravel()) == {0, 1}
    assert (mask[:, 0] == 1).all() and (np.diff(mask) <= 0).all()


def test_conditions_are_mixed() -> None:
    model = irc.compile(parsed("bool[4, 5] c, float[4, 5] x, float[4, 5] z", "y = Where(c, x, z)"))
    assert set(made(model)["c"].ravel()) == {True, False}


def test_numbers_that_are_compared_with_constants_are_these() -> None:
    body = """
        c = Equal(rate, known)
        y = If(c) <then_branch = t () => (a) { a = MaxPool<kernel_shape=[40]>(x) },
                   else_branch = e () => (b) { b = MaxPool<kernel_shape=[20]>(x) }>
    """
    model = irc.compile(parsed("float[1, 1, n] x, int64 rate", body, "int64 known = {16000}"))
    feeds = made(model)
    assert feeds["rate"] == 16000 and feeds["x"].shape[2] >= 40


def test_zero_points_of_floats_are_zero() -> None:
    proto = parsed("float8e4m3fn[4] x, float s, float8e4m3fn z", "y = DequantizeLinear(x, s, z)")
    model = irc.compile(proto)
    for style in Style:
        feeds = made(model, style=style)
        assert feeds["z"] == 0 and feeds["s"] > 0
    assert check_model(model, proto).error == 0


def test_bands_of_frequencies_are_in_order() -> None:
    inputs = "int64 bands, int64 length, int64 rate, float low, float high"
    model = irc.compile(parsed(inputs, "y = MelWeightMatrix(bands, length, rate, low, high)"))
    assert model.run(made(model))["y"].sum() > 0


def test_roots_and_logarithms_are_of_positive_numbers() -> None:
    model = irc.compile(parsed("float[n, 4] x, float[n, 4] z", "a = Log(x) b = Sqrt(z) y = Add(a, b)"))
    assert np.isfinite(model.run(made(model, 9, style=Style.EDGES))["y"]).all()


def test_the_same_seed_gives_the_same_inputs() -> None:
    proto = parsed(*FITTING["what is remembered and what is new"])
    first, again, other = (made(irc.compile(proto), 3, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not all(np.array_equal(first[name], other[name]) for name in first)


def test_edges_are_among_them() -> None:
    arguments = [Argument("x", TensorType(DType.FLOAT, (50, 40))), Argument("n", TensorType(DType.INT64, (50, 40)))]
    known = {"n": Domain(is_arithmetic=True)}
    plain, mixed, edges = (seeded_inputs(arguments, 0, {}, known, style) for style in Style)
    assert not (plain["x"] == 0).any() and plain["n"].min() == 0
    for feeds in (mixed, edges):
        zeros = feeds["x"][feeds["x"] == 0]
        assert np.signbit(zeros).any() and not np.signbit(zeros).all()
        assert feeds["n"].min() < 0
    tiny = np.finfo(np.float32).smallest_normal
    assert (np.abs(edges["x"]) >= 100).any() and ((edges["x"] > 0) & (edges["x"] < tiny)).any()
    assert np.abs(mixed["x"]).max() < 100


def test_operators_of_torch_are_looked_at() -> None:
    graph = ir_graph("i: Long(n, 3); w: Float(10, 4)", "y = embedding(w, i, -1, False, False)", "y")
    assert domains(graph)["i"].bounds == (0, 9)
    assert made(irc.compile(graph), 20)["i"].max() > 7


def test_nothing_is_run_if_there_is_nothing_to_choose() -> None:
    graph = parse_graph("graph(%x : Float(n)):\n  %y : Float(n) = onnx::Relu(%x)\n  return (%y)\n")
    model = irc.compile(graph)
    before = model.counters.kernels
    Fitting(model, {}, {"n": 3}).make(0, {}, Style.PLAIN)
    assert model.counters.kernels == before


def test_what_a_model_keeps_is_left_as_it_was() -> None:
    text = ir("""
        self: __torch__.C; x: Float(n) -> b, x
        a: int = prim.GetAttr(self, name="a"); b: int = add(a, 1); prim.SetAttr(self, b, name="a")
    """)
    model = irc.compile(import_torchscript(text, {"a": 0}), "none")
    feeds = made(model, 3)
    assert feeds["x"].shape == (3,) and model.run(feeds)["b"] == 1


def test_what_no_inputs_are_found_for_is_said() -> None:
    proto = parsed(
        "float[n, m] x", "a = ReduceSum(x, one) y = Reshape(a, s)", "int64[1] one = {1}, int64[2] s = {7, 100000}"
    )
    model = irc.compile(proto)
    with pytest.raises(Error, match=r"IRC.*; assumed n=2, m=3 .*: no other sizes.*--dim, --shape or --input"):
        check_model(model, proto)


def test_shapes_state_sizes() -> None:
    arguments = [
        Argument("x", TensorType(DType.FLOAT, (None, 3, "h", "w"))),
        Argument("z", TensorType(DType.FLOAT, ("h",))),
        Argument("t", TensorType(DType.FLOAT, None)),
    ]
    assert sizes_of_shapes(arguments, {"x": (2, 3, 8, 9), "z": (8,)}) == {"x[0]": 2, "h": 8, "w": 9}
    for shapes in ({"x": (2, 4, 8, 9)}, {"x": (2, 3, 8, 9), "z": (9,)}, {"z": (1, 2)}, {"q": (1,)}, {"t": (1,)}):
        with pytest.raises(Error, match="IRC311"):
            sizes_of_shapes(arguments, shapes)


def test_commands_take_shapes_and_find_sizes(irc_command: Command) -> None:
    proto = parsed("float[?, 3, ?, ?] x", "y = MaxPool<kernel_shape=[4, 4]>(x)")
    irc_command.write("m.onnx", proto)
    ran = irc_command("run", "m.onnx", "--seed", "0", "--shape", "x=2,3,6,5")
    assert (ran.status, ran.out[:24], ran.err) == (0, "y: float32 [2, 3, 3, 2] ", "")
    found = irc_command("run", "m.onnx", "--seed", "0")
    assert found.status == 0 and found.err.startswith('irc: assumed "x[')
    assert irc_command("bench", "m.onnx", "--runs", "1").status == 0
    assert irc_command("run", "m.onnx", "--seed", "0", "--dim", "x[2]=9,x[3]=9").out.startswith(
        "y: float32 [1, 3, 6, 6]"
    )
    for option in ("x=2,3,6", "x=2,4,6,5", "z=1"):
        refused = irc_command("run", "m.onnx", "--seed", "0", "--shape", option)
        assert refused.status == 1 and "IRC311" in refused.err
    for option in ("x", "=3", "x=a", "x=1,,2"):
        assert irc_command("run", "m.onnx", "--seed", "0", "--shape", option).status == 2
    twice = ("--shape", "x=2,3,6,5", "--shape", "x=2,3,6,6")
    assert "given twice" in irc_command("run", "m.onnx", "--seed", "0", *twice).err
    clash = irc_command("run", "m.onnx", "--seed", "0", "--shape", "x=2,3,6,5", "--dim", "x[0]=1")
    assert clash.status == 1 and "IRC311" in clash.err
    assert irc_command("run", "m.onnx", "--shape", "x=2,3,6,5").status == 2, "there is no --seed"


@pytest.fixture
def irc_command(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capsys)


def test_limits_hold_while_inputs_are_sought(irc_command: Command) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "b",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, None),
        ],
    )
    proto = parsed("float[n] x", "y = Identity(x)")
    proto.graph.node[0].CopyFrom(helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "yes"))
    irc_command.write("m.onnx", proto)
    ran = irc_command("run", "m.onnx", "--seed", "0", "--max-steps", "100")
    assert ran.status == 1 and "IRC441" in ran.err
