"""Groups of pointwise operators compute natively what they compute on NumPy, whatever they are made of."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.models import onnx_model

pytest.importorskip("llvmlite")

import irc
from irc.ir import Tensor, parse_graph
from irc.native import kernels
from irc.native.backend import Native
from irc.runtime.limits import LimitGuard
from tests.native.test_primitives import bits
from tests.ops.test_semantics import special

Array = np.ndarray[Any, Any]
AnyDType = np.dtype[Any]

BOOL = np.dtype(bool)
FLOATS = [np.dtype(t) for t in ("f4", "f8", "f2", ml_dtypes.bfloat16)]
SIGNED = [np.dtype(t) for t in ("i1", "i2", "i4", "i8")]
UNSIGNED = [np.dtype(t) for t in ("u1", "u2", "u4", "u8")]
NUMBERS = [*FLOATS, *SIGNED, *UNSIGNED]
DTYPES = [*NUMBERS, BOOL]


class Kind(NamedTuple):
    """Operators that are alike.

    Attributes:
        names: of these.
        dtypes: of the operands.
        arity: how many there are.
        gives_bool: whether results are truth values.
        attributes: some that they may have.
    """

    names: str
    dtypes: Sequence[AnyDType]
    arity: int = 2
    gives_bool: bool = False
    attributes: Sequence[dict[str, Any]] = ({},)


KINDS = [
    Kind("Add Sub Mul Div", NUMBERS),
    Kind("Max Min", NUMBERS, 3),
    Kind("Sum Mean", FLOATS, 3),
    Kind("Mod", NUMBERS, attributes=[{"fmod": 1}]),
    Kind("Mod", [*SIGNED, *UNSIGNED]),
    Kind("Abs Sign", NUMBERS, 1),
    Kind("Neg", [*FLOATS, *SIGNED], 1),
    Kind("Relu", [*FLOATS, *SIGNED], 1),
    Kind("Floor Ceil Round Sqrt Reciprocal HardSwish Softsign", FLOATS, 1),
    Kind("HardSigmoid", FLOATS, 1, attributes=[{}, {"alpha": 0.3, "beta": 0.7}]),
    Kind("LeakyRelu", FLOATS, 1, attributes=[{}, {"alpha": 2.5}, {"alpha": -0.5}]),
    Kind("ThresholdedRelu", FLOATS, 1, attributes=[{}, {"alpha": 0.3}]),
    Kind("Shrink", NUMBERS, 1, attributes=[{}, {"bias": 0.3, "lambd": 0.8}]),
    Kind("IsNaN", FLOATS, 1, True),
    Kind("IsInf", [np.dtype("f4"), np.dtype("f8")], 1, True, [{}, {"detect_negative": 0}]),
    Kind("Equal", DTYPES, 2, True),
    Kind("Less LessOrEqual Greater GreaterOrEqual", NUMBERS, 2, True),
    Kind("And Or Xor", [BOOL], 2, True),
    Kind("Not", [BOOL], 1, True),
    Kind("BitwiseAnd BitwiseOr BitwiseXor", [*SIGNED, *UNSIGNED]),
    Kind("BitwiseNot", [*SIGNED, *UNSIGNED], 1),
    Kind("BitShift", UNSIGNED, attributes=[{"direction": "LEFT"}, {"direction": "RIGHT"}]),
]
"""Those that are exact, but for Where, Cast, Clip and Pow."""


class Model(NamedTuple):
    """A model of pointwise operators and what to run it on."""

    proto: onnx.ModelProto
    feeds: dict[str, Array]


def onnx_type(dtype: AnyDType) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


def elements(shape: Sequence[int], dtype: AnyDType, seed: int) -> Array:
    """Numbers that are often small, at times edges or any bits."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    with np.errstate(all="ignore"):
        common = (rng.standard_normal(size) * 4).astype(dtype) if dtype != BOOL else rng.integers(0, 2, size) > 0
        edges = rng.choice(special(dtype), size)
    chosen = np.where(rng.random(size) < 0.7, common, np.where(rng.random(size) < 0.6, edges, bits(size, dtype, rng)))
    return chosen.astype(dtype).reshape(shape)


def laid_out(x: Array, layout: int) -> Array:
    """``x`` in order, with gaps, backwards, or transposed."""
    if layout == 1:
        apart = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype) if x.ndim else x
        if x.ndim:
            apart = apart[..., ::2]
            apart[...] = x
        return apart
    if layout == 2:
        return x[::-1].copy()[::-1] if x.ndim else x
    return np.asarray(x, order="F") if layout == 3 else x


@cache
def allowed(name: str) -> list[AnyDType]:
    """The element types of the operands of an operator of ONNX."""
    schema = onnx.defs.get_schema(name, 24)
    (variable,) = {operand.type_str for operand in schema.inputs}
    (types,) = [c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable]
    names = {dtype: TensorProto.DataType.Name(onnx_type(dtype)).lower() for dtype in DTYPES}
    return [dtype for dtype, name in names.items() if f"tensor({name})" in types]


class Maker:
    """Draws a model."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.values: list[tuple[str, AnyDType]] = []
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shape = draw(st.lists(st.integers(1, 5), max_size=3))
        if self.shape and draw(st.integers(0, 3)) == 0:
            self.shape[-1] = draw(st.sampled_from([0, 17, 33, 100]))

    def one_of(self, values: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(values))

    def some_shape(self) -> list[int]:
        if self.draw(st.booleans()):
            return self.shape
        kept = self.shape[self.draw(st.integers(0, len(self.shape))) :]
        return [self.one_of([size, 1]) for size in kept]

    def constant(self, dtype: AnyDType, shape: Sequence[int]) -> str:
        name = f"c{len(self.constants)}"
        array = elements(shape, dtype, self.draw(st.integers(0, 1000)))
        self.constants.append(helper.make_tensor(name, onnx_type(dtype), list(shape), array.tobytes(), raw=True))
        return name

    def operand(self, dtype: AnyDType) -> str:
        """A value of that type: one that there is, or a constant, or a cast of one."""
        found = [name for name, own in self.values if own == dtype]
        choice = self.draw(st.integers(0, 9))
        if found and choice < 8:
            return self.one_of(found)
        if choice < 5:
            name, _ = self.one_of(self.values)
            return self.add("Cast", [name], dtype, to=onnx_type(dtype))
        return self.constant(dtype, self.one_of([[], [1], self.some_shape()]))

    def add(self, name: str, operands: Sequence[str], dtype: AnyDType, **attributes: Any) -> str:
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(name, operands, [result], **attributes))
        self.values.append((result, dtype))
        return result

    def step(self) -> None:
        kind = self.one_of([*KINDS, "Where", "Clip", "Pow", "Cast"])
        if kind == "Where":
            dtype = self.one_of(DTYPES)
            self.add("Where", [self.operand(BOOL), self.operand(dtype), self.operand(dtype)], dtype)
        elif kind == "Clip":
            dtype = self.one_of(NUMBERS)
            bounds = [self.one_of(["", self.constant(dtype, [])]) for _ in range(2)]
            self.add("Clip", [self.operand(dtype), *bounds], dtype)
        elif kind == "Pow":
            dtype = self.one_of(FLOATS[:2])
            exponent = f"c{len(self.constants)}"
            self.constants.append(helper.make_tensor(exponent, onnx_type(dtype), [], [self.one_of([1.0, 2.0, -1.0])]))
            self.add("Pow", [self.operand(dtype), exponent], dtype)
        elif kind == "Cast":
            dtype = self.one_of(DTYPES)
            name, own = self.one_of(self.values)
            if own.kind == "f" and dtype.kind in "iu":
                name = self.add("Clip", [name, *(self.number(own, n) for n in (0, 100))], own)
            self.add("Cast", [name], dtype, to=onnx_type(dtype))
        else:
            name = self.one_of(kind.names.split())
            dtype = self.one_of([d for d in kind.dtypes if d in allowed(name)])
            operands = [self.operand(dtype) for _ in range(kind.arity)]
            result = BOOL if kind.gives_bool else dtype
            self.add(name, operands, result, **self.one_of(kind.attributes))

    def number(self, dtype: AnyDType, value: float) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, onnx_type(dtype), [], [value]))
        return name


@st.composite
def models(draw: Any, inexact: bool = False) -> Model:
    maker = Maker(draw)
    feeds: dict[str, Array] = {}
    for i in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from(FLOATS if i == 0 or draw(st.booleans()) else DTYPES))
        shape = maker.some_shape() if i else maker.shape
        feeds[f"x{i}"] = laid_out(elements(shape, dtype, draw(st.integers(0, 1000))), draw(st.integers(0, 3)))
        maker.values.append((f"x{i}", dtype))
    for _ in range(draw(st.integers(2, 8))):
        maker.step()
    made = [name for name, _ in maker.values if name.startswith("v")]
    outputs = sorted({made[-1], *draw(st.lists(st.sampled_from(made), max_size=2))})
    weights = {each.name: numpy_helper.to_array(each) for each in maker.constants}
    return Model(onnx_model(maker.nodes, feeds, outputs, weights, 24), feeds)


def check_same(found: Array, wanted: Array, name: str = "") -> None:
    """Equal bit by bit, but for which NaN it is, and the sign of zeros."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    wrong = found != wanted
    if found.dtype.kind not in "biu":
        wrong &= ~(np.isnan(found) & np.isnan(wanted))
    assert not wrong.any(), (name, found[wrong], wanted[wrong])


def both(model: Model, pipeline: str = "default") -> tuple[irc.CompiledModel, irc.CompiledModel]:
    backends = Native(), "numpy"
    native, plain = (irc.compile(model.proto, passes=pipeline, backend=backend) for backend in backends)
    return native, plain


@examples(300)
@given(models())
def test_random_groups(model: Model) -> None:
    note(onnx.printer.to_text(model.proto))
    native, plain = both(model)
    kept = {name: x.copy() for name, x in model.feeds.items()}
    wanted = plain.run(model.feeds)
    for _ in range(2):  # in the second run, memory is planned
        found = native.run(model.feeds)
        note(f"{native.report.declined}")
        for name, x in wanted.items():
            check_same(found[name], x, name)
    for name, x in kept.items():
        assert x.tobytes() == np.ascontiguousarray(model.feeds[name]).tobytes()
    for _ in range(3):  # results are made over inputs where they fit
        found = native.run({name: x.copy() for name, x in kept.items()}, donate=list(kept))
        for name, x in wanted.items():
            check_same(found[name], x, name)
    assert native.counters.kernels <= plain.counters.kernels


# -- runs of large groups -------------------------------------------------------

LARGE = typed_ir(
    "x: Float(*, *); y: Float(*)", "a = Mul(x, y); b = Exp(a); c = Tanh(b); d = Add(c, x); e = Neg(y)", "d, c, e"
)
X, Y = np.linspace(-2, 2, 1 << 20, dtype=np.float32).reshape(1024, 1024), np.linspace(-1, 1, 1024, dtype=np.float32)
FEEDS = {"x": X, "y": Y}


def large() -> irc.CompiledModel:
    return irc.compile(parse_graph(LARGE), backend="native")


def test_results_do_not_depend_on_threads() -> None:
    model = large()
    wanted = model.run(FEEDS, threads=1)
    assert model.counters.compiled
    for threads in (2, 3, 5):
        for name, x in model.run(FEEDS, threads=threads).items():
            assert x.tobytes() == wanted[name].tobytes()


def test_several_threads_at_once() -> None:
    """They run one model, on arrays of various shapes, which are compiled meanwhile."""
    model = large()
    plain = irc.compile(parse_graph(LARGE), backend="numpy")
    feeds = [{"x": X[:rows, :columns], "y": Y[:columns]} for rows in (1, 7, 100) for columns in (1, 33, 1024)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(model.run, feeds * 6))
    for each, found in zip(feeds * 6, results):
        for name, x in plain.run(each).items():
            np.testing.assert_allclose(found[name], x, rtol=1e-5)


ONE_LONG_RANGE = {
    "rows of two factors": ("(2, 5000000)", "onnx::Mul(%x, %b)"),
    "all elements": ("(10000000)", "onnx::ReduceSum[keepdims=0](%x)"),
    "columns": ("(700000, 2, 7)", "onnx::ReduceMax[keepdims=0](%x, %axes)"),
    "one row": ("(1, 5000000)", "onnx::Softmax(%x)"),
}


@pytest.mark.parametrize("name", ONE_LONG_RANGE)
def test_limits_and_interrupts_are_looked_at_in_one_long_range(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, first = ONE_LONG_RANGE[name]
    text = f"""graph(%x : Float{shape}, %b : Float(2, 1)):
      %axes : Long(2) = prim::Constant[value=tensor([0, 2])]()
      %r : Tensor = {first}
      %y : Tensor = onnx::Sigmoid(%r)
      return (%y)
    """
    model = irc.compile(parse_graph(text), backend="native", options=irc.Options(threads=1))
    sizes = [int(n) for n in shape[1:-1].split(",")]
    x = np.resize(np.linspace(-2, 2, 10_007, dtype=np.float32), sizes)
    feeds = {"x": x, "b": np.array([[1], [3]], np.float32)}
    wanted = model.run(feeds)["y"]
    assert model.counters.compiled == model.counters.kernels == 1
    calls, limit, error = 0, 1 << 30, BaseException

    def pace(guard: LimitGuard) -> None:
        nonlocal calls
        calls += 1
        if calls > limit:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(LimitGuard, "pace", pace)
        found = model.run(feeds, limits=irc.Limits(seconds=100))["y"]
        assert found.tobytes() == wanted.tobytes()
        pauses = calls
        assert pauses > 3
        for limit, error in ((1, KeyboardInterrupt), (pauses - 1, TimeoutError)):
            calls = 0
            with pytest.raises(error):
                model.run(feeds, limits=irc.Limits(seconds=100))
            assert calls == limit + 1
    assert model.run(feeds)["y"].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupts(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = large()
    wanted = model.run(FEEDS)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "pace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.run(FEEDS, threads=threads)
    for name, x in model.run(FEEDS, threads=threads).items():
        assert x.tobytes() == wanted[name].tobytes()


def test_operands_of_other_shapes_are_refused_as_on_numpy() -> None:
    feeds = {"x": X, "y": Y[:5]}
    messages = []
    for backend in ("native", "numpy"):
        model = irc.compile(parse_graph(LARGE), backend=backend)
        with pytest.raises(irc.Error) as caught:
            model.run(feeds)
        messages.append((caught.value.code, caught.value.message))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("f2", "f4", "f8", ml_dtypes.bfloat16)], ids=str)
def test_constants_that_are_any_nan(dtype: AnyDType) -> None:
    """Of either sign, and with whatever other bits: each is compiled for itself, in one process."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    infinite = np.array(np.inf, dtype).view(unsigned)
    sign = unsigned.type(1 << (8 * dtype.itemsize - 1))
    x = np.array([1, -1, np.nan, -np.nan, np.inf, 0], dtype)
    kinds = ["Max", "Min", "Where", "Add", "Less"]
    for number in (infinite + 1, (infinite + 1) | sign, ~sign, ~(sign & 0), infinite + (infinite & -infinite) // 2):
        constant = np.array(number, unsigned).view(dtype)
        assert np.isnan(constant)
        nodes = [helper.make_node("Abs", ["x"], ["a"])]
        for kind in kinds:
            nodes.append(helper.make_node(kind, ["b", "a", "c"] if kind == "Where" else ["a", "c"], [kind]))
        nodes += [helper.make_node("Clip", ["a", "c"], ["above"]), helper.make_node("Clip", ["a", "", "c"], ["below"])]
        names = [node.output[0] for node in nodes[1:]]
        graph = helper.make_graph(
            nodes,
            "constants",
            [helper.make_tensor_value_info("x", onnx_type(dtype), x.shape), helper.make_tensor_value_info("b", 9, [6])],
            [helper.make_tensor_value_info(name, 9 if name == "Less" else onnx_type(dtype), [6]) for name in names],
            [onnx.numpy_helper.from_array(constant, "c")],
        )
        model = Model(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11),
            {"x": x, "b": np.array([True, False] * 3)},
        )
        native, plain = both(model, "fuse")
        found, wanted = native.run(model.feeds), plain.run(model.feeds)
        for name in names:
            check_same(found[name], wanted[name], name)
        assert native.counters.compiled


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sign_of_a_constant_nan(sign: int) -> None:
    text = ir("x: Tensor; c: @Tensor", "y = aten.copysign(aten.abs(x), c)", "y")
    c = Tensor.of(np.array(np.copysign(np.nan, sign), np.float32), name="c")
    model = irc.compile(parse_graph(text, {"c": c}), passes="fuse", backend="native")
    for _ in range(2):
        np.testing.assert_array_equal(model.run({"x": np.ones(4, np.float32)})["y"], np.full(4, sign, np.float32))


PRODUCT = typed_ir(
    "x, w: Float(*, *); b, c: Float(*)", "m = MatMul(x, w); a = Add(m, b); d = Tanh(a); e = Mul(d, c)", "e"
)


@pytest.mark.parametrize("sizes", [(5, 4, 5, 5), (5, 5, 4, 5), (5, 5, 5, 4), (4, 4, 5, 5)])
def test_what_does_not_fit_a_product_is_refused_as_on_numpy(sizes: Sequence[int]) -> None:
    """Nothing knows the shape of a product before it is made."""
    k, n, b, c = sizes
    fitting = {name: np.ones(shape, np.float32) for name, shape in zip("xwbc", [(3, 5), (5, 5), (5,), (5,)])}
    feeds = {name: np.ones(shape, np.float32) for name, shape in zip("xwbc", [(3, 5), (k, n), (b,), (c,)])}
    messages: list[list[str]] = []
    for backend in ("numpy", "native"):
        model = irc.compile(parse_graph(PRODUCT), backend=backend)
        messages.append([])
        for _ in range(3):
            model.run(fitting)
            with pytest.raises(irc.Error) as refused:
                model.run(feeds)
            messages[-1].append(str(refused.value))
    assert model.run(fitting) and model.counters.compiled == 1
    assert messages[0] == messages[1]
    assert "onnx::" in messages[0][0]


@pytest.mark.parametrize("outputs", ["%a, %a", "%x, %a", "%a, %c", "%a, %x, %c, %a"])
def test_results_that_are_no_arrays_of_their_own(outputs: str) -> None:
    """Who writes to one of two equal results writes to both: they are one array, or an operand."""
    count = outputs.count("%")
    made = [f"%r{i}" for i in range(count)]
    text = f"""
    graph(%y : Float(3)):
      %x : Float(3) = aten::clone(%y)
      {", ".join(f"{name} : Float(3)" for name in made)} = prim::FusionGroup_0(%x)
      %n : Float(3) = aten::neg_(%r0)
      return ({", ".join(made)}, %n, %x)
    with prim::FusionGroup_0 = graph(%x : Float(3)):
      %c : Float(3) = prim::Constant[value=tensor([1., 2., 3.])]()
      %b : Float(3) = onnx::Mul(%x, %c)
      %a : Float(3) = onnx::Abs(%b)
      return ({outputs})
    """
    y = np.array([1, -2, 4], np.float32)
    results = []
    for backend in ("native", "numpy"):
        model = irc.compile(parse_graph(text), passes="none", backend=backend)
        results.append([[x.tolist() for x in model.run({"y": y}).values()] for _ in range(3)])
    assert results[0] == results[1]


def test_several_results_lie_in_planned_memory() -> None:
    text = typed_ir(
        "x: Float(8, 64); w: Float(64, 64)",
        "a, b, c = FusionGroup_0(x); m = MatMul(a, w); n = Mul(m, b)",
        "n, c",
        FusionGroup_0=(
            "x: Float(8, 64)",
            "a = Sigmoid(x); b = Sqrt(ReduceSum(a, axes=[1], since_version=11)); c = Neg(a)",
            "a, b, c",
        ),
    )
    x, w = np.random.default_rng(0).standard_normal((2, 64, 64), np.float32)
    feeds = {"x": x[:8], "w": w}
    wanted = irc.CompiledModel(parse_graph(text), backend="numpy").run(feeds)
    model = irc.CompiledModel(parse_graph(text), backend="native")
    first = model.run(feeds)
    for _ in range(3):
        found = model.run(feeds)
        assert model.counters.compiled == 1
        assert model.counters.planned == 3, "a, b and m; n and c leave the run"
        for name, value in found.items():
            np.testing.assert_array_equal(value, first[name])
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_profiles_name_the_members_of_a_group_that_is_one_step(backend: str) -> None:
    text = ir("x: Float(4, 4)", "y = Exp(Mul(Relu(x), 2.0))", "y")
    found = irc.compile(parse_graph(text), backend=backend).profile({"x": np.ones((4, 4), np.float32)})
    (group,) = found.by_group()
    ran = [member.kind for member in group.members]
    kinds = ["onnx::Relu", "onnx::Mul", "onnx::Exp"]
    assert (sorted(ran), group.node.fused) == (([], tuple(kinds)) if backend == "auto" else (sorted(kinds), ()))
    (node,) = [row for row in found.to_dict()["nodes"] if row["kind"] == "prim::FusionGroup"]
    assert node["fused"] == list(group.node.fused)
