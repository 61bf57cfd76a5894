"""Groups that run block by block give exactly what they give when they run operator by operator."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import count
from threading import Barrier, Event, get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import Builder, DType, Graph, Tensor, Value, types
from irc.runtime.execution import Counters, Run, Watch
from irc.runtime.fused import cutting, tiles
from irc.runtime.plan import Plan, lower
from irc.runtime.threads import workers
from tests.runtime.helpers import f32, graph_of, run_plan, the_only

TENSOR = types.tensor(DType.FLOAT)
WAIT = 60
"""Seconds until a test that would hang fails."""


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TILE_BYTES", 256)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 256)
    monkeypatch.setattr(tiles, "WORTH", 1)


def group(text: str, parameters: str = "%x : Tensor, %c : Tensor", returns: str = "%y") -> Plan:
    names = ", ".join(p.split()[0] for p in parameters.split(", "))
    typed = ", ".join(f"{r} : Tensor" for r in returns.split(", "))
    return lower(
        graph_of(
            f"""
            graph({parameters}):
              {typed} = prim::FusionGroup_0({names})
              return ({returns})
            with prim::FusionGroup_0 = graph({parameters}):
              {text}
              return ({returns})
            """,
            verify=False,
        )
    )


def whole(plan: Plan, *inputs: Any) -> list[Any]:
    """The same operator by operator: whoever watches a run sees each of them."""
    with np.errstate(all="ignore"):
        return plan.call(inputs, Run(Counters(), Watch()))


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()


CHAIN = """
%a : Tensor = onnx::Relu(%x)
%b : Tensor = onnx::Mul(%a, %c)
%s : Tensor = onnx::Sigmoid(%b)
%y : Tensor = onnx::Add(%s, %x)
"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_chain_runs_in_blocks(threads):
    x, c = np.random.default_rng(0).standard_normal((2, 40, 24), np.float32)
    plan = group(CHAIN)
    (y,), counters = run_plan(plan, x, c, threads=threads)
    same(y, whole(plan, x, c)[0])
    assert (counters.tiled_groups, counters.tiles) == (1, 15)  # of 64 elements, 256 bytes
    assert (counters.units, counters.kernels) == (1, 4)
    assert counters.tile_bytes == 256 + 64  # one scratch buffer serves the chain, and may be moved to a cache line


def test_what_lies_between_operators_never_has_full_size():
    x, c = np.ones((2, 400, 300), np.float32)
    plan = group(CHAIN)
    cutting.TILE_BYTES = 1 << 14
    run_plan(plan, x, c)
    tracemalloc.start()
    try:
        (y,), counters = run_plan(plan, x, c)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counters.tiled_groups == 1
    assert y.nbytes <= peak < 1.2 * y.nbytes


def test_results_of_several_sizes():
    """A row's operators run whole, before; the others in blocks; both kinds may be results."""
    plan = group(
        """
        %r : Tensor = onnx::Neg(%c)
        %e : Tensor = onnx::Exp(%r)
        %a : Tensor = onnx::Mul(%x, %e)
        %y : Tensor = onnx::Tanh(%a)
        """,
        returns="%y, %e, %a",
    )
    x, c = np.random.default_rng(1).standard_normal((30, 20)).astype(np.float32), f32(*range(20))
    results, counters = run_plan(plan, x, c)
    for got, want in zip(results, whole(plan, x, c), strict=True):
        same(got, want)
    assert counters.tiled_groups == 1 and counters.kernels == 4


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((0, 1000), np.float32),
        f32(*range(10)),
        np.float32(3).reshape(()),
        np.ones((40, 40), np.float32).T[::2],
        np.ones((40, 80), np.float32)[:, ::2],
        np.ones((40, 40), np.float32)[:, ::-1],
    ],
    ids=["nothing", "little", "scalar", "columns", "steps", "backwards"],
)
def test_what_is_small_or_scattered_runs_whole(x):
    plan = group(CHAIN)
    c = f32(2)
    (y,), counters = run_plan(plan, x, c)
    same(y, whole(plan, x, c)[0])
    assert counters.tiled_groups == counters.tiles == 0 and counters.kernels == 4


def test_an_empty_result_of_large_inputs():
    plan = group("%y : Tensor = onnx::Add(%x, %c)")
    assert run_plan(plan, np.zeros((0, 1), np.float32), np.ones(1000, np.float32), threads=2)[0][0].shape == (0, 1000)


@pytest.mark.parametrize(
    "x",
    [
        np.broadcast_to(f32(*range(30)), (40, 30)),
        np.broadcast_to(np.arange(40, dtype=np.float32)[:, None], (40, 30)),
        np.broadcast_to(np.float32(7), (40, 30)),
        np.ones((40, 60), np.float32)[::-1, 3:33],
    ],
    ids=["rows", "columns", "splat", "window"],
)
def test_views_are_read_where_they_are(x):
    plan = group(CHAIN)
    c = np.random.default_rng(2).standard_normal((40, 30)).astype(np.float32)
    (y,), counters = run_plan(plan, x, c)
    same(y, whole(plan, x, c)[0])
    assert counters.tiled_groups == 1


@pytest.mark.parametrize(
    "text", ["%y : Tensor = onnx::Pow(%x, %c)", "%z : Tensor = onnx::Neg(%c)\n%y : Tensor = onnx::Pow(%x, %z)"]
)
@pytest.mark.parametrize(
    "c", [f32(2), f32([2], [3]), np.broadcast_to(f32(2), (40, 30)), np.full((40, 30), 2, np.float32)]
)
def test_powers_are_the_same_in_blocks(text, c):
    """Squares are computed by another function than powers, and a block has fewer exponents than the whole."""
    x = np.random.default_rng(3).uniform(0.1, 9, (2, 40, 30)).astype(np.float32)
    x = x if c.shape == (2, 1) else x[0]
    c = c[:, :, None] if c.shape == (2, 1) else c
    plan = group(text + "\n%w : Tensor = onnx::Exp(%y)", returns="%y, %w")
    for got, want in zip(run_plan(plan, x, c)[0], whole(plan, x, c), strict=True):
        same(got, want)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kind", ["Relu", "Elu", "Selu", "Sigmoid", "Softplus", "Mish", "Neg", "Clip", "Erf"])
def test_what_is_repeated_is_computed_for_each_repetition(kind, dtype):
    """Kernels take large operands for flat ones, as are the results that they are given to write to."""
    cutting.TILE_BYTES = 1 << 18
    plan = group(f"%a : Tensor = onnx::{kind}(%x)\n %y : Tensor = onnx::Neg(%a)", "%x : Tensor")
    one = np.random.default_rng(0).standard_normal((1, 3, 112, 112), np.float32).astype(dtype)
    for x in (np.broadcast_to(one, (8, 3, 112, 112)), np.broadcast_to(one[:, :1], one.shape)):
        for _ in range(2):
            same(run_plan(plan, x)[0][0], whole(plan, x)[0])


def test_strings_run_whole():
    plan = group(
        "%s : Tensor = onnx::Cast[to=8](%x)\n%y : Tensor = onnx::Cast[to=1](%s)\n%z : Tensor = onnx::Mul(%y, %c)",
        returns="%z",
    )
    x = np.arange(1000, dtype=np.float32).reshape(50, 20)
    (z,), counters = run_plan(plan, x, f32(2))
    same(z, 2 * x)
    assert counters.tiled_groups == 0


def test_shapes_that_do_not_go_together_fail_as_they_do_whole():
    plan = group(CHAIN)
    x = np.ones((40, 30), np.float32)
    for threads in (1, 2):
        with pytest.raises(Error) as caught:
            run_plan(plan, x, np.ones((40, 31), np.float32), threads=threads)
        assert caught.value.where == "onnx::Mul '%b'"
        assert "float32[40, 30], float32[40, 31]" in caught.value.message
    assert run_plan(plan, x, x)[1].tiled_groups == 1


def test_two_threads_take_blocks(monkeypatch):
    """Each thread waits in its first block until the other one has come to one: alone it would never end."""
    plan = group(CHAIN)
    x = np.ones((40, 24), np.float32)
    expected = run_plan(plan, x, x, threads=2)[0][0]
    (tiling,) = the_only(tiles.Tail, plan)._tilings.made()
    barrier, met = Barrier(2, timeout=WAIT), set[int]()
    operations = list(tiling.operations)
    kernel = operations[2].kernel

    def meeting(*inputs: Any, **out: Any) -> Any:
        if get_ident() not in met:
            met.add(get_ident())
            barrier.wait()
        return kernel(*inputs, **out)

    operations[2] = operations[2]._replace(kernel=meeting)
    monkeypatch.setitem(vars(tiling), "operations", operations)
    same(run_plan(plan, x, x, threads=2)[0][0], expected)
    assert len(met) == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_kernel_that_fails_in_a_block_is_named(threads, monkeypatch):
    plan = group(CHAIN)
    x = np.ones((40, 24), np.float32)
    expected = run_plan(plan, x, x, threads=threads)[0][0]
    (tiling,) = [t for t in the_only(tiles.Tail, plan)._tilings.made() if t is not None]
    calls: list[int] = []
    number, known = count(1), Event()
    kernel, fail = tiling.operations[2].kernel, workers.Crew.fail

    def failing(*inputs: Any, **out: Any) -> Any:
        calls.append(call := next(number))
        if call == 5:
            raise ValueError("the fifth block")
        if call > 5:
            assert known.wait(WAIT)  # on another thread, which began before it could know
        return kernel(*inputs, **out)

    def noted(crew: workers.Crew, error: BaseException) -> None:
        fail(crew, error)
        known.set()

    operations = list(tiling.operations)
    operations[2] = operations[2]._replace(kernel=failing)
    with monkeypatch.context() as patch:
        patch.setitem(vars(tiling), "operations", operations)
        patch.setattr(workers.Crew, "fail", noted)
        _fails_in_the_fifth_block(plan, x, threads, calls)
    for _ in range(3):
        same(run_plan(plan, x, x, threads=threads)[0][0], expected)


def _fails_in_the_fifth_block(plan: Plan, x: np.ndarray, threads: int, calls: list[int]) -> None:
    with pytest.raises(Error, match="the fifth block; inputs: float32\\[40, 24\\]") as caught:
        run_plan(plan, x, x, threads=threads)
    assert (caught.value.code, caught.value.where) == ("IRC401", "onnx::Sigmoid '%s'")
    assert len(calls) < 5 + threads  # the others were not begun any more


def test_tilings_are_kept_for_few_kinds_of_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "BUDGET", 0)
    plan = group(CHAIN)
    for n in range(100, 100 + 3 * tiles.KEPT):
        assert run_plan(plan, np.ones(n, np.float32), f32(1))[1].tiled_groups == 1
    assert len(the_only(tiles.Tail, plan)._tilings) == tiles.KEPT


def test_tilings_have_as_many_blocks_as_there_is_room_for() -> None:
    plan = group(CHAIN)
    kept = the_only(tiles.Tail, plan)._tilings
    for n in range(10_000, 10_200):  # some 160 blocks
        assert run_plan(plan, np.ones(n, np.float32), f32(1))[1].tiled_groups == 1
    assert tiles.KEPT < len(kept) < 30
    blocks = [len(tiling.blocks) for tiling in kept.made() if tiling is not None]
    assert sum(blocks) <= tiles.BUDGET


def test_of_kinds_that_come_in_turn_those_that_are_kept_are_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "BUDGET", 0)
    found: list[int] = []
    real = cutting.find_tiling
    monkeypatch.setattr(cutting, "find_tiling", lambda *a: found.append(a[1][0].size) or real(*a))
    plan = group(CHAIN)
    sizes = range(100, 104 + tiles.KEPT)
    for turn in range(5):
        found.clear()
        for n in sizes:
            run_plan(plan, np.ones(n, np.float32), f32(1))
        assert len(found) == (4 if turn else len(sizes))


# -- memory of operands ----------------------------------------------------------

OPERAND = """
graph(%x : Tensor):
  %a : Tensor = onnx::Neg(%x)
  {before}
  %y : Tensor = prim::FusionGroup_0(%a, {second})
  {after}
  return (%y{kept})
with prim::FusionGroup_0 = graph(%p : Tensor, %q : Tensor):
  %r : Tensor = onnx::Mul(%p, %q)
  %s : Tensor = onnx::Tanh(%r)
  %t : Tensor = onnx::Sub(%s, %p)
  return (%t)
"""


@pytest.mark.parametrize(
    ("before", "second", "after", "kept", "taken"),
    [
        ("", "%x", "", "", 1),
        ("", "%x", "%z : Tensor = onnx::IsNaN(%a)", ", %z", 0),
        ("", "%x", "", ", %a", 0),
        ("", "%a", "", "", 1),
        ("%b : Tensor = onnx::Transpose(%a)", "%b", "", "", 0),
        ("%b : Tensor = onnx::Transpose(%a)", "%x", "%z : Tensor = onnx::IsNaN(%b)", ", %z", 0),
        ("%b : Tensor = onnx::Transpose(%a)\n%z : Tensor = onnx::Exp(%b)", "%x", "", ", %z", 1),
    ],
    ids=["dead", "read later", "returned", "twice", "with a view", "a view read later", "a view read before"],
)
def test_a_result_takes_the_memory_of_an_operand_that_nothing_needs(before, second, after, kept, taken):
    plan = lower(graph_of(OPERAND.format(before=before, second=second, after=after, kept=kept)))
    x = np.random.default_rng(5).standard_normal((40, 40)).astype(np.float32)
    x.flags.writeable = False
    for _ in range(2):
        results, counters = run_plan(plan, x, threads=2)
        if second != "%b":
            assert (counters.tiled_groups, counters.in_place) == (1, taken)
        for got, want in zip(results, whole(plan, x), strict=True):
            same(got, want)


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_only_operands_that_lie_alike_are_treated_alike(first):
    """A result takes the memory of what lies in order and may be written; the next run's operand may be neither."""
    graph = graph_of("""
    graph(%x : Tensor):
      %y : Tensor = prim::FusionGroup_0(%x)
      return (%y)
    with prim::FusionGroup_0 = graph(%x : Tensor):
      %a : Tensor = onnx::Neg(%x)
      %y : Tensor = onnx::Exp(%a)
      return (%y)
    """)
    plan = lower(graph, guarded=True)
    x = np.random.default_rng(7).standard_normal((40, 40)).astype(np.float32)
    fixed = x.copy()
    fixed.flags.writeable = False
    kinds = [(x, 1), (fixed, 0), (x[::-1], 0), (np.repeat(x, 2, axis=1)[:, :40], 0)]
    for operand, taken in (kinds[first], *kinds):
        given = operand.copy("K") if operand.base is None else operand
        given.flags.writeable = operand.flags.writeable
        (want,) = whole(lower(graph), operand.copy())
        (y,), counters = run_plan(plan, given, threads=2)
        same(np.ascontiguousarray(y), want)
        assert (counters.tiled_groups, counters.in_place) == (1, taken)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param("Mul(%r, %p)", id="reads the operand, which the first result must leave to it"),
        pytest.param("Neg(%r)", id="does not read the operand, which the first has taken"),
    ],
)
def test_an_operand_is_taken_by_one_result_after_its_last_reader(second: str):
    plan = lower(
        graph_of(f"""
        graph(%x : Tensor):
          %a : Tensor = onnx::Neg(%x)
          %y : Tensor, %z : Tensor = prim::FusionGroup_0(%a)
          return (%y, %z)
        with prim::FusionGroup_0 = graph(%p : Tensor):
          %r : Tensor = onnx::Exp(%p)
          %s : Tensor = onnx::{second}
          return (%r, %s)
        """)
    )
    x = np.random.default_rng(5).standard_normal((40, 40)).astype(np.float32)
    results, counters = run_plan(plan, x)
    assert counters.in_place == counters.tiled_groups == 1
    for got, want in zip(results, whole(plan, x), strict=True):
        same(got, want)


def test_what_the_group_returns_from_before_its_end_is_not_taken():
    plan = lower(
        graph_of("""
        graph(%x : Tensor, %w : Tensor):
          %y : Tensor, %z : Tensor = prim::FusionGroup_0(%x, %w)
          return (%y, %z)
        with prim::FusionGroup_0 = graph(%x : Tensor, %w : Tensor):
          %m : Tensor = onnx::MatMul(%x, %w)
          %r : Tensor = onnx::Relu(%m)
          %s : Tensor = onnx::Exp(%r)
          return (%m, %s)
        """)
    )
    x, w = np.random.default_rng(5).integers(-2, 3, (2, 40, 40)).astype(np.float32)
    results, counters = run_plan(plan, x, w)
    assert (counters.in_place, counters.tiled_groups) == (0, 1)
    np.testing.assert_array_equal(results[0], x @ w)
    same(results[1], np.exp(np.maximum(x @ w, 0)))


def test_scratch_memory_is_kept_until_its_last_reader():
    plan = group(
        """
        %a : Tensor = onnx::Relu(%x)
        %b : Tensor = onnx::Mul(%a, %c)
        %d : Tensor = onnx::Neg(%b)
        %y : Tensor = onnx::Add(%d, %a)
        """
    )
    x, c = np.random.default_rng(0).integers(-9, 9, (2, 40, 24)).astype(np.float32)
    (y,), counters = run_plan(plan, x, c)
    assert counters.tiled_groups == 1
    np.testing.assert_array_equal(y, np.maximum(x, 0) * (1 - c))


# -- random groups ---------------------------------------------------------------

UNARY = "Abs Neg Relu Sign".split()
FLOAT_UNARY = "Sigmoid Tanh Exp Sqrt Erf Softplus LeakyRelu Elu HardSwish Gelu Reciprocal Round Swish Mish".split()
BINARY = "Add Sub Mul Div Max Min Pow Sum Mod".split()
FLOAT_BINARY = ["PRelu", "Mean"]
DTYPES = [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8]
SHAPES = [
    (),
    (1,),
    (6,),
    (1, 6),
    (5, 1),
    (5, 6),
    (4, 5, 6),
    (4, 1, 6),
    (4, 1, 1),
    (1, 5, 1),
    (3, 4, 5, 6),
    (3, 1, 5, 1),
    (0, 6),
]


@st.composite
def arrays(draw: st.DrawFn, dtype: Any) -> np.ndarray:
    shape = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = (rng.standard_normal((*shape, 2)) * 4).astype(dtype)
    layout = draw(st.sampled_from(["plain", "plain", "fortran", "steps", "backwards", "repeated"]))
    if layout == "steps" or not shape:
        return x[..., 0]
    x = np.ascontiguousarray(x[..., 1])
    if layout == "fortran":
        return np.asfortranarray(x)
    if layout == "backwards":
        return x[::-1]
    if layout == "repeated":
        return np.broadcast_to(x[:1], x.shape)
    return x


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_random_groups_are_the_same_in_blocks(data):
    draw = data.draw
    inner = Graph("group")
    values: dict[Any, list[Value]] = {}
    arguments: list[np.ndarray] = []
    common = draw(st.sampled_from(DTYPES))
    for dtype in [common, common, common, draw(st.sampled_from(DTYPES)), bool]:
        arguments.append(draw(arrays(dtype)))
        values.setdefault(np.dtype(dtype), []).append(inner.add_input(TENSOR))
    b = Builder.at_end(inner.block)
    for _ in range(draw(st.integers(1, 9))):
        dtype = draw(st.sampled_from(list(values)))
        one, two = (draw(st.sampled_from(values[dtype][-4:])) for _ in range(2))
        choice = draw(st.sampled_from("uubbwclk"))
        if dtype.kind == "b":
            result = b.op("onnx::Not", one, type=TENSOR) if choice in "uc" else b.op("onnx::And", one, two, type=TENSOR)
        elif choice == "u":
            kinds = UNARY + FLOAT_UNARY if dtype.kind == "f" else UNARY
            result = b.op(f"onnx::{draw(st.sampled_from(kinds))}", one, type=TENSOR)
        elif choice == "b":
            kinds = BINARY + FLOAT_BINARY if dtype.kind == "f" else BINARY
            result = b.op(f"onnx::{draw(st.sampled_from(kinds))}", one, two, type=TENSOR)
        elif choice == "w":
            condition = draw(st.sampled_from(values[np.dtype(bool)]))
            result = b.op("onnx::Where", condition, one, two, type=TENSOR)
        elif choice == "l":
            values[np.dtype(bool)].append(b.op("onnx::Less", one, two, type=TENSOR))
            continue
        elif choice == "k":
            low = b.constant(Tensor.of(np.array(1, dtype)))
            result = b.op("onnx::Clip", one, low, type=TENSOR)
        else:
            dtype = np.dtype(draw(st.sampled_from(DTYPES)))
            result = b.op("onnx::Cast", one, type=TENSOR, attributes={"to": DType.from_numpy(dtype).onnx})
        values.setdefault(np.dtype(dtype), []).append(result)
    made = [v for rows in values.values() for v in rows if v.node is not None]
    returns = draw(st.lists(st.sampled_from(made), min_size=1, max_size=4))
    inner.set_outputs(returns)
    graph = Graph("main", inner.weights)
    outer = [graph.add_input(TENSOR) for _ in arguments]
    node = Builder.at_end(graph.block).node(
        "prim::FusionGroup", outer, [TENSOR] * len(returns), attributes={"Subgraph": inner}
    )
    graph.set_outputs(node.outputs)
    plan = lower(graph)
    for x in arguments:
        x.flags.writeable = False
    expected = _outcome(lambda: whole(plan, *arguments))
    for threads in (1, 2, 4):
        assert _outcome(lambda: run_plan(plan, *arguments, threads=threads)[0]) == expected  # noqa: B023  called at once


def _outcome(attempt: Callable[[], list[np.ndarray]]) -> Any:
    """The results to the last bit, or what went wrong and where."""
    try:
        return [(x.dtype, x.shape, x.tobytes()) for x in attempt()]
    except Error as error:
        return error.code, error.where


def test_results_of_as_many_elements_and_another_shape_are_computed_whole() -> None:
    """The second has an axis more than what it reads: neither is cut as the other is."""
    plan = group("%a : Tensor = onnx::Relu(%x)\n%y : Tensor = onnx::Add(%a, %c)")
    x, c = np.arange(-5, 295, dtype=np.float32), np.ones((1, 1), np.float32)
    (found,), counters = run_plan(plan, x, c)
    assert counters.tiled_groups == 0
    same(found, np.maximum(x, 0) + c)
