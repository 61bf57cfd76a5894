"""Results in planned memory: the same as without, in as little memory as may be, never seen from outside."""

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import parse_graph, parse_module
from irc.runtime import arena
from irc.runtime.memory_plan import MemoryPlan, Planner
from irc.runtime.model import CompiledModel
from irc.runtime.report import Report
from tests.effort import Spy, Tune, examples
from tests.graphs import ir, typed_ir
from tests.programs.generator import Program, dense, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.interpreter import interpret
from tests.programs.running import check_same, expected
from tests.runtime.helpers import PACKAGE, interrupted

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
    real = arena.placed_step

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

    monkeypatch.setattr(arena, "placed_step", placed_step)


CHAIN = ir("x, w: Float(64, 64)", "b = Relu(MatMul(x, w)); e = MatMul(Add(MatMul(b, w), b), w)", "e")


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


def runs_of(text: str, given: Iterable[dict[str, Any]], **options: Any) -> CompiledModel:
    """A model whose runs, on inputs ``given`` and random ones, gave what an interpreter that reuses nothing does."""
    graph = parse_graph(text)
    kept: list[tuple[list[Any], list[Any]]] = []
    model = CompiledModel(graph.copy(), **options)
    for some in given:
        feeds = {v.name: some[v.name] if v.name in some else f32(*v.type.shape) for v in graph.inputs}
        before = [x.copy() for x in feeds.values()]
        kept.append(([*model.run(feeds).values()], interpret(graph, [x.copy() for x in before])))
        poison(model)
        for x, was in zip(feeds.values(), before):
            np.testing.assert_array_equal(x, was)
        for found, wanted in kept:  # results of earlier runs stay as they are
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    return model


MATRICES = "x, w: Float(32, 32)"
BRANCH_OR_LOOP = ir("""
    x: Float(32, 32); c: Bool(); n: Long() -> z
    a: Float(32, 32) = Neg(x); t: Bool() = prim.Constant(value=tensor([True])); b: Float(32, 32) = Exp(x)
    l: Float(32, 32) = Loop(n, t, b)
    with block(i=Long(), go=Bool(), p=Float(32, 32)): q: Float(32, 32) = Add(p, a); yield go, q
    y: Float(32, 32) = prim.If(c)
    with block(): u: Float(32, 32) = Relu(a); yield u
    with block(): yield l
    z: Float(32, 32) = MatMul(y, x)
""")
LOOP_RETURNS_CAPTURE = ir("""
    x: Float(32, 32); n: Long() -> d, s
    t: Bool() = prim.Constant(value=tensor([True])); a: Float(32, 32) = MatMul(x, x)
    b: Float(32, 32) = MatMul(x, a); c: Float(32, 32) = MatMul(x, b)
    v[Float(32, 32)], s["Float(*, 32, 32)"] = Loop(n, t, c)
    with block(i=Long(), go=Bool(), p=Float(32, 32)): q: Float(32, 32) = Neg(p); yield go, q, a
    d: Float(32, 32) = MatMul(v, x)
""")
SCATTERED = np.stack([RNG.permutation(8) for _ in range(8)], 1)
SCATTERED[0] = SCATTERED[1]  # so that something stays

PLANNED: dict[str, tuple[str, int, Sequence[dict[str, Any]]]] = {
    "equations and displaced windows, and what follows": (
        ir(
            "x: Float(1, 2, 6, 6); w: Float(4, 2, 3, 3); offset: Float(1, 18, 4, 4); bias: Float(4)",
            "c = Einsum(Softmax(DeformConv(x, w, offset, bias, since_version=19)), equation='nchw->nwhc')\n"
            "y = Softmax(Einsum(Softmax(c), c, equation='nwhc,nwhd->ncd'))",
            "y",
        ),
        5,
        [{}] * 4,
    ),
    "outputs are never planned, however they are seen": (
        ir(
            "x: Float(64, 64)",
            "a = Neg(x); b = Exp(a); v = Reshape(Transpose(a), [-1]); c = Add(MatMul(b, b), a)\n"
            "s: 'Tensor[]' = SequenceConstruct(c)",
            "v, s",
        ),
        2,  # b and its product
        [{}] * 5,
    ),
    "not what has a shape that contents decide": (
        ir(
            "x: Float(16, 16); n: Long(2)",
            "c = Neg(x); d = MatMul(c, c); f = MatMul(d, d)\n"
            "e = Add(f, ReduceSum(Exp(Neg(Reshape(x, n))), keepdims=0))",
            "e",
        ),
        3,  # c, d and f
        [{"n": np.array(n)} for n in ([-1, 4], [4, -1], [256, 1], [16, 16])],
    ),
    "what has a shape that is computed from shapes": (
        ir("x: Float", "b = MatMul(x, Exp(Reshape(x, Gather(Shape(x), [1, 0])))); c = Neg(MatMul(b, b))", "c"),
        3,
        [{"x": f32(rows, 40)} for rows in (20, 30, 20, 30)],
    ),
    "not what has a shape that something changes after it is computed": (
        ir(
            "x: Float(2); k: Long(1)",
            "s = Shape(x); u = Add_(s, k); y = ReduceSum(Exp(Expand([1.0], s)), keepdims=0)",
            "y",
        ),
        0,
        [{"k": np.array([k])} for k in (0, 0, 3, 1)],
    ),
    "not what has a shape that a group computes and something then changes": (
        ir(
            "x: Float(4); k: Long(1)",
            "s = FusionGroup_0(x); w = Add_(s, k); g = Exp(Neg(Expand([1.0], s)))",
            "g",
            FusionGroup_0=("x: Float(4)", "m = Neg(Neg(Shape(x)))", "m"),
        ),
        2,  # the sizes in the group
        [{"k": np.array([k])} for k in (0, 0, 0, 3, 5)],
    ),
    "what a branch or a loop still reads keeps its place": (
        BRANCH_OR_LOOP,
        3,  # a, b and u
        [{"c": np.array(c), "n": np.array(n)} for c, n in [(True, 2), (False, 2), (False, 0), (True, 0), (False, 3)]],
    ),
    "what a loop stacks, which nothing in it takes, keeps its place": (
        LOOP_RETURNS_CAPTURE,
        3,
        [{"n": np.array(n)} for n in (1, 2, 3, 3)],
    ),
    "what an operator reads in another order too is not written over": (
        ir(MATRICES, "a = MatMul(x, w); y = MatMul(Sum(a, x, Transpose(a)), w)", "y"),
        2,
        [{}] * 3,
    ),
    "strings have no places": (
        ir(
            "c: Bool(2); a, b: String(2); x: Float(2)",
            "z = ReduceSum(Where(Equal(Where(c, a, b), b), Exp(x), x), keepdims=1)",
            "z",
        ),
        3,  # of Equal, Exp, and Where over Exp
        [{"c": np.array([True, False]), "a": np.array(["p", "q"], object), "b": np.array(["r", "s"], object)}] * 3,
    ),
    "what is scattered is not written over, nor what is read later": (
        ir(
            "x, w: Float(8, 8); i: Long(8, 8)",
            "a = MatMul(x, w); y = MatMul(ScatterElements(a, i, MatMul(w, x), axis=0), a)",
            "y",
        ),
        3,
        [{"i": SCATTERED}] * 3,
    ),
    "groups of equal graphs have places of their own": (
        ir(
            MATRICES,
            "y = MatMul(FusionGroup_0(x), FusionGroup_1(w))",
            "y",
            FusionGroup_0=("m: Float(32, 32)", "q = Neg(MatMul(m, m))", "q"),
            FusionGroup_1=("m: Float(32, 32)", "q = Neg(MatMul(m, m))", "q"),
        ),
        4,
        [{}] * 3,
    ),
}


@pytest.mark.parametrize(("text", "planned", "given"), PLANNED.values(), ids=PLANNED)
def test_what_is_planned_and_what_is_not(text: str, planned: int, given: Sequence[dict[str, Any]]) -> None:
    assert runs_of(text, given, backend="numpy").counters.planned == planned
    runs_of(text, given)


TAKEN_BY_GROUP = ir(MATRICES, "r, s = FusionGroup_0(MatMul(x, w), MatMul(w, x)); y = MatMul(r, s)", "y",
                    FusionGroup_0=("a, b: Float(32, 32)", "r = Neg(a); s = Mul(b, b)", "r, s"))  # fmt: skip
"""The second operator of the group could not take its own operand, which it reads twice."""


@pytest.mark.parametrize("size", [8, 400])
def test_a_place_that_a_group_has_written_over_is_not_taken_again(size: int) -> None:
    runs_of(TAKEN_BY_GROUP.replace("32", str(size)), [{}] * 3)


WRITTEN_SHAPES = ir("x: Float(2, 3); k: Long(1)", "s = Shape(x); w = aten.add_(s, k, 1); r = Neg(TAKES(s))", "r")
TAKING = {"a group": "prim::FusionGroup_0", "an operator": "onnx::Abs", "a view": "onnx::Identity"}
SQUARE = ir("s: Long(2)", "n = Abs(Mul(s, s))", "n")


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("kind", TAKING.values(), ids=TAKING)
def test_shapes_that_something_writes_are_not_kept(kind: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    text = WRITTEN_SHAPES.replace("onnx::TAKES", kind) + (f"with {kind} = {SQUARE}" if "Group" in kind else "")
    runs_of(text, [{"k": np.array([k])} for k in range(4)], backend=backend)


def test_shapes_that_are_drawn_at_random_are_not_planned() -> None:
    model = model_of(ir(
        "x: Float(2)",
        "s = ReduceSum(Cast(Dropout([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 0.5, True), to=7), keepdims=1)\n"
        "y = ReduceSum(Exp(Expand([1.0], s)), keepdims=0)",
        "s, y",
    ))  # fmt: skip
    sizes: set[int] = set()
    for _ in range(20):
        got = model.run({"x": f32(2)})
        sizes.add(int(got["s"][0]))
        np.testing.assert_allclose(got["y"], got["s"][0] * np.e, rtol=1e-5)
    assert len(sizes) > 1


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


@pytest.mark.parametrize("passes", ["shape-inference", "default"])
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
    text = typed_ir("x: Float(1)", "z = Softmax(Expand(x, [4611686018427387904]))", "z")
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
