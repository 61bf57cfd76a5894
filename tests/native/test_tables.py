"""Tables of steps: results, what they refuse, branches, and what is done once for an arena."""

from typing import Any

import numpy as np
import pytest

from tests.graphs import ir, typed_ir

pytest.importorskip("llvmlite")

import irc
from irc.ir import Array, Tensor, parse_graph
from irc.native.panels import features_at_once
from irc.native.target import current
from irc.runtime.model import CompiledModel

RNG = np.random.default_rng(5)


def models(text: str) -> tuple[CompiledModel, CompiledModel]:
    """A model without passes, by native code and by NumPy alone."""
    native, plain = (irc.compile(parse_graph(text), passes="none", backend=name) for name in ("native", "numpy"))
    return native, plain


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def same_runs(text: str, *feeds: dict[str, Any], exactly: bool = True) -> CompiledModel:
    """The native model, after runs on ``feeds``, in each of which the results are NumPy's."""
    native, plain = models(text)
    for fed in feeds:
        found, wanted = native.run(fed), plain.run(fed)
        for name, value in wanted.items():
            if exactly:
                np.testing.assert_array_equal(found[name], value)
            else:
                np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
    return native


def chain(operators: str, kind: str = "Float(8)") -> str:
    lines = [f"  %v{i + 1} : {kind} = onnx::{name}(%v{i}, %w)" for i, name in enumerate(operators.split())]
    return f"graph(%v0 : {kind}, %w : {kind}):\n" + "\n".join(lines) + f"\n  return (%v{len(lines)})\n"


def test_many_small_operators_are_one_call() -> None:
    model = same_runs(chain("Add Mul Sub Div Max Min " * 50), *[{"v0": f32(8), "w": f32(8)} for _ in range(4)])
    assert model.counters.compiled == 1
    assert model.counters.kernels == 300


@pytest.mark.parametrize(("name", "dtype"), [("Float", "f4"), ("Double", "f8"), ("Int", "i4")])
@pytest.mark.parametrize("perm", [[1, 0, 2, 3], [0, 3, 1, 2]])
@pytest.mark.parametrize("used", ["w", "a", "d"])
def test_a_reshape_that_copies(used: str, perm: list[int], name: str, dtype: str) -> None:
    text = typed_ir(
        f"x, w: {name}(6, 5, 7)",
        f"a = Add(x, w); d = Reshape(Transpose(Reshape(a, [2, 3, 5, 7]), perm={perm}), [6, 5, 7])\n"
        f"h = Neg(Concat(d, Sub(Mul(d, w), {used}), axis=0))",
        "h",
    )
    feeds = [{each: (9 * f32(6, 5, 7)).astype(dtype) for each in "xw"} for _ in range(4)]
    assert same_runs(text, *feeds).counters.compiled == 1


PRODUCTS = typed_ir(
    "x: Float(ROWS, 24); w: Float(24, 40); b: Float(40); u: Float(24, 40)",
    "t = Transpose(u, perm=[1, 0]); a = MatMul(Relu(Gemm(x, w, b)), t)\n"
    "e = Neg(Softmax(Gemm(a, t, transA=0, transB=1)))",
    "e",
)


def test_a_model_computes_the_same_bits_in_its_first_run_and_later() -> None:
    model, _ = models(PRODUCTS.replace("ROWS", "5"))
    feeds = {"x": f32(5, 24), "w": f32(24, 40), "b": f32(40), "u": f32(24, 40)}
    runs = [model.run(feeds)["e"].tobytes() for _ in range(4)]
    assert len(set(runs)) == 1


WINDOWS = typed_ir(
    "x: Float(1, 6, 20); k: Float(1, 12, 9, 9); w: @Float(8, 6, 3); b: @Float(8); v: @Float(8, 1, 5); "
    "u: @Float(5, 12, 1, 1)",
    "d = Relu(Conv(Neg(x), w, b, pads=[1, 1], kernel_shape=[3]))\n"
    "f = MaxPool(Conv(d, v, pads=[2, 2], strides=[2], group=8), kernel_shape=[2], strides=[2])\n"
    "i = Sigmoid(Concat(f, AveragePool(f, kernel_shape=[3], pads=[1, 1]), axis=1))\n"
    "o = MaxPool(Relu(Conv(Neg(k), u)), kernel_shape=[3, 3], strides=[3, 3])",
    "i, o",
)


def test_windows_and_concat() -> None:
    shapes = {"w": (8, 6, 3), "b": (8,), "v": (8, 1, 5), "u": (5, 12, 1, 1)}
    graph = parse_graph(WINDOWS, {name: Tensor.of(f32(*shape), name) for name, shape in shapes.items()})
    native, plain = (irc.compile(graph, passes="none", backend=name) for name in ("native", "numpy"))
    for turn in range(5):
        feeds = {"x": f32(1, 6, 20), "k": f32(1, 12, 9, 9)}
        if turn == 3:
            feeds["x"][0, 0, 4] = np.nan
        found, wanted = native.run(feeds), plain.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    assert native.counters.compiled == (2 if features_at_once(8) is None else 1)  # without the convolutions
    first = CompiledModel(graph).run(feeds)
    for name, value in first.items():
        assert value.tobytes() == found[name].tobytes()


ORDERS = typed_ir(
    "x: Float(6, 40, 50); w: @Float(50, 160); v: @Float(6, 50)",
    "a = Neg(x); t = Transpose(a, perm=[1, 0, 2]); u = Transpose(a, perm=[1, 2, 0])\n"
    "q = Relu(MatMul(t, w)); s = Softmax(t); m = Softmax(u); c = Concat(t, s, axis=1); d = Mul(t, v); e = Add(u, m)\n"
    "f = Abs(q); g = Abs(c); h = Abs(d); i = Abs(e)\n"
    "k = Softmax(Transpose(Reshape(a, [6, 8, 5, 50]), perm=[2, 0, 1, 3]))",
    "f, g, h, i, k",
)


def test_operands_that_lie_in_other_orders() -> None:
    weights = {"w": Tensor.of(f32(50, 160), "w"), "v": Tensor.of(f32(6, 50), "v")}
    graph = parse_graph(ORDERS, weights)
    native, plain = (irc.compile(graph, passes="none", backend=name) for name in ("native", "numpy"))
    for _ in range(4):
        feeds = {"x": f32(6, 40, 50)}
        found, wanted = native.run(feeds), plain.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    assert native.counters.compiled == 2  # %f is a result that is large, and gets memory from its kernel
    for name, value in irc.compile(graph, passes="none").run(feeds).items():
        assert value.tobytes() == found[name].tobytes()


EFFECTS = ir("""
    x: Float(5) -> f
    y: Float(5) = Neg(x); s: Long(1) = Shape(x); five: Long(1) = prim.Constant(value=tensor([5]))
    which: Bool(1) = Equal(s, five); r: Long(1) = prim.If(which)
    with block(): a: Float(5) = add_(y, 1, 1); yield s
    with block(): yield five
    e: Float(5) = Expand(y, r); f: Float(5) = Neg(e)
""")


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_branches_that_shapes_decide_run_for_what_they_write(backend: str) -> None:
    model = irc.compile(parse_graph(EFFECTS), passes="none", backend=backend)
    x = f32(5)
    for _ in range(4):
        np.testing.assert_array_equal(model.run({"x": x})["f"], x - np.float32(1))


def test_results_without_elements() -> None:
    text = typed_ir("x, y: Float(0)", "a = Concat(x, y, axis=0); d = Neg(Concat(Concat(a, y, axis=0), a, axis=0))", "d")
    same_runs(text, *[{"x": f32(0), "y": f32(0)}] * 4)


def test_parts_of_elements_between_elements() -> None:
    text = typed_ir("x: Float(6, 8); w: Float(8, 5)", "c = Abs(Neg(MatMul(Slice(x, [0], [6]), w)))", "c")
    records = np.zeros((6, 8), np.dtype([("number", "f4"), ("letter", "u2")]))
    records["number"] = f32(6, 8)
    same_runs(text, *[{"x": records["number"], "w": f32(8, 5)} for _ in range(4)])


@pytest.mark.parametrize("dtype", ["Float", "Double", "Half"])
@pytest.mark.parametrize("operator", ["Max(x, y)", "Max(y, x)", "Min(x, y)", "Min(y, x)", "Sign(x)", "Relu(x)"])
def test_zeros_have_the_sign_of_the_first_run(dtype: str, operator: str) -> None:
    body = f"a = {operator}; e = Concat(Sub(Mul(a, x), y), Neg(a), axis=0)"
    text = typed_ir(f"x, y: {dtype}(40)", body, "e")
    model, _ = models(text)
    kind = {"Float": "f4", "Double": "f8", "Half": "f2"}[dtype]
    feeds = {"x": np.resize([0.0, -0.0], 40).astype(kind), "y": np.resize([0.0, 0.0, -0.0, -0.0], 40).astype(kind)}
    assert len({model.run(feeds)["e"].tobytes() for _ in range(3)}) == 1
    assert model.counters.compiled == 1


def test_a_convolution_pads_its_image_beside_copies_of_other_operands() -> None:
    weights = np.round(f32(512, 4, 3), 1).reshape(-1).tolist()
    text = f"""
    graph(%x : Float(1, 4, 12), %y : Float(1, 12, 512)):
      %a : Float(1, 4, 12) = onnx::Abs(%x)
      %b : Float(1, 12, 512) = onnx::Neg(%y)
      %t : Float(1, 512, 12) = onnx::Transpose[perm=[0, 2, 1]](%b)
      %c : Float(1, 512, 12) = prim::FusionGroup_0(%a, %t)
      %d : Float(2, 512, 12) = onnx::Concat[axis=0](%c, %c)
      return (%d)
    with prim::FusionGroup_0 = graph(%a : Float(1, 4, 12), %t : Float(1, 512, 12)):
      %w : Float(512, 4, 3) = prim::Constant[value=tensor<Float(512, 4, 3)>({weights})]()
      %c : Float(1, 512, 12) = onnx::Conv[pads=[1, 1]](%a, %w)
      %s : Float(1, 512, 12) = onnx::Add(%c, %t)
      %u : Float(1, 512, 12) = onnx::Relu(%s)
      %v : Float(1, 512, 12) = onnx::Mul(%u, %s)
      return (%v)
    """
    model = same_runs(text, *[{"x": f32(1, 4, 12), "y": f32(1, 12, 512)} for _ in range(4)], exactly=False)
    assert features_at_once(8) is None or model.counters.compiled == 1


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize(
    ("mask", "bias", "masked"),
    [
        ((2, 3, 1, 9), (2, 3, 1, 9), "None"),
        ((2, 1, 1, 9), (3, 1, 1), "n"),
        ((1,), (2, 1, 1, 9), "n"),
        ((1, 1, 9), (9,), "n"),
    ],
)
@pytest.mark.parametrize("rows", [1, 4])
def test_attention_of_few_rows(
    rows: int, mask: tuple[int, ...], bias: tuple[int, ...], masked: str, is_inside: bool
) -> None:
    sizes = [", ".join(map(str, shape)) for shape in (mask, bias)]
    text = typed_ir(
        f"x: Float(2, 3, {rows}, 32); k: Float(2, 3, 9, 32); v: Float(2, 3, 9, 48); m: Bool({sizes[0]}); "
        f"s: Float({sizes[1]})",
        "q = Neg(x); n = Not(m); t = Neg(s)\n"
        "a = irc.attention(q, k, v, None, n, fill=-1000.0)\n"
        f"d = Abs(Add(a, irc.attention(q, k, v, t, {masked}, scale=0.5)))",
        "d",
    )
    native, plain = models(text)
    found: dict[str, Array] = {}
    for _ in range(4):
        feeds = {"x": f32(2, 3, rows, 32), "v": f32(2, 3, 9, 48), "m": RNG.random(mask) < 0.5, "s": f32(*bias)}
        feeds["k"] = f32(2, 9, 3, 32).swapaxes(1, 2) if is_inside else f32(2, 3, 9, 32)
        found = native.run(feeds)
        np.testing.assert_allclose(found["d"], plain.run(feeds)["d"], rtol=1e-4, atol=1e-5)
    assert native.counters.compiled == 1
    assert models(text)[0].run(feeds)["d"].tobytes() == found["d"].tobytes()


INTEGERS = typed_ir(
    "x: Float(ROWS, 128); v: @Char(128, 136); w: @Char(136, 128); wz: @Char(128)",
    "q, s, z = DynamicQuantizeLinear(x); t = Mul(Cast(MatMulInteger(q, v, z), to=1), s)\n"
    "p, r, o = DynamicQuantizeLinear(t); n = MatMulInteger(p, w, o, wz); l = MatMulInteger(p, w)\n"
    "a = Add(Mul(Cast(n, to=1), r), Cast(l, to=1))",
    "a",
)


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("rows", [1, 5])
def test_dynamic_products_of_integers(rows: int, backend: str) -> None:
    weights = {"v": (128, 136), "w": (136, 128), "wz": (128,)}
    given = {name: Tensor.of(RNG.integers(-64, 64, shape).astype("i1"), name) for name, shape in weights.items()}
    graph = parse_graph(INTEGERS.replace("ROWS", str(rows)), given)
    tested, plain = (irc.compile(graph, passes="none", backend=name) for name in (backend, "numpy"))
    special = f32(rows, 128)
    special[0, :3] = np.nan, np.inf, 1e30
    for x in (f32(rows, 128), np.zeros((rows, 128), "f4"), f32(rows, 128), special, -np.abs(f32(rows, 128))):
        first = CompiledModel(graph).run({"x": x})["a"]
        for _ in range(2):
            np.testing.assert_array_equal(tested.run({"x": x})["a"], first)
        np.testing.assert_array_equal(plain.run({"x": x})["a"], first)
    if backend == "native" and current().has_byte_products:
        assert tested.counters.compiled == 1


@pytest.mark.parametrize(("name", "dtype"), [("Float", "f4"), ("Half", "f2"), ("Long", "i8"), ("Byte", "u1")])
@pytest.mark.parametrize("index", ["Long", "Int"])
@pytest.mark.parametrize(
    ("shape", "axis", "given"),
    [
        ((5, 4), 0, (3,)),
        ((2, 3, 4), 1, (2, 2)),
        ((2, 3, 4), -1, ()),
        ((7,), 0, (4,)),
        ((3, 2), 1, (0,)),
        ((3, 0), 0, (2,)),
    ],
)
def test_gathers(shape: tuple[int, ...], axis: int, given: tuple[int, ...], index: str, name: str, dtype: str) -> None:
    places = ", ".join(map(str, given))
    text = f"""graph(%x : {name}({", ".join(map(str, shape))}), %i : {index}({places})):
  %y = onnx::Add(%x, %x)
  %z = onnx::Mul(%y, %x)
  %a = onnx::Gather[axis={axis}](%z, %i)
  %b = onnx::Add(%a, %a)
  %c = onnx::Mul(%b, %a)
  return (%c)
"""
    size, kind = shape[axis], "i8" if index == "Long" else "i4"
    feeds = [
        {"x": (9 * abs(f32(*shape))).astype(dtype), "i": np.asarray(RNG.integers(-size, size, given), kind)}
        for _ in range(4)
    ]
    model = same_runs(text, *feeds)
    has_table = bool(np.prod(given) * np.prod(shape))
    assert not has_table or model.counters.compiled == (1 if index == "Long" else 2)
    for outside in (size, -size - 1) if has_table else ():
        wrong = {**feeds[0], "i": np.full(given, outside, kind)}
        messages = []
        for each in (model, *models(text)):
            with pytest.raises(irc.Error, match="out of") as caught:
                each.run(wrong)
            messages.append(str(caught.value))
        assert len(set(messages)) == 1
