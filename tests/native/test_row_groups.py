"""Fused groups of pointwise operators and operators that reduce rows, beside the members run one by one on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples

pytest.importorskip("llvmlite")

import irc
from irc.ir import parse_graph
from irc.native.backend import Native

Array = np.ndarray[Any, Any]

GROUPS = {
    "residual, layer": """
graph(%x : Float(6, 70), %r : Float(6, 70), %b : Float(70), %s : Float(70)):
  %a : Float(6, 70) = onnx::Add(%x, %b)
  %h : Float(6, 70) = onnx::Add(%a, %r)
  %y : Float(6, 70) = onnx::LayerNormalization(%h, %s, %b)
  return (%y)
""",
    "the sum is a result, too": """
graph(%x : Float(6, 70), %r : Float(6, 70), %s : Float(70)):
  %h : Float(6, 70) = onnx::Add(%x, %r)
  %y : Float(6, 70) = onnx::RMSNormalization(%h, %s)
  %z : Float(6, 70) = onnx::Gelu(%y)
  return (%h, %z)
""",
    "mask, scale, softmax": """
graph(%x : Float(2, 3, 5, 40), %m : Float(2, 1, 1, 40), %s : Float()):
  %a : Float(2, 3, 5, 40) = onnx::Mul(%x, %s)
  %b : Float(2, 3, 5, 40) = onnx::Add(%a, %m)
  %y : Float(2, 3, 5, 40) = onnx::Softmax(%b)
  %z : Float(2, 3, 5, 40) = onnx::Mul(%y, %x)
  return (%z)
""",
    "softmax of columns": """
graph(%x : Float(30, 50), %y : Float(50)):
  %a : Float(30, 50) = onnx::Sub(%x, %y)
  %b : Float(30, 50) = onnx::Softmax[axis=0](%a)
  %c : Float(30, 50) = onnx::Log(%b)
  return (%b, %c)
""",
    "two normalisations": """
graph(%x : Float(6, 70), %s : Float(70), %b : Float(70)):
  %a : Float(6, 70) = onnx::LayerNormalization(%x, %s, %b)
  %c : Float(6, 70) = onnx::Tanh(%a)
  %y : Float(6, 70) = onnx::LayerNormalization(%c, %s, %b)
  %z : Float(6, 70) = onnx::Add(%y, %a)
  return (%z)
""",
    "by hand": """
graph(%x : Float(6, 70), %s : Float(70)):
  %axes : Long(1) = prim::Constant[value=tensor([-1])]()
  %e : Float() = prim::Constant[value=splat(0.001)]()
  %m : Float(6, 1) = onnx::ReduceMean(%x, %axes)
  %d : Float(6, 70) = onnx::Sub(%x, %m)
  %q : Float(6, 70) = onnx::Mul(%d, %d)
  %v : Float(6, 1) = onnx::ReduceMean(%q, %axes)
  %w : Float(6, 1) = onnx::Add(%v, %e)
  %r : Float(6, 1) = onnx::Sqrt(%w)
  %n : Float(6, 70) = onnx::Div(%d, %r)
  %y : Float(6, 70) = onnx::Mul(%n, %s)
  return (%y, %w)
""",
    "squeezed": """
graph(%x : Float(4, 6, 9), %y : Float(4, 6)):
  %axes : Long(1) = prim::Constant[value=tensor([2])]()
  %a : Float(4, 6, 9) = onnx::Exp(%x)
  %m : Float(4, 6) = onnx::ReduceSum[keepdims=0](%a, %axes)
  %l : Float(4, 6) = onnx::Log(%m)
  %z : Float(4, 6) = onnx::Mul(%l, %y)
  return (%z)
""",
    "middle axis, squeezed": """
graph(%x : Float(4, 6, 9), %y : Float(9)):
  %axes : Long(1) = prim::Constant[value=tensor([1])]()
  %a : Float(4, 6, 9) = onnx::Abs(%x)
  %m : Float(4, 9) = onnx::ReduceMax[keepdims=0](%a, %axes)
  %z : Float(4, 9) = onnx::Mul(%m, %y)
  return (%z)
""",
    "images": """
graph(%x : Float(2, 6, 5, 7), %s : Float(6), %r : Float(2, 6, 5, 7)):
  %a : Float(2, 6, 5, 7) = onnx::Add(%x, %r)
  %n : Float(2, 6, 5, 7) = onnx::GroupNormalization[num_groups=3](%a, %s, %s)
  %y : Float(2, 6, 5, 7) = onnx::HardSwish(%n)
  return (%y)
""",
    "batch, relu": """
graph(%x : Float(2, 6, 5, 7), %s : Float(6)):
  %a : Float(2, 6, 5, 7) = onnx::BatchNormalization(%x, %s, %s, %s, %s)
  %y : Float(2, 6, 5, 7) = onnx::Relu(%a)
  return (%y)
""",
}


def feeds(graph: Any) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        value.name: np.asarray(rng.uniform(0.5, 1.5, value.type.shape) - (value.name == "x"), np.float32)
        for value in graph.inputs
    }


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


@pytest.mark.parametrize("rows", [40, 4])
def test_code_tells_apart_what_varies_along_rows(rows: int) -> None:
    """Also where lanes lie across rows, and operands that do and do not vary are read alike."""
    x = np.random.default_rng(0).standard_normal((rows, 5)).astype(np.float32)
    for shape in ((), (5,), (rows, 1), (rows, 5), (1, 1), (1, 5)):
        text = f"""
graph(%x : Float({rows}, 5), %m : Float({str(shape).strip("(),")})):
  %a : Float({rows}, 5) = onnx::Mul(%x, %m)
  %y : Float({rows}, 5) = onnx::Softmax(%a)
  return (%y)
"""
        m = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        model = irc.compile(parse_graph(text), backend=Native())
        found = model.run({"x": x, "m": m})["y"]
        assert model.counters.compiled == 1
        wanted = irc.compile(parse_graph(text), "", backend="numpy").run({"x": x, "m": m})["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


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


TORCH = """graph(%x : Float(6, 70), %r : Float(6, 70), %w : Float(70)):
  %one : int = prim::Constant[value=1]()
  %axis : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %shape : int[] = prim::Constant[value=[70]]()
  %e : float = prim::Constant[value=0.001]()
  %no : bool = prim::Constant[value=False]()
  %a : Float(6, 70) = aten::add(%x, %r, %one)
  %n : Float(6, 70) = aten::layer_norm(%a, %shape, %w, %none, %e, %no)
  %t : Float(6, 70) = aten::tanh(%n)
  %s : Float(6, 70) = aten::softmax(%t, %axis, %none)
  %y : Float(6, 70) = aten::mul(%s, %r)
  return (%y, %t)
"""

TORCH_IMAGES = """graph(%x : Float(2, 6, 5, 7), %w : Float(6), %v : Float(6)):
  %three : int = prim::Constant[value=3]()
  %dims : int[] = prim::Constant[value=[2, 3]]()
  %yes : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant()
  %e : float = prim::Constant[value=0.001]()
  %no : bool = prim::Constant[value=False]()
  %b : Float(2, 6, 5, 7) = aten::batch_norm(%x, %w, %v, %w, %v, %no, %e, %e, %no)
  %y : Float(2, 6, 5, 7) = aten::relu(%b)
  %m : Float(2, 6, 1, 1) = aten::mean(%y, %dims, %yes, %none)
  %s : Float(2, 6, 1, 1) = aten::sigmoid(%m)
  %z : Float(2, 6, 5, 7) = aten::mul(%y, %s)
  return (%z)
"""


@pytest.mark.parametrize("text", [TORCH, TORCH_IMAGES], ids=["rows", "images"])
def test_groups_of_torch_of_small_floats(text: str) -> None:
    text = text.replace("Float(", "Half(").replace("aten::relu(%b)", "aten::add(%b, %b, %e)")
    given = {key: value.astype(np.float16) for key, value in feeds(parse_graph(text)).items()}
    native, plain = (irc.compile(parse_graph(text), backend=backend) for backend in (Native(), "numpy"))
    found, wanted = native.run(given), plain.run(given)
    assert native.counters.compiled == 1
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=5e-3, atol=5e-3, err_msg=key)


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


def test_groups_that_differ_in_the_axes_of_a_constant() -> None:
    """Such groups have the same operators, types and shapes, and yet no code in common."""
    x = np.arange(25, dtype=np.float32).reshape(5, 5)
    for axis in (0, 1, 0):
        text = f"""graph(%x : Float(5, 5)):
  %axes : Long(1) = prim::Constant[value=tensor([{axis}])]()
  %m : Float(*, *) = onnx::ReduceMean(%x, %axes)
  %y : Float(5, 5) = onnx::Sub(%x, %m)
  return (%y)"""
        for passes in ("", "fuse"):  # as operators by themselves, and as a group
            found = irc.compile(parse_graph(text), passes, backend=Native()).run({"x": x})
            np.testing.assert_allclose(found["y"], x - x.mean(axis, keepdims=True), rtol=1e-5)
