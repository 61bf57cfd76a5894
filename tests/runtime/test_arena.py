"""Results in planned memory: the same as without, in as little memory as may be, never seen from outside."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import parse_graph, parse_module
from irc.runtime import arena, array_memory, planned_steps
from irc.runtime.array_memory import ALIGNMENT, ArrayType, aligned
from irc.runtime.kernels import numerics
from irc.runtime.memory_plan import FormRecorder, MemoryPlan, Place, Planner, _pack
from irc.runtime.model import CompiledModel
from irc.runtime.report import Report
from tests.effort import Spy, Tune, examples
from tests.programs.generator import Program, dense, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.running import check_same, expected
from tests.runtime.helpers import PACKAGE, interrupted, observed_run

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(text: str, **options: Any) -> CompiledModel:
    return CompiledModel(parse_graph(text), **options)


def poison(model: CompiledModel) -> None:
    """Fill the memory between runs with NaNs: nobody may read what an earlier run left there."""
    for memory in model.runs._arenas:
        memory.memory[:] = 0xFF


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are held to what they promise of ``out``."""
    real = planned_steps.placed_step

    def placed_step(kernel: Any, ins: Any, outs: Any, dead: Any, directly: bool) -> Any:
        step = real(kernel, ins, outs, dead, directly)

        def run(frame: list[Any]) -> None:
            places, inputs = [frame[out] for out in outs], [frame[s] for s in ins]
            probes = tuple(map(np.empty_like, places))
            assert (kernel(*inputs, out=probes[0]) is probes[0]) if len(outs) == 1 else kernel(*inputs, outs=probes)
            step(frame)
            for out, place, probe in zip(outs, places, probes, strict=True):
                assert frame[out] is place
                np.testing.assert_array_equal(place, probe)

        return run

    monkeypatch.setattr(planned_steps, "placed_step", placed_step)


@pytest.mark.usefixtures("checked")
def test_halves_are_computed_by_kernels(spy: Spy) -> None:
    """Not by NumPy's functions, which take them one by one; results are the same."""
    taken = spy(numerics, "_blocks")
    model = model_of(
        """
    graph(%x : Half(64, 256), %y : Half(64, 256)):
      %a : Half(64, 256) = onnx::Sqrt(%x)
      %b : Half(64, 256) = onnx::Add(%a, %y)
      %c : Half(256, 64) = onnx::Transpose[perm=[1, 0]](%b)
      %d : Half(64, 64) = onnx::MatMul(%b, %c)
      return (%d)
    """,
        backend="numpy",
    )
    x, y = np.random.default_rng(0).standard_normal((2, 64, 256)).astype(np.float16)
    b = np.sqrt(x * x) + y
    for _ in range(3):
        (d,) = model.run({"x": x * x, "y": y}).values()
        np.testing.assert_array_equal(d, (b.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16))
    assert model.counters.planned >= 2
    assert taken.call_count >= 6


CHAIN = """
graph(%x : Float(64, 64), %w : Float(64, 64)):
  %a : Float(64, 64) = onnx::MatMul(%x, %w)
  %b : Float(64, 64) = onnx::Relu(%a)
  %c : Float(64, 64) = onnx::MatMul(%b, %w)
  %d : Float(64, 64) = onnx::Add(%c, %b)
  %e : Float(64, 64) = onnx::MatMul(%d, %w)
  return (%e)
"""


def chain(x: Any, w: Any) -> Any:
    b = np.maximum(x @ w, 0)
    return (b @ w + b) @ w


def test_from_the_second_run_on_nothing_is_allocated_but_outputs() -> None:
    model = model_of(CHAIN)
    feeds = {"x": f32(64, 64), "w": f32(64, 64)}
    expected = chain(**feeds)
    first = model.run(feeds)["e"]
    assert model.counters.planned == 0
    model.run(feeds)
    for _ in range(3):
        poison(model)
        tracemalloc.start()
        result = model.run(feeds)["e"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
        # a and b share a place, c and d another; e is the caller's.
        assert (model.counters.planned, model.counters.in_place) == (4, 2)
        assert model.counters.arena_bytes == model.counters.arena_bound == 2 * 64 * 64 * 4
        assert peak < 2 * result.nbytes
    (plan,) = model.runs.plans()
    assert plan.bound == plan.nbytes
    np.testing.assert_array_equal(first, result)


def test_what_equations_and_displaced_windows_make_is_planned_and_what_follows() -> None:
    model = model_of("""
    graph(%x : Float(1, 2, 6, 6), %w : Float(4, 2, 3, 3), %offset : Float(1, 18, 4, 4), %bias : Float(4)):
      %a : Tensor = onnx::DeformConv[since_version=19](%x, %w, %offset, %bias)
      %b : Tensor = onnx::Softmax(%a)
      %c : Tensor = onnx::Einsum[equation="nchw->nwhc"](%b)
      %d : Tensor = onnx::Softmax(%c)
      %e : Tensor = onnx::Einsum[equation="nwhc,nwhd->ncd"](%d, %c)
      %f : Tensor = onnx::Softmax(%e)
      return (%f)
    """)
    feeds = {"x": f32(1, 2, 6, 6), "w": f32(4, 2, 3, 3), "offset": f32(1, 18, 4, 4), "bias": f32(4)}
    first = model.run(feeds)["f"]
    model.run(feeds)
    poison(model)
    np.testing.assert_array_equal(model.run(feeds)["f"], first)
    assert model.counters.planned == 5


def test_outputs_are_never_planned_however_they_are_seen() -> None:
    model = model_of("""
    graph(%x : Float(64, 64), %shape : Long(1)):
      %a : Float(64, 64) = onnx::Neg(%x)
      %t : Float(64, 64) = onnx::Transpose(%a)
      %v : Float = onnx::Reshape(%t, %shape)
      %b : Float(64, 64) = onnx::Exp(%a)
      %d : Float(64, 64) = onnx::MatMul(%b, %b)
      %c : Float(64, 64) = onnx::Add(%d, %a)
      %s : Tensor[] = onnx::SequenceConstruct(%c)
      return (%v, %s)
    """)
    feeds = {"x": f32(64, 64), "shape": np.array([-1])}
    kept = [model.run(feeds) for _ in range(3)]
    assert model.counters.planned == 2  # b and d
    model.run({"x": f32(64, 64), "shape": np.array([-1])})
    poison(model)
    x = feeds["x"]
    for results in kept:
        np.testing.assert_array_equal(results["v"], -x.T.reshape(-1))
        np.testing.assert_allclose(results["s"][0], np.exp(-x) @ np.exp(-x) - x, rtol=1e-5)


def test_shapes_that_contents_decide_are_not_planned() -> None:
    model = model_of("""
    graph(%x : Float, %n : Long(2)):
      %y : Float = onnx::Reshape(%x, %n)
      %a : Float = onnx::Neg(%y)
      %b : Float = onnx::Exp(%a)
      %s : Float = onnx::ReduceSum[keepdims=0](%b)
      %c : Float = onnx::Neg(%x)
      %d : Float = onnx::MatMul(%c, %c)
      %f : Float = onnx::MatMul(%d, %d)
      %e : Float = onnx::Add(%f, %s)
      return (%e)
    """)
    x = f32(16, 16)
    for shape in ([-1, 4], [4, -1], [256, 1], [16, 16]):
        got = model.run({"x": x, "n": np.array(shape)})["e"]
        np.testing.assert_allclose(got, x @ x @ x @ x + np.exp(-x).sum(), rtol=1e-4)
    assert model.counters.planned == 3  # c, d and f


def test_shapes_that_are_computed_from_shapes_are_planned() -> None:
    model = model_of("""
    graph(%x : Float):
      %s : Long(2) = onnx::Shape(%x)
      %i : Long(2) = prim::Constant[value=tensor([1, 0])]()
      %r : Long(2) = onnx::Gather(%s, %i)
      %y : Float = onnx::Reshape(%x, %r)
      %a : Float = onnx::Exp(%y)
      %b : Float = onnx::MatMul(%x, %a)
      %d : Float = onnx::MatMul(%b, %b)
      %c : Float = onnx::Neg(%d)
      return (%c)
    """)
    for rows in (20, 30, 20, 30):
        x = f32(rows, 40)
        b = x @ np.exp(x.reshape(40, rows))
        np.testing.assert_allclose(model.run({"x": x})["c"], -(b @ b), rtol=1e-3, atol=1e-2)
    assert model.counters.planned == 3  # a, b and d


def test_shapes_that_a_group_computes_and_something_then_changes_are_not_planned() -> None:
    model = model_of("""
    graph(%x : Float(*), %k : Long(1)):
      %s : Long(1) = prim::FusionGroup_0(%x)
      %w : Long(1) = onnx::Add_(%s, %k)
      %c : Float(1) = prim::Constant[value=tensor<Float(1)>([1.])]()
      %e : Float(*) = onnx::Expand(%c, %s)
      %f : Float(*) = onnx::Neg(%e)
      %g : Float(*) = onnx::Exp(%f)
      return (%g)
    with prim::FusionGroup_0 = graph(%x : Float(*)):
      %s : Long(1) = onnx::Shape(%x)
      %n : Long(1) = onnx::Neg(%s)
      %m : Long(1) = onnx::Neg(%n)
      return (%m)
    """)
    for more in (0, 0, 0, 3, 5):
        assert model.run({"x": f32(4), "k": np.array([more])})["g"].shape == (4 + more,)


WRITTEN_SHAPES = """
graph(%x : Float(2, 3), %k : Long(1)):
  %s : Long(2) = onnx::Shape(%x)
  %one : int = prim::Constant[value=1]()
  %w : Long(2) = aten::add_(%s, %k, %one)
  %m : Long(2) = TAKES(%s)
  %r : Long(2) = onnx::Neg(%m)
  return (%r)
"""
TAKING = {
    "a group": (
        "prim::FusionGroup_0",
        """
with prim::FusionGroup_0 = graph(%s : Long(2)):
  %m : Long(2) = onnx::Mul(%s, %s)
  %n : Long(2) = onnx::Abs(%m)
  return (%n)
""",
    ),
    "an operator": ("onnx::Abs", ""),
    "a view": ("onnx::Identity", ""),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", TAKING)
def test_shapes_that_something_writes_are_not_kept(name: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    kind, group = TAKING[name]
    model = irc.compile(parse_graph(WRITTEN_SHAPES.replace("TAKES", kind) + group), passes="none", backend=backend)
    for k in range(4):
        found = np.array([2 + k, 3 + k])
        wanted = found * found if group else found
        np.testing.assert_array_equal(model.run({"x": f32(2, 3), "k": np.array([k])})["r"], -wanted)


def test_a_donated_input_may_be_a_place() -> None:
    model = model_of("""
    graph(%x : Float(64, 64), %w : Float(64, 64)):
      %a : Float(64, 64) = onnx::Relu(%x)
      %b : Float(64, 64) = onnx::Neg(%a)
      %c : Float(64, 64) = onnx::MatMul(%b, %w)
      return (%c)
    """)
    w = f32(64, 64)
    for donate in ([], ["x"], [], ["x"], ["x"], []):
        x = f32(64, 64)
        expected, before = -np.maximum(x, 0) @ w, x.copy()
        np.testing.assert_allclose(model.run({"x": x, "w": w}, donate=donate)["c"], expected, rtol=1e-5, atol=1e-5)
        assert donate or (x == before).all()
        poison(model)
    sizes = {plan.nbytes for plan in model.runs.plans()}
    assert sizes == {0, 64 * 64 * 4}  # with x donated, a and b lie in its memory


def test_an_output_may_be_made_over_what_was_made_over_a_donated_input() -> None:
    model = model_of("""
    graph(%x : Float(64, 64), %w : Float(64, 64)):
      %a : Float(64, 64) = onnx::Relu(%x)
      %b : Float(64, 64) = onnx::MatMul(%a, %w)
      %c : Float(64, 64) = onnx::Neg(%a)
      %d : Float(64, 64) = onnx::Exp(%b)
      return (%c, %d)
    """)
    w = f32(64, 64)
    for _ in range(4):
        x = f32(64, 64)
        relu, where = np.maximum(x, 0), x.ctypes.data
        found = model.run({"x": x, "w": w}, donate=["x"])
        np.testing.assert_array_equal(found["c"], -relu)
        np.testing.assert_allclose(found["d"], np.exp(relu @ w), rtol=1e-4)
        assert found["c"].ctypes.data == where
        poison(model)


IN_A_BRANCH = """
graph(%x : Float(64, 64), %w : Float(64, 64), %u : Float(1, 64), %at : Long(1, 1), %c : Bool()):
  %first : Float(64, 64) = onnx::ScatterND[reduction="add"](%x, %at, %u)
  %y : Float(64, 64) = prim::If(%c)
    block0():
      %a : Float(64, 64) = onnx::ScatterND(%first, %at, %u)
      -> (%a)
    block1():
      %b : Float(64, 64) = onnx::ScatterND[reduction="max"](%first, %at, %u)
      -> (%b)
  return (%y)
"""

AT_A_TAIL = """
graph(%x : Float(64, 64), %w : Float(64, 64), %u : Float(1, 64), %at : Long(1, 1), %c : Bool()):
  %a : Float(64, 64) = onnx::Relu(%x)
  %b : Float(64, 64) = onnx::MatMul(%a, %w)
  %c1 : Float(64, 64) = onnx::Add(%a, %b)
  %c2 : Float(64, 64) = onnx::Mul(%c1, %w)
  %y : Float(64, 64) = onnx::Abs(%c2)
  return (%y)
"""


@pytest.mark.parametrize("text", [IN_A_BRANCH, AT_A_TAIL])
def test_a_donated_input_leaves_in_planned_runs_as_in_the_first(text: str) -> None:
    model = irc.compile(parse_graph(text), backend="numpy")  # whose steps write in place
    plain = irc.compile(parse_graph(text), "none")
    given = {"w": f32(64, 64), "u": f32(1, 64), "at": np.array([[3]]), "c": np.array(True)}
    for _ in range(4):
        x = f32(64, 64)
        feeds = {name: value for name, value in {**given, "x": x}.items() if name in {a.name for a in model.inputs}}
        expected, where = plain.run(feeds)["y"], x.ctypes.data
        found = model.run(feeds, donate=["x"])["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert found.ctypes.data == where
        poison(model)


def test_what_a_branch_or_a_loop_still_reads_keeps_its_place() -> None:
    model = model_of("""
    graph(%x : Float(32, 32), %c : Bool(), %n : Long()):
      %a : Float(32, 32) = onnx::Neg(%x)
      %t : Bool() = prim::Constant[value=tensor([True])]()
      %b : Float(32, 32) = onnx::Exp(%x)
      %l : Float(32, 32) = onnx::Loop(%n, %t, %b)
        block0(%i : Long(), %go : Bool(), %p : Float(32, 32)):
          %q : Float(32, 32) = onnx::Add(%p, %a)
          -> (%go, %q)
      %y : Float(32, 32) = prim::If(%c)
        block0():
          %u : Float(32, 32) = onnx::Relu(%a)
          -> (%u)
        block1():
          -> (%l)
      %z : Float(32, 32) = onnx::MatMul(%y, %x)
      return (%z)
    """)
    x = f32(32, 32)
    for c, n in [(True, 2), (False, 2), (False, 0), (True, 0), (False, 3)]:
        poison(model)
        y = np.maximum(-x, 0) if c else np.exp(x) - n * x
        got = model.run({"x": x, "c": np.array(c), "n": np.array(n)})["z"]
        np.testing.assert_allclose(got, y @ x, rtol=1e-3, atol=1e-3)
    assert model.counters.planned == 3  # a, b and u


def test_what_a_loop_returns_besides_keeps_its_place() -> None:
    """Nothing in the loop takes it as an operand: the loop stacks it."""
    model = model_of("""
    graph(%x : Float(32, 32), %n : Long()):
      %t : Bool() = prim::Constant[value=tensor([True])]()
      %a : Float(32, 32) = onnx::MatMul(%x, %x)
      %b : Float(32, 32) = onnx::MatMul(%x, %a)
      %c : Float(32, 32) = onnx::MatMul(%x, %b)
      %v : Float(32, 32), %s : Float(*, 32, 32) = onnx::Loop(%n, %t, %c)
        block0(%i : Long(), %go : Bool(), %p : Float(32, 32)):
          %q : Float(32, 32) = onnx::Neg(%p)
          -> (%go, %q, %a)
      %d : Float(32, 32) = onnx::MatMul(%v, %x)
      return (%d, %s)
    """)
    x = f32(32, 32)
    for n in (1, 2, 3, 3):
        poison(model)
        got = model.run({"x": x, "n": np.array(n)})
        np.testing.assert_allclose(got["s"], np.stack([x @ x] * n), rtol=1e-3, atol=1e-3)
    assert model.counters.planned == 3


def test_what_an_operator_reads_in_another_order_too_is_not_written_over() -> None:
    model = model_of("""
    graph(%x : Float(32, 32), %w : Float(32, 32)):
      %a : Float(32, 32) = onnx::MatMul(%x, %w)
      %b : Float(32, 32) = onnx::Transpose(%a)
      %s : Float(32, 32) = onnx::Sum(%a, %x, %b)
      %y : Float(32, 32) = onnx::MatMul(%s, %w)
      return (%y)
    """)
    x, w = f32(32, 32), f32(32, 32)
    a = x @ w
    for _ in range(3):
        poison(model)
        np.testing.assert_allclose(model.run({"x": x, "w": w})["y"], (a + x + a.T) @ w, rtol=1e-3, atol=1e-3)
    assert model.counters.planned == 2
    assert model.counters.in_place == 0


@pytest.mark.parametrize("size", [8, 400])
def test_a_place_that_a_group_has_written_over_is_not_taken_again(size: int) -> None:
    """The second operator could not take its own operand, which it reads twice."""
    model = model_of(
        """
    graph(%x : Float(N, N), %w : Float(N, N)):
      %a : Float(N, N) = onnx::MatMul(%x, %w)
      %b : Float(N, N) = onnx::MatMul(%w, %x)
      %r : Float(N, N), %s : Float(N, N) = prim::FusionGroup_0(%a, %b)
      %y : Float(N, N) = onnx::MatMul(%r, %s)
      return (%y)
    with prim::FusionGroup_0 = graph(%a : Float(N, N), %b : Float(N, N)):
      %r : Float(N, N) = onnx::Neg(%a)
      %s : Float(N, N) = onnx::Mul(%b, %b)
      return (%r, %s)
    """.replace("N, N", f"{size}, {size}")
    )
    x, w = f32(size, size), f32(size, size)
    for _ in range(3):
        poison(model)
        expected = -(x @ w) @ (w @ x) ** 2
        np.testing.assert_allclose(model.run({"x": x, "w": w})["y"], expected, rtol=1e-2, atol=size)


def test_a_donated_input_of_which_an_output_is_a_view_is_no_place() -> None:
    model = model_of("""
    graph(%x : Float(32, 32), %w : Float(32, 32)):
      %to : Long(1) = prim::Constant[value=tensor([-1])]()
      %y : Float(1024) = onnx::Reshape(%x, %to)
      %a : Float(32, 32) = onnx::Neg(%x)
      %z : Float(32, 32) = onnx::MatMul(%a, %w)
      return (%y, %z)
    """)
    w = f32(32, 32)
    for _ in range(3):
        x = f32(32, 32)
        y, z = x.reshape(-1).copy(), -x @ w
        got = model.run({"x": x, "w": w}, donate=["x"])
        np.testing.assert_array_equal(got["y"], y)
        np.testing.assert_allclose(got["z"], z, rtol=1e-3, atol=1e-3)
        poison(model)


def test_shapes_that_something_changes_after_they_are_computed_are_not_planned() -> None:
    model = model_of("""
    graph(%x : Float(2), %k : Long(1)):
      %s : Long(1) = onnx::Shape(%x)
      %u : Long(1) = onnx::Add_(%s, %k)
      %one : Float(1) = prim::Constant[value=tensor([1.])]()
      %e : Float(*) = onnx::Expand(%one, %s)
      %a : Float(*) = onnx::Exp(%e)
      %y : Float() = onnx::ReduceSum[keepdims=0](%a)
      return (%y)
    """)
    for k in (0, 0, 3, 1):
        got = model.run({"x": f32(2), "k": np.array([k])})["y"]
        np.testing.assert_allclose(got, np.float32((2 + k) * np.e), rtol=1e-5)
    assert model.counters.planned == 0


def test_strings_have_no_places() -> None:
    model = model_of("""
    graph(%c : Bool(2), %a : String(2), %b : String(2), %x : Float(2)):
      %s : String(2) = onnx::Where(%c, %a, %b)
      %e : Bool(2) = onnx::Equal(%s, %b)
      %n : Float(2) = onnx::Exp(%x)
      %y : Float(2) = onnx::Where(%e, %n, %x)
      %z : Float(1) = onnx::ReduceSum[keepdims=1](%y)
      return (%z)
    """)
    feeds = {"c": np.array([True, False]), "a": np.array(["p", "q"], object), "b": np.array(["r", "s"], object)}
    for _ in range(3):
        x = f32(2)
        got = model.run({**feeds, "x": x})["z"]
        np.testing.assert_allclose(got, [x[0] + np.exp(x[1])], rtol=1e-6)
    assert model.counters.planned == 3  # e, n, and y over n


def test_groups_of_equal_graphs_have_places_of_their_own() -> None:
    graph = parse_graph("""
    graph(%x : Float(32, 32), %w : Float(32, 32)):
      %a : Float(32, 32) = prim::FusionGroup_0(%x)
      %b : Float(32, 32) = prim::FusionGroup_1(%w)
      %y : Float(32, 32) = onnx::MatMul(%a, %b)
      return (%y)
    with prim::FusionGroup_0 = graph(%m : Float(32, 32)):
      %p : Float(32, 32) = onnx::MatMul(%m, %m)
      %q : Float(32, 32) = onnx::Neg(%p)
      return (%q)
    with prim::FusionGroup_1 = graph(%m : Float(32, 32)):
      %p : Float(32, 32) = onnx::MatMul(%m, %m)
      %q : Float(32, 32) = onnx::Neg(%p)
      return (%q)
    """)
    model = CompiledModel(graph)
    x, w = f32(32, 32), f32(32, 32)
    for _ in range(3):
        poison(model)
        got = model.run({"x": x, "w": w})["y"]
        np.testing.assert_allclose(got, (x @ x) @ (w @ w), rtol=1e-3, atol=1e-2)


def test_shapes_that_are_drawn_at_random_are_not_planned() -> None:
    model = model_of("""
    graph(%x : Float(2)):
      %c : Float(8) = prim::Constant[value=tensor([2., 2., 2., 2., 2., 2., 2., 2.])]()
      %half : Float() = prim::Constant[value=tensor<Float()>([0.5])]()
      %yes : Bool() = prim::Constant[value=tensor<Bool()>([True])]()
      %d : Float(8) = onnx::Dropout(%c, %half, %yes)
      %i : Long(8) = onnx::Cast[to=7](%d)
      %s : Long(1) = onnx::ReduceSum[keepdims=1](%i)
      %one : Float(1) = prim::Constant[value=tensor([1.])]()
      %e : Float(*) = onnx::Expand(%one, %s)
      %a : Float(*) = onnx::Exp(%e)
      %y : Float() = onnx::ReduceSum[keepdims=0](%a)
      return (%s, %y)
    """)
    sizes: set[int] = set()
    for _ in range(20):
        got = model.run({"x": f32(2)})
        sizes.add(int(got["s"][0]))
        np.testing.assert_allclose(got["y"], got["s"][0] * np.e, rtol=1e-5)
    assert len(sizes) > 1


def test_a_donated_place_is_not_kept_after_the_run() -> None:
    model = model_of("""
    graph(%x : Float(64, 64), %w : Float(64, 64)):
      %a : Float(64, 64) = onnx::Neg(%x)
      %y : Float(64, 64) = onnx::MatMul(%a, %w)
      return (%y)
    """)
    w = f32(64, 64)
    for _ in range(3):
        x = f32(64, 64)
        alive = weakref.ref(x)
        model.run({"x": x, "w": w}, donate=["x"])
        del x
        assert alive() is None
    assert model.counters.planned == 1
    assert model.counters.arena_bytes == 0


def test_what_is_scattered_is_not_written_over() -> None:
    """Only what it is scattered into may be: that is needed later here."""
    model = model_of("""
    graph(%x : Float(8, 8), %w : Float(8, 8), %i : Long(8, 8)):
      %a : Float(8, 8) = onnx::MatMul(%x, %w)
      %u : Float(8, 8) = onnx::MatMul(%w, %x)
      %s : Float(8, 8) = onnx::ScatterElements[axis=0](%a, %i, %u)
      %y : Float(8, 8) = onnx::MatMul(%s, %a)
      return (%y)
    """)
    x, w = f32(8, 8), f32(8, 8)
    i = np.stack([RNG.permutation(8) for _ in range(8)], 1)
    i[0] = i[1]  # so that something stays
    for _ in range(3):
        poison(model)
        s = x @ w
        a = s.copy()
        for row in range(8):
            s[i[row], np.arange(8)] = (w @ x)[row]
        np.testing.assert_allclose(model.run({"x": x, "w": w, "i": i})["y"], s @ a, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [8, 400])
def test_groups_end_in_places_too(size: int) -> None:
    text = """
    graph(%x : Float(N, N), %w : Float(N, N)):
      %m : Float(N, N) = onnx::MatMul(%x, %w)
      %a : Float(N, N), %b : Float(N, N) = prim::FusionGroup_0(%m, %x)
      %c : Float(N, N) = onnx::MatMul(%a, %b)
      %d : Float(N, N) = prim::FusionGroup_1(%c, %a)
      %e : Float(N, N) = onnx::MatMul(%d, %w)
      return (%e)
    with prim::FusionGroup_0 = graph(%m : Float(N, N), %x : Float(N, N)):
      %p : Float(N, N) = onnx::Neg(%m)
      %q : Float(N, N) = onnx::Relu(%p)
      %r : Float(N, N) = onnx::Add(%q, %x)
      %s : Float(N, N) = onnx::Mul(%m, %x)
      return (%r, %s)
    with prim::FusionGroup_1 = graph(%c : Float(N, N), %a : Float(N, N)):
      %g : Float(N, N) = onnx::MatMul(%c, %a)
      %h : Float(N, N) = onnx::Abs(%g)
      %k : Float(N, N) = onnx::Sqrt(%h)
      return (%k)
    """.replace("N, N", f"{size}, {size}")
    model = CompiledModel(parse_graph(text), backend="numpy")  # members are steps
    x, w = f32(size, size), f32(size, size)
    m = x @ w
    a, b = np.maximum(-m, 0) + x, m * x
    expected = np.sqrt(np.abs(a @ b @ a)) @ w
    for _ in range(4):
        poison(model)
        got = model.run({"x": x, "w": w})["e"]
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-2 * size)
    assert model.counters.planned >= 6
    (plan,) = model.runs.plans()
    assert plan.nbytes <= 4 * size * size * 4


@pytest.fixture
def made(spy: Spy) -> list[MemoryPlan]:
    """The memory plans that runs have made."""
    return spy(Planner, "plan").results


def in_turn(model: CompiledModel, sizes: Iterable[int]) -> int:
    """Run CHAIN with matrices of each of ``sizes``; how many of the runs were planned."""
    planned = 0
    for n in sizes:
        x, w = f32(n, n), f32(n, n)
        np.testing.assert_allclose(model.run({"x": x, "w": w})["e"], chain(x, w), rtol=1e-3, atol=1e-2)
        planned += model.counters.planned == 4
        poison(model)
    return planned


def test_twenty_lengths_in_turn_are_all_planned(made: list[MemoryPlan]) -> None:
    model = model_of(CHAIN.replace("64, 64", "n, n"))
    sizes = [*range(16, 56, 2)]
    rounds = [in_turn(model, sizes) for _ in range(6)]
    assert rounds == [0, arena.LEAST_PLANS, 20, 20, 20, 20]
    assert len(made) == 20
    (memory,) = model.runs._arenas
    assert len(memory.memory) == max(plan.nbytes for plan in made)
    for n in sizes:
        assert model.profile({"x": f32(n, n), "w": f32(n, n)}).allocations == 1  # the output


def test_plans_are_bounded_and_arenas_shared(tune: Tune, made: list[MemoryPlan]) -> None:
    """Of more kinds in turn than there is room for, some stay planned, and no plan is made in vain."""
    tune("irc.runtime.arena.BUDGET", 0)
    model = model_of(CHAIN.replace("64, 64", "n, n"))
    sizes = [*range(16, 16 + 3 * arena.LEAST_PLANS)]
    assert [in_turn(model, sizes) for _ in range(12)] == [0] + [arena.LEAST_PLANS] * 11
    assert len(made) == len(model.runs._plans) == len(model.runs.plans()) == arena.LEAST_PLANS
    assert len(model.runs._arenas) == 1
    for n in (20, 20, 20):
        in_turn(model, [n])
    assert model.counters.planned == 4


def test_five_hundred_lengths_take_no_more_than_there_is_room_for(tune: Tune, made: list[MemoryPlan]) -> None:
    tune("irc.runtime.arena.BUDGET", 200_000)
    text = CHAIN.replace("%x : Float(64, 64)", "%x : Float(n, 4)").replace("%w : Float(64, 64)", "%w : Float(4, 4)")
    model = model_of(text.replace("Float(64, 64)", "Float(n, 4)"))
    w = f32(4, 4)
    rounds: list[int] = []
    for _ in range(4):
        rounds.append(0)
        for n in range(1, 501):
            model.run({"x": f32(n, 4), "w": w})
            rounds[-1] += model.counters.planned == 4
    runs = model.runs
    assert rounds[0] == 0 and 30 < rounds[2] == rounds[3] < 100
    assert len(made) == len(runs._plans) == rounds[3]
    assert len(runs._arenas) == 1
    assert len(runs._arenas[0].memory) == max(plan.nbytes for plan in runs.plans())


def test_plans_may_take_as_much_as_the_arena(tune: Tune) -> None:
    tune("irc.runtime.arena.BUDGET", 0)
    model = model_of(CHAIN.replace("64, 64", "n, n"))
    for _ in range(3):
        in_turn(model, [300])
    sizes = range(16, 16 + 2 * arena.LEAST_PLANS)
    assert [in_turn(model, sizes) for _ in range(3)][-1] == 2 * arena.LEAST_PLANS


def test_there_is_no_smaller_arena_while_a_larger_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []

    def aligned_bytes(nbytes: int) -> Any:
        assert not any(memory() is not None for memory in made)
        memory = array_memory.aligned_bytes(nbytes)
        made.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr(arena, "aligned_bytes", aligned_bytes)
    model = model_of(CHAIN.replace("64, 64", "n, n"))
    for _ in range(3):
        in_turn(model, [8, 16, 32])
    assert len(made) == 3


def test_what_plans_take_is_counted_rightly() -> None:
    """By bytes that are measured: what 26 plans are counted for is about what they take."""
    lines = [f"%v{i + 1} : Float(n, n) = onnx::{'MatMul' if i % 3 else 'Mul'}(%v{i}, %v0)" for i in range(60)]
    text = "\n".join(("graph(%v0 : Float(n, n)):", *lines, "return (%v60)"))
    model = model_of(text)
    kinds = model.runs._plans
    feeds = [{"v0": np.ones((n, n), np.float32)} for n in range(1, 26)]
    for _ in range(3):
        model.run({"v0": np.ones((30, 30), np.float32)})
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0], kinds._spent
    for _ in range(4):
        for some in feeds:
            model.run(some)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before[0]
    tracemalloc.stop()
    assert len(model.runs.plans()) == 26
    assert 0.7 * taken < kinds._spent - before[1] < 1.3 * taken


def test_kinds_without_an_end_are_not_all_remembered(made: list[MemoryPlan]) -> None:
    model = model_of(CHAIN.replace("64, 64", "n, 4").replace("%w : Float(n, 4)", "%w : Float(4, 4)"))
    for n in range(1, 200):
        model.run({"x": f32(n, 4), "w": f32(4, 4)})
    assert len(model.runs._plans) <= arena.LEAST_PLANS
    assert model.runs.plans() == made == []


def test_runs_at_once_have_arenas_of_their_own() -> None:
    model = model_of(CHAIN)
    w = f32(64, 64)
    inputs = [f32(64, 64) for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: model.run({"x": x, "w": w})["e"], inputs))
    for x, got in zip(inputs, results):
        np.testing.assert_allclose(got, chain(x, w), rtol=1e-3, atol=1e-2)
    assert 1 <= len(model.runs._arenas) <= 4


def test_a_run_that_fails_leaves_the_model_usable() -> None:
    model = model_of(CHAIN.replace("%w : Float(64, 64)", "%w : Float(m, n)").replace("64, 64", "n, n"))
    x, w = f32(64, 64), f32(64, 64)
    for _ in range(3):
        model.run({"x": x, "w": w})
        for _ in range(2):
            with pytest.raises(irc.Error, match="MatMul"):
                model.run({"x": x, "w": f32(3, 64)})
    np.testing.assert_allclose(model.run({"x": x, "w": w})["e"], chain(x, w), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("size", [2, 300])
def test_results_beside_a_donated_place_are_not_written_over_it(size: int) -> None:
    model = model_of(
        """
    graph(%x : Float(N, N)):
      %y : Float(N, N), %z : Float(N, N) = prim::FusionGroup_0(%x)
      %t : Float(N, N) = onnx::Sinh(%z)
      return (%y, %t)
    with prim::FusionGroup_0 = graph(%x : Float(N, N)):
      %y : Float(N, N) = onnx::Neg(%x)
      %a : Float(N, N) = onnx::Abs(%y)
      %z : Float(N, N) = onnx::Sqrt(%a)
      return (%y, %z)
    """.replace("N, N", f"{size}, {size}")
    )
    for _ in range(3):
        x = f32(size, size)
        y, t = -x, np.sinh(np.sqrt(np.abs(x)))
        got = model.run({"x": x}, donate=["x"])
        np.testing.assert_array_equal(got["y"], y)
        np.testing.assert_allclose(got["t"], t, rtol=1e-5)


@pytest.mark.parametrize("earlier", [0, 3])
def test_a_donated_place_is_not_what_other_results_are_made_over(earlier: int) -> None:
    """Nor after earlier runs that were given nothing."""
    model = model_of("""
    graph(%u : Float(300, 300), %x : Float(300, 300)):
      %w : Float(300, 300) = onnx::Trilu(%u)
      %y : Float(300, 300), %z : Float(300, 300) = prim::FusionGroup_0(%w, %x)
      %t : Float(300, 300) = onnx::MatMul(%z, %z)
      return (%y, %t)
    with prim::FusionGroup_0 = graph(%w : Float(300, 300), %x : Float(300, 300)):
      %a : Float(300, 300) = onnx::Add(%w, %x)
      %z : Float(300, 300) = onnx::Tanh(%a)
      %y : Float(300, 300) = onnx::Neg(%a)
      return (%y, %z)
    """)
    for donate in [*[[]] * earlier, *[["x"]] * 3]:
        u, x = f32(300, 300), f32(300, 300)
        a = np.triu(u) + x
        got = model.run({"u": u, "x": x}, donate=donate)
        np.testing.assert_array_equal(got["y"], -a)
        np.testing.assert_allclose(got["t"], np.tanh(a) @ np.tanh(a), rtol=1e-3, atol=1e-3)


POINTWISE = {"Neg": 1, "Abs": 1, "Relu": 1, "Round": 1, "Add": 2, "Sub": 2, "Max": 2}


@examples(150)
@given(st.data())
def test_donated_runs_compute_what_others_do(data: st.DataObject) -> None:
    """Chains of pointwise operators in groups, between others, of which early results are returned too."""
    names, lines = ["x", "y"], []
    for i in range(data.draw(st.integers(3, 12))):
        kind = data.draw(st.sampled_from([*POINTWISE, *POINTWISE, "Transpose", "MatMul"]))
        latest = st.integers(0, min(3, len(names) - 1))
        ins = [names[-1 - data.draw(latest)] for _ in range(2 if kind == "MatMul" else POINTWISE.get(kind, 1))]
        names.append(f"v{i}")
        lines.append(f"%v{i} : Float(2, 2) = onnx::{kind}({', '.join('%' + name for name in ins)})")
    returned = data.draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    text = "graph(%x : Float(2, 2), %y : Float(2, 2)):\n{}\nreturn ({})"
    graph = parse_graph(text.format("\n".join(lines), ", ".join("%" + name for name in returned)))
    wanted = CompiledModel(graph)
    model = irc.compile(graph.copy())
    donate = data.draw(st.sets(st.sampled_from("xy"), min_size=1))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        feeds = {name: rng.integers(-3, 3, (2, 2)).astype(np.float32) for name in "xy"}
        expected = wanted.run(feeds)
        got = model.run(feeds, donate=donate)
        poison(model)
        for name, want in expected.items():
            np.testing.assert_array_equal(got[name], want)


@pytest.mark.parametrize("passes", ["none", "default"])
def test_a_report_knows_the_arena_if_all_shapes_are_known(passes: str) -> None:
    named = CHAIN.replace("64, 64", "n, 64", 1)
    assert named != CHAIN
    for text, sizes in ((CHAIN, {}), (named, {"n": 64})):
        model = irc.compile(parse_module(text), passes=passes, sizes=sizes)
        feeds = {"x": f32(64, 64), "w": f32(64, 64)}
        for _ in range(2):
            model.run(feeds)
        memory = model.report.memory
        assert memory.arena == model.counters.arena_bytes == 2 * 64 * 64 * 4
        assert memory.bound == model.counters.arena_bound == 2 * 64 * 64 * 4
        assert "planned 32.8 KB" in str(model.report)
        assert Report.from_dict(model.report.to_dict()).memory == memory
    memory = irc.compile(parse_module(named), passes=passes).report.memory
    assert (memory.arena, memory.bound) == (None, None)


def test_what_is_too_large_for_any_run_has_no_arena() -> None:
    text = """
    graph(%x : Float(1)):
      %n : Long(1) = prim::Constant[value=tensor<Long(1)>([4611686018427387904])]()
      %y : Float(4611686018427387904) = onnx::Expand(%x, %n)
      %z : Float(4611686018427387904) = onnx::Softmax(%y)
      return (%z)
    """
    assert irc.compile(parse_module(text), passes="none").report.memory.arena is None


@pytest.mark.parametrize(
    ("runs", "files"), [(0, PACKAGE), (1, "arena.py"), (2, PACKAGE)], ids=["first", "second", "third"]
)
def test_a_run_that_is_interrupted_leaves_the_model_usable(runs: int, files: str) -> None:
    """Wherever that is: in the run that is recorded, the one before which memory is planned, or a later one."""
    graph = parse_graph(CHAIN)
    feeds = {"x": f32(64, 64), "w": f32(64, 64)}
    expected = CompiledModel(graph).run(feeds)["e"]
    for at in range(1, 10_000):
        model = CompiledModel(graph)
        for _ in range(runs):
            model.run(feeds)
        stopped = interrupted(lambda: model.run(feeds), at, files)  # noqa: B023  # called at once
        for _ in range(3):
            np.testing.assert_array_equal(model.run(feeds)["e"], expected)
        if not stopped:
            break
    assert 10 < at < 9_999


@pytest.mark.usefixtures("checked")
@examples(100)
@given(programs() | dense, st.just([]) | cuts)
def test_random_programs_compute_the_same_in_planned_memory(program: Program, groups: list[Cut]) -> None:
    """Other inputs in each run, so that branches go other ways than when memory was planned."""
    regroup(program.module, groups)
    model = CompiledModel(program.module)
    for seed in range(4):
        now = program.refilled(seed)
        wanted = expected(now, apart=True)
        poison(model)
        got = model.run({v.name: x for v, x in zip(program.graph.inputs, now.inputs())})
        check_same(wanted.run.outputs, list(got.values()), "outputs", wanted.largest)


def packed(rows: list[tuple[int, int, int]]) -> tuple[list[Place], MemoryPlan]:
    """The places, in order, and the plan of buffers that rows describe: size, first turn, turns after that."""
    made: Any = {}
    for i, (size, start, length) in enumerate(rows):
        made[i] = Place(ArrayType(np.dtype(np.uint8), (size,)), i, start, start + length)
    plan = _pack(made, [], {})
    return [plan.place_of[i] for i in made], plan


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_places_in_use_at_once_do_not_overlap(rows: list[tuple[int, int, int]]) -> None:
    places, plan = packed(rows)
    spans = [(place, start, start + length) for place, (_, start, length) in zip(places, rows, strict=True)]
    for i, (a, a_start, a_end) in enumerate(spans):
        assert a.offset % ALIGNMENT == 0 and a.offset + aligned(a.form.nbytes) <= plan.nbytes
        for b, b_start, b_end in spans[:i]:
            if a_start <= b_end and b_start <= a_end:
                assert a.offset + aligned(a.form.nbytes) <= b.offset or b.offset + aligned(b.form.nbytes) <= a.offset
    alive = [sum(aligned(p.form.nbytes) for p, s, e in spans if s <= t <= e) for t in range(42)]
    assert plan.bound == max(alive) <= plan.nbytes


def test_the_bound_is_what_is_in_use_at_once_even_if_the_arena_is_larger() -> None:
    places, plan = packed([(385, 3, 3), (512, 2, 0), (128, 3, 0), (385, 2, 2)])
    assert [aligned(place.form.nbytes) for place in places] == [448, 512, 128, 448]
    assert (plan.bound, plan.nbytes) == (448 + 128 + 448, 1088)


def test_where_the_largest_first_need_more_those_alive_longest_are_placed_first() -> None:
    places, plan = packed([(65, 0, 0), (65, 0, 1), (385, 0, 0), (449, 1, 0)])
    assert places[1].offset == 0
    assert plan.bound == plan.nbytes == 128 + 128 + 448


def test_a_place_is_the_smallest_gap_that_holds_it() -> None:
    places, plan = packed([(512, 0, 0), (320, 0, 1), (256, 0, 0), (192, 0, 1), (192, 1, 0)])
    assert [place.offset for place in places[:4]] == [0, 512, 832, 1088]
    # At the second turn there are 512 bytes at 0, 256 at 832, and all that is behind the others.
    assert places[4].offset == 832
    assert plan.nbytes == 1088 + 192


def test_a_gap_that_is_just_large_enough_holds_it() -> None:
    places, _ = packed([(256, 0, 10), (192, 0, 12), (128, 0, 10), (128, 8, 4), (128, 12, 0)])
    assert [place.offset for place in places] == [0, 256, 448, 576, 448]


def test_recorders_see_what_is_made() -> None:
    graph = parse_graph(CHAIN)
    model = CompiledModel(graph)
    recorder = FormRecorder()
    model.runs.lowerer.plan.run([f32(64, 64), f32(64, 64)], observed_run(recorder))
    assert {v.name for v in recorder.forms} == set("abcde")
