import re
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.ir import Builder, DType, Graph, Tensor, parse_graph, types
from irc.passes import PassManager
from tests.effort import examples
from tests.graphs import ir, typed_graph
from tests.passes.helpers import assert_same_results, kinds, run_passes
from tests.tables import rows

RNG = np.random.default_rng(0)
PARAMETERS = ("scale", "shift", "mean", "var")


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def parameters(channels: int) -> dict[str, np.ndarray]:
    return {name: floats(channels) for name in PARAMETERS[:3]} | {"var": np.abs(floats(channels)) + 0.5}


def norm(b: Builder, x: Any, channels: int, version: int = 15, **attributes: Any) -> Any:
    constants = [
        b.constant(b.graph.weights.add(f"bn.{k}", Tensor.of(v)), name=f"bn.{k}")
        for k, v in parameters(channels).items()
    ]
    return b.op(
        "onnx::BatchNormalization", x, *constants, name="y", version=version, attributes={"epsilon": 1e-3, **attributes}
    )


def network(kind: str, x: tuple, w: tuple, bias: tuple | None = None, add: tuple | None = None, **attributes: Any):
    """x -> kind -> [Add] -> BatchNormalization -> y"""
    b = Builder(Graph())
    value = b.graph.add_input(types.tensor(DType.FLOAT, x), "x")
    weights = [value, b.constant(b.graph.weights.add("conv.weight", Tensor.of(floats(*w))), name="conv.weight")]
    if bias is not None:
        weights.append(b.constant(Tensor.of(floats(*bias)), name="conv.bias"))
    h = b.op(kind, *weights, attributes=attributes, version=13 if kind == "onnx::Gemm" else 11)
    if add is not None:
        addend = b.constant(Tensor.of(floats(*add)))
        h = b.op("onnx::Add", *((h, addend) if len(add) % 2 else (addend, h)), version=14)
    group = attributes.get("group", 1) if kind == "onnx::ConvTranspose" else 1
    channels = (
        w[1] * group
        if kind == "onnx::ConvTranspose" or (kind == "onnx::Gemm" and not attributes.get("transB"))
        else w[0]
    )
    y = norm(b, h, channels)
    b.graph.set_outputs([y])
    return b.graph


CASES = [
    ("onnx::Conv", (2, 3, 8, 9), (6, 3, 3, 3), None, None, {"pads": [1, 1, 1, 1]}),
    ("onnx::Conv", (2, 3, 8, 9), (6, 3, 3, 3), (6,), None, {"strides": [2, 2]}),
    ("onnx::Conv", (2, 6, 8), (6, 1, 3), (6,), None, {"group": 6}),
    ("onnx::Conv", (2, 4, 5, 5, 5), (6, 2, 3, 3, 3), None, (6, 1, 1, 1), {"group": 2}),
    ("onnx::Conv", (2, 3, 8, 9), (6, 3, 3, 3), (6,), (1, 6, 1, 1), {}),
    ("onnx::Conv", (2, 3, 8, 9), (6, 3, 3, 3), None, (1,), {}),
    ("onnx::Conv", (2, 3, 8, 9), (6, 3, 3, 3), None, (), {}),
    ("onnx::ConvTranspose", (2, 4, 5, 5), (4, 3, 3, 3), None, None, {"strides": [2, 2]}),
    ("onnx::ConvTranspose", (2, 4, 5, 5), (4, 3, 2, 2), (6,), (6, 1, 1), {"group": 2}),
    ("onnx::Gemm", (5, 4), (4, 6), None, None, {}),
    ("onnx::Gemm", (5, 4), (6, 4), (6,), None, {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("onnx::Gemm", (4, 5), (4, 6), (5, 6), (6,), {"transA": 1, "beta": -1.5}),
    ("onnx::Gemm", (5, 4), (4, 6), (), (1, 6), {"beta": 3.0}),
]


@pytest.mark.parametrize(("kind", "x", "w", "bias", "add", "attributes"), CASES)
def test_folded(kind, x, w, bias, add, attributes):
    graph = network(kind, x, w, bias, add, **attributes)
    before = graph.copy()
    report = run_passes(graph, "conv-bn-fold")
    assert report.stats["conv-bn-fold.folded"] == 1 + (add is not None)
    assert kinds(graph) == [kind.removeprefix("onnx::")]
    (node,) = [n for n in graph.nodes if n.kind == kind]
    assert node.inputs[1].name == "conv.weight.folded"
    assert node.inputs[1].node.attributes["value"].name == "conv.weight.folded"
    named_after = "conv.bias" if bias is not None else "bn.shift" if add is None else "1"
    assert node.inputs[2].name.startswith(f"{named_after}.folded")
    assert_same_results(before, graph, floats(*x), rtol=2e-6)


@examples(25)
@given(st.data())
def test_any_convolution(data):
    draw = data.draw
    transposed, groups, rank = draw(st.booleans()), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    inside, outside = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    w = (inside, outside // groups, *kernel) if transposed else (outside, inside // groups, *kernel)
    bias = draw(st.sampled_from([None, (outside,)]))
    add = draw(st.sampled_from([None, (1, outside, *(1,) * rank)]))
    kind = "onnx::ConvTranspose" if transposed else "onnx::Conv"
    graph = network(kind, (2, inside, *(5,) * rank), w, bias, add, group=groups)
    before = graph.copy()
    run_passes(graph, "conv-bn-fold")
    assert kinds(graph) == [kind.removeprefix("onnx::")]
    assert_same_results(before, graph, floats(2, inside, *(5,) * rank), rtol=1e-5)


SHAPES = [(1, 6, 1, 1), (6, 1, 1), (1,), (), (1, 1, 1, 1)]


@pytest.mark.covering(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("names", [["Mul", "Add"], ["Add", "Mul"], ["Sub"], ["Div", "Sub", "Mul"], ["Mul"]])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose", "Gemm"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_scales_and_shifts(kind: str, names: list[str], first: bool, shape: tuple[int, ...], has_bias: bool):
    b = Builder(Graph())
    matrix = kind == "Gemm"
    if matrix:
        shape = {4: (1, 6), 3: (6,)}.get(len(shape), shape) if 6 in shape else shape[:2]
    x = (5, 4) if matrix else (2, 4, 5, 5)
    value = b.graph.add_input(types.tensor(DType.FLOAT, x), "x")
    w = floats(4, 6) if matrix else floats(4, 3, 2, 2) if kind == "ConvTranspose" else floats(6, 2, 2, 2)
    operands = [value, b.constant(Tensor.of(w), name="w"), *([b.constant(Tensor.of(floats(6)))] if has_bias else [])]
    made = b.op(f"onnx::{kind}", *operands, attributes={} if matrix else {"group": 2})
    for name in names:
        other = b.constant(Tensor.of(floats(*shape) + 3))
        made = b.op(f"onnx::{name}", *((made, other) if first or name == "Div" else (other, made)))
    b.graph.set_outputs([made])
    before = b.graph.copy()
    report = run_passes(b.graph, "shape-inference,conv-bn-fold")
    assert report.stats["conv-bn-fold.folded"] == len(names)
    assert kinds(b.graph) == [kind]
    assert_same_results(before, b.graph, floats(*x), rtol=2e-5)


WEIGHTS = "; ".join(
    f"{name}: Float({shape}) = prim.Constant(value=tensor([{numbers}]))"
    for name, shape, numbers in [
        ("w", "3, 2, 1, 1", "1., 2., 3., 4., 5., 6."),
        *[("s", "3", "1., 2., 3."), ("b", "3", "4., 5., 6."), ("m", "3", "7., 8., 9."), ("v", "3", "1., 1., 2.")],
    ]
)


def small(body: str, outputs: str = "y", inputs: str = "") -> Graph:
    """A graph on an input `x` and constants, see `ir`; ``BN`` stands for a normalisation that they are for."""
    body = re.sub(r"BN\(((?:\w+\([^)]*\)|\w+))", r"BatchNormalization(\1, s, b, m, v", body)
    return typed_graph(f"x: Float(1, 2, 4, 4){inputs}", f"{WEIGHTS}\n{dedent(body)}", outputs)


REFUSED = rows("""
another user of the convolution | c = Conv(x, w); y = BN(c); z = Relu(c) | y, z | its input has other uses
the graph returns the convolution too | c = Conv(x, w); y = BN(c) | y, c | its input has other uses
training | y, m2, v2 = BN(Conv(x, w), training_mode=1) | y | it is in training mode
training of old | c = Conv(x, w, since_version=1); y = BN(c, since_version=6) | y | it is in training mode
a statistic of the result itself, elsewhere | c = Conv(x, w);
    t = ReduceMax(c, axes=[0, 2, 3], keepdims=0, since_version=13);
    y = BatchNormalization(RandomNormal(shape=[1, 3, 4, 4]), s, b, m, t) | y | no remark
a parameter that is computed | c = Conv(x, w); y = BatchNormalization(c, s, b, m, Neg(v)) | y
    | the parameters are not constant
weights that are computed | c = Conv(x, Neg(w)); y = BN(c) | y | the weights are not constant
a bias that is computed | c = Conv(x, w, Neg(b)); y = BN(c) | y | the bias is not constant
a sum of the result with itself | c = Conv(x, w); a = Add(c, c); y = BN(a) | y | no remark
a scale of what is returned too | c = Conv(x, w); y = Mul(c, [2.0]) | y, c | its input has other uses
a quotient | c = Conv(x, w); y = Div([2.0], c) | y | it divides by the result
a scale for each column
    | o: Float(1, 3, 1, 4) = prim.Constant(value=tensor([1., 2., 3., 4., 5., 6., 7., 8., 9., 1., 2., 3.]));
    y = Mul(Conv(x, w), o) | y | not one number a channel
a summand of two rows | o: Float(2, 3, 1, 1) = prim.Constant(value=tensor([1., 2., 3., 4., 5., 6.]));
    y = Add(Conv(x, w), o) | y | not one number a channel
a summand of more dimensions | o: Float(1, 1, 1, 1, 1) = prim.Constant(value=tensor([2.])); y = Add(Conv(x, w), o) | y
    | not one number a channel
a scale of infinity | o: Float(1) = prim.Constant(value=tensor([inf])); y = Mul(Conv(x, w), o) | y
    | the folded weights are not finite
a quotient by zero | y = Div(Conv(x, w), [0.0]) | y | the folded weights are not finite
a summand for each column | a = Add(Conv(x, w), [1.0, 2.0, 3.0, 4.0]); y = BN(a) | y
    | the other operand is not one number a channel
a negative variance | y = BatchNormalization(Conv(x, w), s, b, m, [1.0, -1.0, 2.0]) | y
    | the folded weights are not finite
no convolution | y = BN(RandomNormal(shape=[1, 3, 4, 4])) | y | no remark
""")


@pytest.mark.parametrize(("case", "body", "outputs", "reason"), REFUSED)
def test_not_folded(case: str, body: str, outputs: str, reason: str) -> None:
    graph = small(body, outputs)
    before = str(graph)
    report = PassManager("conv-bn-fold").run(graph)
    assert not report.changed
    assert str(graph) == before
    reasons = [note.reason for note in report.remarks]
    assert reason in reasons[0] if reason != "no remark" else not reasons


def test_batch_norm_6_at_inference():
    graph = small("y = BN(Conv(x, w, since_version=1), is_test=1, since_version=6)")
    before = graph.copy()
    run_passes(graph, "conv-bn-fold")
    assert kinds(graph) == ["Conv"]
    assert_same_results(before, graph, floats(1, 2, 4, 4), rtol=1e-5)


def test_normalisation_in_a_branch_folds_into_the_convolution_outside():
    graph = small(
        """
        c = Conv(x, w); y = prim.If(q)
        with block(): n = BN(c); yield n
        with block(): r = RandomNormal(shape=[1, 3, 4, 4]); yield r
        """,
        inputs="; q: Bool()",
    )
    before = graph.copy()
    run_passes(graph, "conv-bn-fold")
    assert kinds(graph) == ["Conv", "If", "RandomNormal"]
    assert_same_results(before, graph, floats(1, 2, 4, 4), np.array(True), rtol=1e-5)


def test_all_equal_weights_stay_one_scalar():
    huge = ir("""
        x: Float(1, 4096, 1, 1) -> y
        w: Float(4096, 4096, 64, 64) = prim.Constant(value=splat(0.5))
        p: Float(4096) = prim.Constant(value=splat(2.)); c: Float(1, 4096, 1, 1) = Conv(x, w)
        y: Float(1, 4096, 1, 1) = BatchNormalization(c, p, p, p, p, epsilon=0.)
    """)
    graph = parse_graph(huge)
    run_passes(graph, "conv-bn-fold")
    weight = graph.value("w.folded").node.attributes["value"]
    assert weight.is_splat
    assert weight.scalar == np.float32(2**0.5 / 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_other_element_types_are_rounded_once(dtype):
    found = DType.from_numpy(np.dtype(dtype))
    b = Builder(Graph())
    x = b.graph.add_input(types.tensor(found, (1, 3, 5, 5)), "x")
    w = floats(4, 3, 3, 3).astype(dtype)
    p = [v.astype(dtype) for v in parameters(4).values()]
    weight, *constants = (b.constant(Tensor.of(v)) for v in (w, *p))
    c = b.op("onnx::Conv", x, weight, type=types.tensor(found))
    b.graph.set_outputs([b.op("onnx::BatchNormalization", c, *constants, type=types.tensor(found), name="y")])
    PassManager("conv-bn-fold").run(b.graph)
    (node,) = [n for n in b.graph.nodes if n.kind == "onnx::Conv"]
    tensor = node.inputs[1].node.attributes["value"]
    scale, _, _, var = (v.astype(np.float64) for v in p)
    exact = w.astype(np.float64) * (scale / np.sqrt(var + 1e-5)).reshape(-1, 1, 1, 1)
    assert tensor.dtype is found
    assert tensor.numpy().tobytes() == exact.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("splat", [False, True])
def test_weights_that_would_lose_their_digits_are_left_alone(dtype, splat):
    """A few small ones beside larger ones do not matter."""
    kind = DType.from_numpy(np.dtype(dtype))
    least = float(np.finfo(dtype).smallest_normal)
    weights = np.full((2, 64, 1, 1), 0.37, dtype)
    if not splat:
        weights[1] = 0.8
        weights[0, 3:5] = least * 3
    too_small = [least / 1000] * 2 if splat else [least / 1000, 1]
    for factors, folds in ((too_small, False), ([1, 1], True), ([least * 8] * 2, True)):
        b = Builder(Graph())
        x = b.graph.add_input(types.tensor(kind, (1, 64, 1, 1)), "x")
        c = b.op("onnx::Conv", x, b.constant(Tensor.of(weights)), type=types.tensor(kind))
        parameters = [np.array(factors), np.zeros(2), np.zeros(2), np.ones(2)]
        constants = [b.constant(Tensor.of(v.astype(dtype))) for v in parameters]
        attributes = {"epsilon": 0.0}
        y = b.op("onnx::BatchNormalization", c, *constants, type=types.tensor(kind), attributes=attributes, name="y")
        b.graph.set_outputs([y])
        report = PassManager("conv-bn-fold").run(b.graph)
        assert report.changed is folds, factors
        if not folds:
            assert f"too small for {np.dtype(dtype).name}" in report.remarks[0].reason


def test_float16_weights_that_would_overflow_are_left_alone():
    b = Builder(Graph())
    half = DType.FLOAT16
    x = b.graph.add_input(types.tensor(half, (1, 1, 2, 2)), "x")
    w = b.constant(Tensor.of(np.full((2, 1, 1, 1), 3e4, np.float16)))
    c = b.op("onnx::Conv", x, w, type=types.tensor(half))
    one = [b.constant(Tensor.of(np.array([1, 2], np.float16))) for _ in range(3)]
    small = b.constant(Tensor.of(np.array([1e-4, 2e-4], np.float16)))
    b.graph.set_outputs([b.op("onnx::BatchNormalization", c, *one, small, type=types.tensor(half), name="y")])
    report = PassManager("conv-bn-fold").run(b.graph)
    assert not report.changed
    assert "not finite" in report.remarks[0].reason
