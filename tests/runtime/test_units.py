"""Bulks and units: what forms one, what ends one, and that running them side by side changes nothing."""

from __future__ import annotations

import dis
import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irc
from irc.alias import analyze
from irc.alias.sets import intersects
from irc.errors import Error
from irc.ir import Builder, DType, Graph, Node, parse_graph, types
from irc.ir.ops import register
from irc.runtime import branches
from irc.runtime.execution import Counters, Run, Watch
from irc.runtime.fused import cutting, tiles
from irc.runtime.fused.groups import subgraph_of
from irc.runtime.fused.split import split_point
from irc.runtime.kernels.registry import kernel
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from irc.runtime.plan import Lowerer, lower
from irc.runtime.threads import dispatch, units
from irc.runtime.threads.needs import find_needs
from tests.programs.generator import Program, dense
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.running import check_same, copied, examples, expected
from tests.runtime.helpers import f32, graph_of, run_plan

TENSOR = types.tensor(DType.FLOAT)
WAIT = 60
"""Seconds until a test that would hang fails."""


def chain(operators: int) -> Graph:
    graph = Graph()
    value = graph.add_input(types.tensor(DType.FLOAT, (4,)), "x")
    b = Builder(graph)
    for i in range(operators):
        value = b.op(f"onnx::{('Neg', 'Relu', 'Exp')[i % 3]}", value, type=TENSOR)
    graph.set_outputs([value])
    return graph


def counted(graph: Graph, *inputs: Any, **options: Any) -> Counters:
    model = CompiledModel(graph, options=Options(**options))
    model.run({i.name: x for i, x in zip(model.inputs, inputs, strict=True)})
    return model.counters


# -- in order -------------------------------------------------------------------


@pytest.mark.parametrize(("bulk", "expected"), [(None, 1), (1000, 1), (999, 2), (15, 67), (1, 1000)])
def test_a_thousand_operators_with_inputs_and_outputs_are_bulked(bulk, expected):
    counters = counted(chain(1000), f32(1, 2, 3, 4), bulk=bulk)
    assert (counters.units, counters.kernels) == (expected, 1000)
    assert counters.breaks == ({} if expected == 1 else {"size": expected - 1})


CONTROL = """
graph(%c : Bool(), %m : Long(), %x : Float(2)):
  %yes : Bool() = prim::Constant[value=tensor<Bool()>([True])]()
  %a : Float(2) = onnx::Neg(%x)
  %b : Float(2) = onnx::Abs(%a)
  %d : Float(2) = prim::If(%c)
    block0():
      %t : Float(2) = onnx::Exp(%b)
      %u : Float(2) = onnx::Neg(%t)
      -> (%u)
    block1():
      -> (%a)
  %y : Float(2) = onnx::Loop(%m, %yes, %d)
    block0(%i : Long(), %go : Bool(), %v : Float(2)):
      %w : Float(2) = onnx::Neg(%v)
      -> (%go, %w)
  %z : Float(2) = onnx::Relu(%y)
  return (%z)
"""


def test_control_flow_ends_units():
    counters = counted(graph_of(CONTROL), np.array(True), np.array(3), f32(1, 2))
    # Neg, Abs | If: its block | Loop: three trips | Relu
    assert counters.units == 1 + 1 + 1 + 1 + 3 + 1
    assert counters.breaks == {"control flow": 3}
    assert counted(graph_of(CONTROL), np.array(False), np.array(0), f32(1, 2)).units == 4


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, 10_000_000])
def test_options_are_checked(value):
    with pytest.raises(Error, match="threads must be a positive integer") as caught:
        Options(threads=value)
    assert caught.value.code == "IRC419"
    model, feeds = CompiledModel(chain(3)), {"x": f32(1, 2, 3, 4)}
    for run in (model.run, model.profile, irc.Session(model, {"x": model.outputs[0].name}).run):
        with pytest.raises(Error, match="IRC419"):
            run(feeds, threads=value)
    with pytest.raises(Error, match="IRC419"):
        CompiledModel(chain(3), options=value)
    if value != 10_000_000:
        with pytest.raises(Error, match="bulk must be a positive integer, or None"):
            Options(bulk=value)


def test_numbers_of_options_may_be_numpys():
    options = Options(threads=np.int64(2), bulk=np.uint8(3))  # type: ignore[arg-type]
    assert options == Options(2, 3) and type(options.threads) is type(options.bulk) is int
    model = CompiledModel(chain(3))
    assert model.run({"x": f32(1, 2, 3, 4)}, threads=np.int64(2)).keys() == {o.name for o in model.outputs}  # type: ignore[arg-type]


# -- schedules ------------------------------------------------------------------


def nodes(kinds: str) -> list[Node]:
    b = Builder(Graph())
    of = {"c": "onnx::Conv", "p": "onnx::Relu", "i": "prim::If"}
    return [b.node(of[kind], [], [TENSOR]) for kind in kinds]


def members(found: units.Schedule) -> list[list[int]]:
    return [unit.members for unit in found.units]


@pytest.mark.parametrize(
    ("kinds", "needs", "most", "expected", "breaks", "parallel"),
    [
        ("cpcp", [[], [0], [1], [2]], None, [[0, 1, 2, 3]], {}, False),
        ("cpcp", [[], [0], [1], [2]], 3, [[0, 1, 2], [3]], {"size": 1}, False),
        ("pcpcpp", [[], [0], [1], [0], [3], [2, 4]], None, [[0], [1, 2], [3, 4], [5]], {"fork": 2, "join": 1}, True),
        ("cpcp", [[], [0], [], [2]], None, [[0, 1], [2, 3]], {"branch": 1}, True),
        ("pppp", [[], [0], [], [2]], None, [[0, 1], [2, 3]], {"branch": 1}, False),
        ("pip", [[], [0], [1]], None, [[0], [1], [2]], {"control flow": 2}, False),
        ("cpcc", [[], [0], [1], [1]], None, [[0, 1], [2], [3]], {"fork": 2}, True),
    ],
    ids=["chain", "size", "diamond", "independent", "light", "control", "fork"],
)
def test_units_of_independent_branches_stay_apart(kinds, needs, most, expected, breaks, parallel):
    found = units.schedule(nodes(kinds), needs, [kind == "c" for kind in kinds], most)
    assert members(found) == expected
    assert found.breaks == breaks
    assert found.is_parallel == parallel


@given(st.data())
def test_schedules_keep_every_need(data):
    count = data.draw(st.integers(0, 25))
    needs = [sorted(data.draw(st.sets(st.integers(0, max(0, i - 1)), max_size=min(i, 3)))) for i in range(count)]
    most = data.draw(st.none() | st.integers(1, 5))
    kinds = "".join(data.draw(st.sampled_from("cpi")) for _ in needs)
    found = units.schedule(nodes(kinds), needs, [kind == "c" for kind in kinds], most)
    unit_of = {i: number for number, unit in enumerate(found.units) for i in unit.members}
    assert sorted(unit_of) == list(range(count))
    assert sum(found.breaks.values()) == max(0, len(found.units) - 1)
    for number, unit in enumerate(found.units):
        assert all(need < number for need in unit.needs)
        assert unit.members == sorted(unit.members) and len(unit.members) <= (most or count)
        for i in unit.members:
            assert {unit_of[p] for p in needs[i]} <= unit.needs | {number}
        for before, after in zip(unit.members, unit.members[1:], strict=False):
            assert before in needs[after]
            assert not any(before in needs[i] for i in range(count) if i != after)
    assert found.is_parallel == _has_two_heavy_units_apart(found)


MANY = 20
"""Tensors in a list: more than a small set of places holds."""

READS = ("aten::neg(%r{})", "aten::neg(%e)", "aten::neg(%x)", "aten::cat(%l, %i)")
WRITES = ("aten::relu_(%r{})", "aten::relu_(%e)")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whoever_touches_what_another_writes_waits_for_it_or_that_one_does(data):
    """Also where what comes out of a list may be any of many tensors, and where only a few are remembered."""
    lines = ["graph(%x : Tensor, %i : int):", *(f"  %r{i} : Tensor = aten::neg(%x)" for i in range(MANY))]
    lines.append(f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%r{i}' for i in range(MANY))})")
    lines.append("  %e : Tensor = aten::__getitem__(%l, %i)")
    for i in range(data.draw(st.integers(1, 30))):
        call = data.draw(st.sampled_from([*READS, *WRITES, "prim::Print(%r{})"])).format(data.draw(st.integers(0, 3)))
        lines.append(f"   = {call}" if "Print" in call else f"  %y{i} : Tensor = {call}")
    graph = parse_graph("\n".join([*lines, "  return (%l)"]))
    db, operators = analyze(graph), list(graph.nodes)
    slots = {value: number for number, value in enumerate(v for node in operators for v in node.outputs)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("irc.alias.order._MOST", data.draw(st.sampled_from([1, 2, 16])))
        found = find_needs(
            db,
            operators,
            [[slots[v] for v in node.inputs if v in slots] for node in operators],
            [[slots[v] for v in node.outputs] for node in operators],
            *[[()] * len(operators)] * 2,
        )
    before: list[set[int]] = []
    for position, node in enumerate(operators):
        assert all(need < position for need in found[position])
        before.append(found[position].union(*(before[need] for need in found[position])))
        for earlier, other in enumerate(operators[:position]):
            if _are_in_order(db, other, node):
                assert earlier in before[position], (other, node)


def _are_in_order(db: Any, one: Node, other: Node) -> bool:
    if db.has_side_effects(one) or db.has_side_effects(other) or set(one.outputs) & set(other.inputs):
        return True
    return any(
        intersects(db.write_set(a), touched)
        for a, b in ((one, other), (other, one))
        for touched in (db.read_set(b), db.write_set(b))
    )


def test_who_acts_on_the_world_waits_for_all_before_and_all_behind_for_it():
    graph = parse_graph("""
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::neg(%x)
  prim::Print(%y)
  prim::Print(%x)
  %b : Tensor = aten::exp(%x)
  %c : Tensor = aten::abs(%x)
  prim::Print(%y)
  return (%a, %b, %c)
""")
    operators = list(graph.nodes)
    found = find_needs(analyze(graph), operators, *[[()] * len(operators)] * 4)
    assert found == [set(), {0}, {1}, {2}, {2}, {2, 3, 4}]


def test_of_many_tensors_in_a_list_readers_do_not_wait_for_each_other():
    """Nor do those that write each one of them."""
    text = ["graph(%x : Tensor, %i : int):", *(f"  %r{i} : Tensor = aten::neg(%x)" for i in range(MANY))]
    text.append(f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%r{i}' for i in range(MANY))})")
    text += [f"  %w{i} : Tensor = aten::relu_(%r{i})" for i in range(4)]
    text += ["  %e : Tensor = aten::__getitem__(%l, %i)", *(f"  %y{i} : Tensor = aten::exp(%e)" for i in range(4))]
    graph = parse_graph("\n".join([*text, "  return (%l)"]))
    operators = list(graph.nodes)
    found = find_needs(analyze(graph), operators, *[[()] * len(operators)] * 4)
    position = {node.outputs[0].name: at for at, node in enumerate(operators)}
    for i in range(4):
        assert found[position[f"w{i}"]] == {position["l"]}
        assert found[position[f"y{i}"]] == {position[f"w{k}"] for k in range(4)}


def test_a_graph_without_two_heavy_operators_is_not_looked_at_further(monkeypatch):
    monkeypatch.setattr(branches, "analyze", None)
    monkeypatch.setattr(Lowerer, "lower_again", None)
    assert branches.find_units(Lowerer(chain(20))) is None
    with pytest.raises(TypeError):
        branches.find_units(Lowerer(graph_of(BRANCHES)))


def _has_two_heavy_units_apart(found: units.Schedule) -> bool:
    before: list[set[int]] = []
    for unit in found.units:
        before.append(unit.needs.union(*(before[need] for need in unit.needs)))
    heavy = [number for number, unit in enumerate(found.units) if unit.heavy]
    return any(a not in before[b] for b in heavy for a in heavy if a < b)


# -- running side by side -------------------------------------------------------

BRANCHES = """
graph(%x : Float(4, 4), %w : Float(4, 4)):
  %s : Float(4, 4) = onnx::Neg(%x)
  %a : Float(4, 4) = onnx::MatMul(%s, %w)
  %b : Float(4, 4) = onnx::Relu(%a)
  %c : Float(4, 4) = onnx::MatMul(%w, %s)
  %d : Float(4, 4) = onnx::Abs(%c)
  %y : Float(4, 4) = onnx::Add(%b, %d)
  return (%y, %d)
"""


def unit_plan(graph: Graph, bulk: int | None = None) -> Any:
    return branches.in_units(Lowerer(graph, bulk=bulk))


def run_units(graph: Graph, inputs: Sequence[Any], threads: int, bulk: int | None = None) -> tuple[list[Any], Counters]:
    plan, found = unit_plan(graph, bulk)
    counters = Counters()
    with np.errstate(all="ignore"):
        return found.call(inputs, Run(counters, threads=threads), plan.template, threads), counters


def test_two_branches_run_at_the_same_time(monkeypatch):
    """Each product waits until the other one has begun: one after another they would never end."""
    barrier = threading.Barrier(2, timeout=WAIT)
    graph = graph_of(BRANCHES)
    model = CompiledModel(graph, options=Options(threads=2))
    x, w = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
    expected = model.run({"x": x, "w": w}, threads=1)
    assert model.counters.units == 1 and model.counters.overlaps == 0
    plain = dispatch.execute

    def waiting(code: Any, frame: Any) -> None:
        if any(node.kind == "onnx::MatMul" for node, _, _ in code.nodes):
            barrier.wait()
        plain(code, frame)

    monkeypatch.setattr(dispatch, "execute", waiting)
    found = model.run({"x": x, "w": w})
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    counters = model.counters
    assert (counters.units, counters.kernels, counters.overlaps) == (4, 6, 1)
    assert counters.breaks == {"fork": 2, "join": 1}


FUSED = """
graph(%x : Float(1, 2, 8, 8), %v : Float(2, 2, 3, 3), %w : Float(2, 2, 3, 3)):
  %a : Float(1, 2, 6, 6) = onnx::Conv(%x, %v)
  %b : Float(1, 2, 6, 6) = onnx::Relu(%a)
  %c : Float(1, 2, 6, 6) = onnx::Conv(%x, %w)
  %d : Float(1, 2, 6, 6) = onnx::Tanh(%c)
  %y : Float(1, 2, 6, 6) = onnx::Add(%b, %d)
  %z : Float(1, 2, 6, 6) = onnx::Neg(%y)
  return (%z)
"""


def test_a_fused_group_does_not_wait_for_what_only_its_end_reads(monkeypatch):
    """Each branch waits until the other one has begun. The last one's group takes in what joins the two."""
    barrier = threading.Barrier(2, timeout=WAIT)
    model = irc.compile(graph_of(FUSED), options=Options(threads=2))
    assert [node.kind for node in model.graph.nodes] == ["prim::FusionGroup", "prim::FusionGroup"]
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal(i.type.shape).astype(np.float32) for i in model.inputs}
    expected = model.run(feeds, threads=1)
    plain, begun = dispatch.execute, iter(range(3))

    def waiting(code: Any, frame: Any) -> None:
        if next(begun) < 2:
            barrier.wait()
        plain(code, frame)

    monkeypatch.setattr(dispatch, "execute", waiting)
    found = model.run(feeds)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    counters = model.counters
    assert (counters.units, counters.kernels, counters.overlaps) == (3, 6, 1)
    assert counters.breaks == {"branch": 1, "join": 1}


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("%y = onnx::Add(%c, %o)", 1),
        ("%b = onnx::Relu(%c)\n %y = onnx::Add(%b, %o)", 1),
        ("%y = onnx::Add(%c, %x)", 0),
        ("%b = onnx::Add(%x, %o)\n %y = onnx::Add(%b, %c)", 1),
        ("%b = onnx::MatMul(%c, %o)\n %y = onnx::Relu(%b)", 0),
        ("%y = onnx::Add(%c, %k)", 0),
    ],
    ids=["join", "later", "same input", "between", "a second product", "constant"],
)
def test_where_a_group_is_cut(text, cut):
    """Behind its last operator that takes long, if what follows reads a computed value that nothing before reads."""
    graph = parse_graph(f"""
graph(%i : Tensor):
  %x = onnx::Neg(%i)
  %o = onnx::Exp(%i)
  %k : Float() = prim::Constant[value={{1}}]()
  %y = prim::FusionGroup_0(%x, %o, %k)
  return (%y)
with prim::FusionGroup_0 = graph(%x, %o, %k):
  %c = onnx::MatMul(%x, %x)
  {text}
  return (%y)
""")
    (group,) = [node for node in graph.nodes if node.kind == "prim::FusionGroup"]
    assert split_point(group) == cut


CUT = """
graph(%i : Float(2, 2)):
  %o : Float(2, 2) = onnx::Exp(%i)
  %p : bool = prim::Constant[value=1]()
  %c : Float(2, 2), %y : Float(2, 2) = prim::FusionGroup_0(%i, %o, %p)
  %d : Float(2, 2) = onnx::MatMul(%c, %c)
  return (%y, %d)
with prim::FusionGroup_0 = graph(%x : Float(2, 2), %o : Float(2, 2), %p : bool):
  %c : Float(2, 2) = onnx::MatMul(%x, %x)
  %h : Float(2, 2) = onnx::MatMul(%c, %x)
  %b : Float(2, 2) = prim::If(%p)
    block0():
      %e : Float(2, 2) = onnx::Add(%h, %o)
      -> (%e)
    block1():
      -> (%x)
  %y : Float(2, 2) = onnx::Neg(%b)
  return (%c, %y)
"""


def test_what_is_left_of_a_group_that_is_cut_is_not_worth_a_thread():
    lowerer = Lowerer(parse_graph(CUT))
    assert [split_point(node) for node in lowerer.graph.nodes if node.kind == "prim::FusionGroup"] == [2]
    assert branches.find_units(lowerer) is None
    plan, found = branches.in_units(lowerer)
    assert not found.is_parallel
    x = f32([1, 2], [3, -4])
    with np.errstate(all="ignore"):
        y, d = found.call([x], Run(Counters(), threads=2), plan.template, 2)
    np.testing.assert_array_equal(y, -(x @ x @ x + np.exp(x)))
    np.testing.assert_array_equal(d, x @ x @ (x @ x))


def test_a_chain_stays_on_one_thread():
    model = CompiledModel(chain(20), options=Options(threads=4))
    model.run({"x": f32(1, 2, 3, 4)})
    assert (model.counters.units, model.counters.overlaps) == (1, 0)


COUNTED = """
graph(%x : Float(40, 24), %w : Float(24, 24), %past : Float(40, 24)):
  %a : Float(40, 24) = onnx::MatMul(%x, %w)
  %b : Float(40, 24) = onnx::Relu(%a)
  %g : Float(40, 24) = prim::FusionGroup_0(%b)
  %c : Float(40, 24) = onnx::MatMul(%past, %w)
  %d : Float(40, 24) = onnx::Abs(%c)
  %l : Float(80, 24) = irc::append_[axis=0](%past, %d)
  return (%g, %l)
with prim::FusionGroup_0 = graph(%b : Float(40, 24)):
  %e : Float(40, 24) = onnx::Exp(%b)
  %f : Float(40, 24) = onnx::Neg(%e)
  return (%f)
"""


def test_units_on_threads_count_what_one_thread_counts(monkeypatch):
    monkeypatch.setattr(cutting, "TILE_BYTES", 256)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 256)
    monkeypatch.setattr(tiles, "WORTH", 1)
    x, past = np.random.default_rng(0).standard_normal((2, 40, 24)).astype(np.float32)
    w = np.ones((24, 24), np.float32)
    one = run_plan(lower(graph_of(COUNTED)), x, w, past)[1]
    three = run_units(graph_of(COUNTED), [x, w, past], 3)[1]
    assert one.units == 1 < three.units
    for name in ("kernels", "in_place", "copies", "copied_bytes", "tiled_groups", "tiles", "tile_bytes"):
        assert getattr(three, name) == getattr(one, name) > 0, name


FIVE = """
graph(%x : Float(2, 2), %w : Float(n, 2)):
  %a : Float(2, 2) = onnx::MatMul(%x, %x)
  %b : Float(2, 2) = onnx::MatMul(%x, %x)
  %s : Float(2, 2) = onnx::Neg(%a)
  %c : Tensor = onnx::MatMul(%s, %w)
  %t : Tensor = onnx::Relu(%c)
  %d : Float(2, 2) = onnx::MatMul(%b, %b)
  %e : Tensor = onnx::MatMul(%t, %d)
  %f : Tensor = onnx::MatMul(%c, %c)
  return (%e, %f)
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_failure_in_a_unit_names_the_operator_and_is_raised_once(threads):
    model = CompiledModel(graph_of(FIVE), options=Options(threads=threads))
    x = np.eye(2, dtype=np.float32)
    good = model.run({"x": x, "w": x})
    kernels = model.counters.kernels
    for _ in range(3):
        with pytest.raises(Error) as caught:
            model.run({"x": x, "w": np.ones((3, 2), np.float32)})
        assert caught.value.where == "onnx::MatMul '%c'"
        assert "float32[2, 2], float32[3, 2]" in caught.value.message
        again = model.run({"x": x, "w": x})
        for name, value in good.items():
            np.testing.assert_array_equal(again[name], value)
        assert model.counters.kernels == kernels == 8


def test_nothing_begins_after_a_failure(monkeypatch):
    plan, found = unit_plan(graph_of(FIVE))
    begun: list[int] = []
    plain = dispatch.execute

    def failing(code: Any, frame: Any) -> None:
        begun.append(found.units.index(next(u for u in found.units if u.code is code)))
        if len(begun) == 3:
            raise KeyboardInterrupt
        plain(code, frame)

    x = np.eye(2, dtype=np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "execute", failing)
        with pytest.raises(KeyboardInterrupt):
            found.call([x, x], Run(Counters()), plan.template, 1)
    assert len(begun) == 3 < len(found.units)
    results = found.call([x, x], Run(Counters()), plan.template, 2)
    assert results[0].tolist() == [[0, 0], [0, 0]]


CALLED: list[Any] = []
"""What ``test.bulk::Spy`` was called with."""


@pytest.fixture
def failing_and_spying() -> None:
    register("test.bulk::Fail(Tensor x) -> Tensor", "test.bulk::Spy(Tensor x) -> Tensor")

    @kernel("test.bulk::Fail")
    def fail(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            raise ValueError("it fails")

        return run

    @kernel("test.bulk::Spy")
    def spy(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            CALLED.append(x)
            return f32(0)

        return run

    CALLED.clear()


FAILING = """%a : Tensor = onnx::Neg(%x)
      %f : Tensor = test.bulk::Fail(%a)
      %s : Tensor = test.bulk::Spy(%f)"""

IN_ORDER = f"""
graph(%x : Tensor):
      {FAILING}
  return (%s)
"""

IN_A_LOOP = f"""
graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      {FAILING}
      -> (%t, %s)
  return (%y)
"""

BESIDE_ANOTHER = f"""
graph(%x : Tensor):
      {FAILING}
      %b : Tensor = onnx::MatMul(%x, %x)
  return (%s, %b)
"""


@pytest.mark.usefixtures("failing_and_spying")
@pytest.mark.parametrize("watch", [None, Watch()], ids=["alone", "watched"])
@pytest.mark.parametrize("text", [IN_ORDER, IN_A_LOOP], ids=["in order", "in a loop"])
def test_nothing_behind_a_failure_in_the_same_bulk_runs(text: str, watch: Watch | None):
    with pytest.raises(Error, match="it fails") as caught:
        Lowerer(graph_of(text)).plan.run([np.eye(2, dtype=np.float32)], watch=watch)
    assert caught.value.where == "test.bulk::Fail '%f'"
    assert CALLED == []


@pytest.mark.usefixtures("failing_and_spying")
def test_nothing_behind_a_failure_in_the_same_unit_runs_on_threads():
    plan, found = unit_plan(graph_of(BESIDE_ANOTHER))
    kinds = [[node.kind for node, _, _ in unit.code.nodes] for unit in found.units]
    assert ["onnx::Neg", "test.bulk::Fail", "test.bulk::Spy"] in kinds and len(kinds) == 2
    with pytest.raises(Error, match="it fails"), np.errstate(all="ignore"):
        found.call([np.eye(2, dtype=np.float32)], Run(Counters(), threads=2), plan.template, 2)
    assert CALLED == []


def test_what_is_written_in_place_waits_for_its_readers(monkeypatch):
    """Relu over %a would be right on one thread, after MatMul has read it: on two it waits."""
    text = """
    graph(%x : Float(2, 2)):
      %a : Float(2, 2) = onnx::Neg(%x)
      %v : Float(2, 2) = onnx::Transpose(%a)
      %b : Float(2, 2) = onnx::MatMul(%v, %x)
      %c : Float(2, 2) = onnx::Relu(%a)
      %d : Float(2, 2) = onnx::MatMul(%c, %x)
      return (%b, %d)
    """
    plain = dispatch.execute

    def slow(code: Any, frame: Any) -> None:
        if any(node.kind == "onnx::MatMul" and node.outputs[0].name == "b" for node, _, _ in code.nodes):
            time.sleep(0.05)  # whoever does not wait has overwritten %a by then
        plain(code, frame)

    monkeypatch.setattr(dispatch, "execute", slow)
    x = f32([1, 2], [3, -4])
    (b, d), _ = run_units(graph_of(text), [x], 3)
    np.testing.assert_array_equal(b, -x.T @ x)
    np.testing.assert_array_equal(d, np.maximum(-x, 0) @ x)


def test_writes_of_the_graph_are_kept_in_order():
    text = """
    graph(%x : Float(3)):
      %a : Float(3) = onnx::Neg(%x)
      %p : Float(3) = onnx::Exp(%a)
      %b : Float(3) = onnx::Relu_(%a)
      %q : Float(3) = onnx::Exp(%a)
      %c : Float(3) = onnx::Neg_(%b)
      %r : Float(3) = onnx::Abs(%b)
      return (%p, %q, %r)
    """
    plan, found = unit_plan(graph_of(text))
    x = f32(1, -2, 3)
    expected = plan.run([x])
    for threads in (1, 2, 4):
        results = found.call([x], Run(Counters()), plan.template, threads)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)


DELAYS = st.lists(st.sampled_from([0, 0, 0.0005]), min_size=5, max_size=5)


@examples(100)
@given(dense, cuts, st.integers(0, 20), st.none() | st.integers(1, 4), DELAYS)
def test_random_programs_on_threads(
    program: Program, groups: list[Cut], place: int, bulk: int | None, delays: list[float]
):
    """Units in any order that their needs allow, with delays, give what the plan gives, wherever groups are cut."""
    regroup(program.module, groups)
    lowerer = Lowerer(program.graph, guarded=True, bulk=bulk)
    wanted = expected(program, apart=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branches, "split_point", lambda group: place % (len(list(subgraph_of(group).nodes)) + 1))
        plan, unit_plan = branches.in_units(lowerer)
    plain = dispatch.execute

    def delayed(code: Any, frame: Any) -> None:
        time.sleep(delays[len(code.nodes) % 5])
        plain(code, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "execute", delayed)
        for threads in (1, 2, 4):
            counters = Counters()
            inputs = copied(program.inputs())
            with np.errstate(all="ignore"):
                results = unit_plan.call(inputs, Run(counters, threads=threads), plan.template, threads)
            check_same(wanted.run.outputs, results, "outputs", wanted.largest)
            assert counters.overlaps == 0 or threads > 1


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_random_writes_on_threads(data):
    """Operators that write in place, and views of what they write, in units of all sizes, with delays."""
    graph = Graph()
    values = [graph.add_input(types.tensor(DType.FLOAT, (2, 2)), name) for name in "xyz"]
    b = Builder(graph)
    for _ in range(data.draw(st.integers(2, 12))):
        one, two = (data.draw(st.sampled_from(values[-6:])) for _ in range(2))
        kind = data.draw(st.sampled_from(["Neg", "Neg_", "Relu_", "Transpose", "Identity", "Add", "Add_", "Sub_"]))
        operands = (one, two) if kind.startswith(("Add", "Sub")) else (one,)
        values.append(b.op(f"onnx::{kind}", *operands, type=types.tensor(DType.FLOAT, (2, 2))))
    graph.set_outputs(data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=4)))
    lowerer = Lowerer(graph, bulk=data.draw(st.none() | st.integers(1, 3)))
    plan, unit_plan = branches.in_units(lowerer)

    def inputs() -> list[np.ndarray]:
        return [f32([1, -2], [3, 4]), f32([0, 5], [-1, 2]), f32([-6, 1], [1, 1])]

    given = inputs()
    expected = [np.copy(x) for x in lowerer.plan.run(given)]
    delays = data.draw(st.lists(st.sampled_from([0, 0, 0.001]), min_size=3, max_size=3))
    plain = dispatch.execute

    def delayed(code: Any, frame: Any) -> None:
        time.sleep(delays[len(code.nodes[0][0].kind) % 3])
        plain(code, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "execute", delayed)
        for threads in (1, 3):
            mine = inputs()
            results = unit_plan.call(mine, Run(Counters(), threads=threads), plan.template, threads)
            for got, want in zip((*results, *mine), (*expected, *given), strict=True):
                np.testing.assert_array_equal(got, want)


def test_one_model_runs_from_several_threads_at_once():
    model = CompiledModel(graph_of(BRANCHES), options=Options(threads=3))
    rng = np.random.default_rng(1)
    feeds = [dict(zip("xw", rng.standard_normal((2, 4, 4)).astype(np.float32), strict=True)) for _ in range(16)]
    expected = [model.run(feed, threads=1) for feed in feeds]
    found: list[Any] = [None] * len(feeds)

    def one(number: int) -> None:
        found[number] = model.run(feeds[number])

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(feeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    for got, want in zip(found, expected, strict=True):
        for name in want:
            np.testing.assert_array_equal(got[name], want[name])


def test_options_are_taken_by_compile_and_load(tmp_path):
    options = irc.Options(threads=2, bulk=3)
    model = irc.compile(graph_of(BRANCHES), "none", options=options)
    assert model.options is options
    path = tmp_path / "m.irc"
    model.save(path)
    assert irc.load(path).options == Options()
    assert irc.load(path, options).options is options


# -- interrupts and callbacks ------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_another_thread_works_leaves_the_model_usable(monkeypatch):
    """Ctrl-C reaches the caller while it waits for a worker: it waits until that has ended, and no longer."""
    model = CompiledModel(graph_of(BRANCHES), options=Options(threads=2))
    x, w = np.random.default_rng(3).standard_normal((2, 4, 4)).astype(np.float32)
    expected = model.run({"x": x, "w": w})
    working, go_on = threading.Event(), threading.Event()
    begun: list[Any] = []
    ended: list[Any] = []
    plain = dispatch.execute

    def slow(code: Any, frame: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            begun.append(code)
            working.set()
            assert go_on.wait(WAIT)
            ended.append(code)
        elif any(node.kind == "onnx::MatMul" for node, _, _ in code.nodes):
            assert working.wait(WAIT)
        plain(code, frame)

    def interrupt() -> None:
        assert working.wait(WAIT)
        time.sleep(0.1)  # so that the caller has nothing left to do but wait; it would not matter
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)
        go_on.set()

    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "execute", slow)
        timer = threading.Thread(target=interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.run({"x": x, "w": w})
        assert begun
        assert ended == begun
        timer.join(WAIT)
    for _ in range(2):
        found = model.run({"x": x, "w": w})
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("method", ["enter", "before", "after"])
def test_a_watch_that_raises_ends_the_run_and_nothing_else(method):
    class Raising(Watch):
        pass

    def fail(*arguments: Any) -> None:
        raise RuntimeError("a callback")

    setattr(Raising, method, fail)
    plan = Lowerer(graph_of(BRANCHES)).plan
    x = np.eye(4, dtype=np.float32)
    with pytest.raises(Exception, match="a callback"):
        plan.run([x, x], watch=Raising())
    y, d = plan.run([x, x])
    np.testing.assert_array_equal(y, d)


@pytest.mark.parametrize("files", ["dispatch.py", "workers.py"])
def test_an_interrupt_behind_any_call_ends_the_run_and_nothing_else(files):
    """Whatever the caller is about to do with what it shares with the workers: nobody waits for ever."""
    model = CompiledModel(graph_of(BRANCHES), options=Options(threads=2))
    x, w = np.random.default_rng(3).standard_normal((2, 4, 4)).astype(np.float32)
    expected = model.run({"x": x, "w": w})
    for at in range(1, 10_000):
        outcome: list[Any] = []
        caller = threading.Thread(target=_interrupted, args=(lambda: model.run({"x": x, "w": w}), at, files, outcome))
        caller.start()
        caller.join(WAIT)
        assert not caller.is_alive(), f"it waits for ever after an interrupt at place {at}"
        if outcome[0] is not None:
            break
    assert at > 5
    for found in (outcome[0], model.run({"x": x, "w": w})):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


def _interrupted(action: Callable[[], Any], at: int, files: str, outcome: list[Any]) -> None:
    """Note what ``action`` gives, or None if it came to the ``at``-th place in such files: there it is stopped.

    A place is where Python looks for signals: behind a call. Where it does so at the end of a ``with``, or of a loop at
    the end of one, it is still inside of it, but what is raised before the next instruction is not.
    """
    places, called = 0, False

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal places, called
        code, offset = frame.f_code, frame.f_lasti
        if not code.co_filename.endswith((files, "threading.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[code.co_code[offset]]
            line = linecache.getline(code.co_filename, frame.f_lineno or 0).lstrip()
            places += called and name != "NOP" and not line.startswith("with ")
            called = name.startswith("CALL")
            if places == at:
                places += 1
                raise KeyboardInterrupt
        return trace

    sys._getframe().f_trace_opcodes = True  # early releases of Python 3.12 look for this in `settrace` only
    sys.settrace(trace)
    try:
        outcome.append(action())
    except KeyboardInterrupt:
        outcome.append(None)
    finally:
        sys.settrace(None)
