"""Fused groups of pointwise operators and operators that reduce rows, beside the members run one by one on NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.runtime.backends import ArrayType
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.native.guarded import placed

pytest.importorskip("llvmlite")

import irc
from irc.ir import parse_graph
from irc.native.backend import Native
from irc.native.groups import Group

Array = np.ndarray[Any, Any]

GROUPS = {
    "residual, layer": typed_ir(
        "x, r: Float(6, 70); b, s: Float(70)", "a = Add(x, b); h = Add(a, r); y = LayerNormalization(h, s, b)", "y"
    ),
    "the sum is a result, too": typed_ir(
        "x, r: Float(6, 70); s: Float(70)", "h = Add(x, r); y = RMSNormalization(h, s); z = Gelu(y)", "h, z"
    ),
    "mask, scale, softmax": typed_ir(
        "x: Float(2, 3, 5, 40); m: Float(2, 1, 1, 40); s: Float()",
        "a = Mul(x, s); b = Add(a, m); y = Softmax(b); z = Mul(y, x)",
        "z",
    ),
    "softmax of columns": typed_ir(
        "x: Float(30, 50); y: Float(50)", "a = Sub(x, y); b = Softmax(a, axis=0); c = Log(b)", "b, c"
    ),
    "two normalisations": typed_ir(
        "x: Float(6, 70); s, b: Float(70)",
        "a = LayerNormalization(x, s, b); c = Tanh(a); y = LayerNormalization(c, s, b); z = Add(y, a)",
        "z",
    ),
    "by hand": typed_ir(
        "x: Float(6, 70); s: Float(70)",
        "d = Sub(x, ReduceMean(x, [-1])); w = Add(ReduceMean(Mul(d, d), [-1]), 0.001); y = Mul(Div(d, Sqrt(w)), s)",
        "y, w",
    ),
    "squeezed": typed_ir(
        "x: Float(4, 6, 9); y: Float(4, 6)", "a = Exp(x); m = ReduceSum(a, [2], keepdims=0); z = Mul(Log(m), y)", "z"
    ),
    "middle axis, squeezed": typed_ir(
        "x: Float(4, 6, 9); y: Float(9)", "a = Abs(x); m = ReduceMax(a, [1], keepdims=0); z = Mul(m, y)", "z"
    ),
    "images": typed_ir(
        "x: Float(2, 6, 5, 7); s: Float(6); r: Float(2, 6, 5, 7)",
        "a = Add(x, r); n = GroupNormalization(a, s, s, num_groups=3); y = HardSwish(n)",
        "y",
    ),
    "batch, relu": typed_ir(
        "x: Float(2, 6, 5, 7); s: Float(6)", "a = BatchNormalization(x, s, s, s, s); y = Relu(a)", "y"
    ),
}


def feeds(graph: Any) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        value.name: np.asarray(rng.uniform(0.5, 1.5, value.type.shape) - (value.name == "x"), np.float32)
        for value in graph.inputs
    }


@pytest.mark.parametrize("name", GROUPS)
def test_code_of_a_group_reads_its_operands_and_nothing_else(name: str) -> None:
    graph = parse_graph(GROUPS[name])
    operands = list(feeds(graph).values())
    types = [ArrayType(x.dtype, x.shape) for x in operands]
    kernel = Group(list(graph.nodes), list(graph.inputs), list(graph.outputs)).kernel(types)
    plain, found = kernel(*operands), kernel(*map(placed, operands))
    for x, y in zip(plain, found) if isinstance(plain, tuple) else [(plain, found)]:
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_gives_what_its_members_do(name: str) -> None:
    given = feeds(parse_graph(GROUPS[name]))
    model = irc.compile(parse_graph(GROUPS[name]), backend=Native())
    found = model.run(given)
    assert len(model.report.groups) == model.counters.compiled > 0 and not model.report.declined
    assert model.counters.kernels == model.counters.compiled  # nothing is left outside
    wanted = irc.compile(parse_graph(GROUPS[name]), "", backend="numpy").run(given)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("name", GROUPS)
def test_results_are_made_over_operands_that_are_given_away(name: str) -> None:
    given = feeds(parse_graph(GROUPS[name]))
    model = irc.compile(parse_graph(GROUPS[name]), backend=Native())
    wanted = model.run(given)
    fitting = {x.shape for x in wanted.values()} & {given["x"].shape}
    for _ in range(3):
        found = model.run({key: value.copy() for key, value in given.items()}, donate=list(given))
        assert model.counters.compiled > 0
        assert model.counters.in_place > 0 or not fitting
        for key, value in wanted.items():
            np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_of_small_floats_rounds_as_its_members_do(name: str) -> None:
    text = GROUPS[name].replace("Float", "Half")
    given = {key: value.astype(np.float16) for key, value in feeds(parse_graph(text)).items()}
    model = irc.compile(parse_graph(text), backend=Native())
    found = model.run(given)
    assert model.counters.compiled == 1 and not model.report.declined
    wanted = irc.compile(parse_graph(text), "", backend="numpy").run(given)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=5e-3, atol=5e-3, err_msg=key)


def test_operands_of_a_group_lie_in_any_way() -> None:
    text = GROUPS["residual, layer"]
    given = feeds(parse_graph(text))
    model = irc.compile(parse_graph(text), backend=Native())
    plain = model.run(given)
    other = model.run({key: np.asfortranarray(value) if value.ndim == 2 else value for key, value in given.items()})
    assert model.counters.compiled == 1
    np.testing.assert_allclose(other["y"], plain["y"], rtol=1e-5, atol=1e-5)


UNARY, BINARY = ("Neg", "Abs", "Tanh", "Exp", "Relu", "Sigmoid"), ("Add", "Sub", "Mul", "Max", "Min")


@examples(40)
@given(st.data())
def test_random_groups(data: st.DataObject) -> None:
    """Pointwise operators of operands of any shape that broadcasts, around operators that reduce the same rows."""
    draw = data.draw
    shape = [draw(st.sampled_from([1, 2, 5, 33, 70])) for _ in range(draw(st.integers(2, 3)))]
    axis = draw(st.integers(0, len(shape) - 1))
    kept = [1 if i == axis else n for i, n in enumerate(shape)]
    inputs: dict[str, list[int]] = {"x": shape}
    lines = [f"%axes : Long(1) = prim::Constant[value=tensor([{axis}])]()"]
    made = [("x", shape)]

    def add(kind: str, operands: list[str], size: list[int], attributes: str = "") -> None:
        name = f"v{len(lines)}"
        taken = ", ".join(f"%{x}" for x in operands)
        lines.append(f"%{name} : {_type(size)} = onnx::{kind}{attributes}({taken})")
        made.append((name, size))

    for _ in range(draw(st.integers(2, 8))):
        name, size = draw(st.sampled_from(made[-3:]))
        choice = draw(st.integers(0, 5))
        if choice == 0:
            add(draw(st.sampled_from(UNARY)), [name], size)
        elif choice == 1 and size == shape:
            add(draw(st.sampled_from(["Softmax", "LogSoftmax"])), [name], shape, f"[axis={axis}]")
        elif choice == 2 and size == shape:
            add(f"Reduce{draw(st.sampled_from(['Sum', 'Mean', 'Max', 'Min', 'SumSquare']))}", [name, "axes"], kept)
        elif choice == 3:
            other = draw(st.sampled_from(made))
            size = [max(n) for n in zip(size, other[1])]
            add(draw(st.sampled_from(BINARY)), [name, other[0]], size)
        else:
            other = f"i{len(inputs)}"
            inputs[other] = [draw(st.sampled_from([n, 1])) for n in size][draw(st.integers(0, len(size))) :]
            add(draw(st.sampled_from(BINARY)), draw(st.permutations([name, other])), size)
    given_types = ", ".join(f"%{name} : {_type(size)}" for name, size in inputs.items())
    results = {made[-1][0], draw(st.sampled_from(made[1:]))[0]}
    body = "\n  ".join(lines)
    text = f"graph({given_types}):\n  {body}\n  return ({', '.join(f'%{name}' for name in sorted(results))})"
    rng = np.random.default_rng(0)
    feed = {name: rng.uniform(-1, 1, size).astype(np.float32) for name, size in inputs.items()}
    found = irc.compile(parse_graph(text), "fuse", backend=Native()).run(feed)
    wanted = irc.compile(parse_graph(text), "", backend="numpy").run(feed)
    for key, value in wanted.items():
        scale = np.max(np.abs(value), where=np.isfinite(value), initial=1)
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-4 * scale, err_msg=text)


def _type(size: list[int]) -> str:
    return f"Float({', '.join(map(str, size))})"


TORCH = typed_ir(
    "x, r: Float(6, 70); w: Float(70)",
    "a = aten.add(x, r, 1); n = aten.layer_norm(a, [70], w, None, 0.001, False); t = aten.tanh(n); "
    "s = aten.softmax(t, -1, None); y = aten.mul(s, r)",
    "y, t",
)

TORCH_IMAGES = ir("""
    x: Float(2, 6, 5, 7); w, v: Float(6) -> z
    e: float = prim.Constant(value=0.001); b: Float(2, 6, 5, 7) = batch_norm(x, w, v, w, v, False, e, e, False)
    y: Float(2, 6, 5, 7) = relu(b); m: Float(2, 6, 1, 1) = mean(y, [2, 3], True, None)
    s: Float(2, 6, 1, 1) = sigmoid(m); z: Float(2, 6, 5, 7) = mul(y, s)
""")


@pytest.mark.parametrize("text", [TORCH, TORCH_IMAGES], ids=["rows", "images"])
def test_groups_of_torch_lie_as_their_members_would(text: str) -> None:
    given = feeds(parse_graph(text))
    apart = {**given, "x": np.asfortranarray(given["x"])}
    native, plain = (irc.compile(parse_graph(text), backend=backend) for backend in (Native(), "numpy"))
    assert len(native.report.groups) == 1
    for now in (given, given, apart, apart, given):
        found, wanted = native.run(now), plain.run(now)
        assert native.counters.compiled == (now is given) or "batch_norm" in text  # whose result lies in order
        for key, value in wanted.items():
            assert found[key].strides == value.strides
            np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-6, err_msg=key)
