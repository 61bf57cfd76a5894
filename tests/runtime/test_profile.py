"""What a profile says about a run: by a clock that ticks once whenever it is read, so that figures are exact."""

import gc
import json
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import irc
from irc.ir import Node
from irc.runtime.execution import Frame, Observer, Run, Slots
from irc.runtime.limits import ArrayBytes
from irc.runtime.model import CompiledModel
from irc.runtime.plan import lower
from irc.runtime.profile import Event, NodeProfile, Profile, Profiler, trace_events
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.programs.generator import Program, programs
from tests.runtime.helpers import graph_of, model_of, module_of, observed_run


def ticking() -> Profiler:
    return Profiler(count().__next__)


def profile(text: str, *inputs: Any, most_events: int = 1000) -> Profile:
    graph = module_of(text, {}, verify=False).main
    plan = lower(graph)
    profiler = Profiler(count().__next__, most_events)
    counters = observed_run(profiler)
    profiler.start(graph, inputs, counters)
    with np.errstate(all="ignore"):
        outputs = plan.call(inputs, counters)
    return profiler.finish({str(i): x for i, x in enumerate(outputs)})


def rows(found: Profile) -> dict[str, tuple[int, int, int]]:
    """Name -> calls, own, total."""
    return {n.label.split("'")[1].strip("%"): (n.calls, n.own, n.total) for n in found.nodes}


IF = ir("""
    x: Tensor; k: bool -> z
    y = Relu(x); z = prim.If(k)
    with block(): a = Exp(y); b = Neg(a); yield b
    with block(): yield y
""")


def test_own_time_is_without_the_steps_inside():
    found = profile(IF, np.ones(3, np.float32), np.array(True))
    # A call lasts for one tick. The If waits for a tick before, between and after its two steps; what it takes to
    # follow these, two ticks each, is nobody's.
    assert rows(found) == {"y": (1, 1, 1), "z": (1, 3, 5), "a": (1, 1, 1), "b": (1, 1, 1)}
    assert found.own + found.following + found.between == found.elapsed
    assert found.following == 2 * 4
    assert found.between == 3  # before the first step, between the two, after the last


def test_nodes_know_where_they_ran_and_on_what():
    found = profile(IF, np.ones(3, np.float32), np.array(True))
    nodes = {n.kind: n for n in found.nodes}
    assert nodes["onnx::Exp"].within is nodes["prim::If"]
    assert nodes["onnx::Relu"].within is None
    assert nodes["onnx::Exp"].inputs == ("float32[3]",)
    assert profile(IF, np.ones(3, np.float32), np.array(False)).by_node()[0].kind in ("onnx::Relu", "prim::If")


LOOP = ir("""
    x: Tensor; n: int -> y
    t: bool = prim.Constant(value=1); y = prim.Loop(n, t, x)
    with block(i=int, p=Tensor): q = Exp(p); yield t, q
""")


def test_a_function_that_calls_itself_is_not_counted_twice():
    """By hand: of a node inside of its own call, the outer call's time holds the inner one's."""
    graph = graph_of(LOOP)
    node = next(n for n in graph.nodes if n.kind == "prim::Loop")
    clock = iter([0, 10, 11, 20, 21, 50, 51, 90, 91, 100])
    profiler = Profiler(clock.__next__)
    profiler.before(node, [None], ())  # follows from 10 to 11
    profiler.before(node, [None], ())  # from 20 to 21
    profiler.after(node, [None], ())  # from 50 to 51
    profiler.after(node, [None], ())  # from 90 to 91
    (found,) = profiler.finish({}).nodes
    inner, outer = 50 - 21, (90 - 11) - (51 - 20)
    assert (found.calls, found.own, found.total) == (2, inner + outer, inner + outer)


# -- memory --------------------------------------------------------------------


def test_memory_inside_of_blocks_counts():
    text = ir("""
        x: Tensor; k: bool -> z
        z = prim.If(k)
        with block(): c = ReduceSum(MatMul(Softmax(x), x)); yield c
        with block(): yield x
    """)
    x = np.ones((10, 10), np.float32)
    found = profile(text, x, np.array(True))
    assert found.peak == 800
    assert next(n for n in found.nodes if n.kind == "prim::If").bytes == 0  # its result is a step's inside
    assert profile(text, x, np.array(False)).peak == 0  # nothing but the caller's


def test_planned_memory_is_alive_from_the_start_and_no_results_own():
    model = model_of(typed_ir("x: Float(8, 8)", "a = MatMul(x, x); c = MatMul(MatMul(a, x), a)", "c"))
    feeds = {"x": np.eye(8, dtype=np.float32)}
    first = model.profile(feeds)
    assert (first.allocations, first.peak) == (3, 3 * 256)
    model.run(feeds)
    planned = model.profile(feeds)
    assert planned.counters.planned == 2
    assert planned.allocations == 1  # the output, which leaves
    assert planned.memory[1][1] >= planned.arena == planned.counters.arena_bytes == 2 * 256
    assert first.arena == 0
    assert first.least == planned.least == 3 * 256  # all three, while c is made
    assert planned.peak >= planned.least
    data = planned.to_dict()
    assert (data["peak_bytes"], data["arena_bytes"], data["least_bytes"]) == (planned.peak, 512, 768)
    bounds = "results alive at one time need 768\n1 allocation, 2 results in 512 bytes of planned memory, at most 512"
    assert bounds in str(planned)
    assert planned.memory[1][0] <= planned.events[0].start
    np.testing.assert_array_equal(planned.outputs["c"], first.outputs["c"])


@examples(40)
@given(programs())
def test_no_run_takes_less_than_is_needed_at_least(program: Program) -> None:
    model = CompiledModel(program.module)
    names = [v.name for v in program.graph.inputs]
    unplanned = model.profile(dict(zip(names, program.refilled(0).inputs())))
    assert unplanned.least == unplanned.peak
    for seed in range(3):
        feeds = dict(zip(names, program.refilled(seed).inputs()))
        model.run(feeds)
        found = model.profile(feeds)
        assert found.least <= found.peak
        assert sum(n.in_place for n in found.nodes) == found.counters.in_place


def test_live_bytes_follow_arrays():
    live = ArrayBytes()
    a, b = np.zeros(10), np.zeros(20)
    live.disown([b, [b]])  # more than once: nothing is subtracted that was not counted
    assert live.now == 0
    assert live.count([a[2:], [a, (b[::2], "text")], {"k": a}]) == 80
    assert live.count([a]) == 0
    assert live.arrays == 1
    view = a[5:]
    del a
    gc.collect()
    assert live.now == 80
    live.disown([view, [view]])
    assert live.now == 0
    del view, b
    assert live.now == 0


# -- in place ------------------------------------------------------------------


EXPANDED = typed_ir("x: Float(4, 4)", "a = Softmax(x); b = Add(a, x); c = Exp(b); s = Shape(a); e = Expand(c, s)", "e")


def places(found: Profile) -> dict[str, tuple[int, int]]:
    """Name -> results in place, fresh results."""
    assert sum(n.in_place for n in found.nodes) == found.counters.in_place
    assert sum(row.in_place for row in found.by_operator()) == found.counters.in_place
    return {n.label.split("'")[1].strip("%"): (n.in_place, n.fresh) for n in found.nodes}


@pytest.mark.parametrize("passes", ["none", "reorder", "in-place", "reorder,in-place"])
def test_results_over_operands_count_whoever_has_found_them(passes: str) -> None:
    model = irc.compile(module_of(EXPANDED, {}), passes=passes)
    feeds = {"x": np.ones((4, 4), np.float32)}
    found = model.profile(feeds)
    b = (1, 0) if "reorder" in passes else (0, 1)  # it writes over the operand of Shape only after that
    assert places(found) == {"a": (0, 1), "b": b, "c": (1, 0), "s": (0, 1), "e": (0, 0)}
    model.run(feeds)
    assert model.counters.in_place == 1 + b[0]
    model.run(feeds)
    planned = model.profile(feeds)
    assert planned.counters.in_place == model.counters.in_place
    assert planned.counters.planned == (2 if "in-place" not in passes else "reorder" not in passes)
    if "in-place" in passes:
        assert places(planned) == places(found)
    else:  # the output is in memory of its own
        assert places(planned) == places(found) | {"c": (0, 1)}


# -- the trace -----------------------------------------------------------------


def test_a_trace_is_json_with_nested_events(tmp_path):
    found = profile(IF, np.ones(3, np.float32), np.array(True))
    found.save_trace(tmp_path / "trace.json")
    content = json.loads((tmp_path / "trace.json").read_text("ascii"))
    assert content["traceEvents"] == list(trace_events(found))
    calls = [e for e in content["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in calls] == ["Relu", "prim::If", "Exp", "Neg"]
    outer, *inner = calls[1:]
    assert all(outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] for e in inner)
    assert [e["args"]["within"] for e in inner] == ["prim::If '%z'"] * 2
    memory = [e for e in content["traceEvents"] if e["ph"] == "C"]
    assert [e["args"]["bytes alive"] for e in memory] == [alive for _, alive in found.memory]
    assert [e["args"]["name"] for e in content["traceEvents"] if e["ph"] == "M"] == ["run"]


def test_no_more_events_than_asked_for():
    found = profile(LOOP, np.ones(3, np.float32), 50, most_events=7)
    assert (len(found.events), len(found.nodes)) == (7, 2)
    assert found.nodes[1].calls == 50
    assert found.dropped >= 51 - 7
    assert len(found.memory) <= 7


# -- always --------------------------------------------------------------------


class _Counting(Observer):
    def __init__(self) -> None:
        self.calls: dict[Node, int] = {}

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        if not node.is_return:
            self.calls[node] = self.calls.get(node, 0) + 1


@examples(60)
@given(programs())
def test_every_call_is_counted_and_every_moment_once(program: Program) -> None:
    plan = lower(program.graph)
    plan.run(program.inputs(program.memory()))  # what groups make of constants alone is kept: no later run computes it
    counting, profiler = _Counting(), ticking()
    plan.run(program.inputs(program.memory()), observed_run(counting))
    counters = Run()
    inputs = program.inputs(program.memory())
    profiler.start(program.graph, inputs, counters)
    counters.observer = profiler
    plan.run(inputs, counters)
    found = profiler.finish({})
    ran = [n for n in found.nodes if n.own]
    assert sum(n.calls for n in ran) == sum(counting.calls.values()) == len(found.events)
    assert len(ran) == len(counting.calls)
    assert all(n.kind == "prim::FusionGroup" for n in found.nodes if not n.own)
    assert all(n.calls > 0 and n.own <= n.total for n in found.nodes)
    for group in found.by_group():
        assert group.node.total == group.node.own + sum(m.total for m in group.members if m.within is group.node)
    assert sum(n.own for n in found.nodes) + found.following + found.between == found.elapsed
    assert found.between > 0
    assert sum(row.own for row in found.by_operator()) == found.own
    assert found.peak >= max(alive for _, alive in found.memory)
    assert sum(n.in_place for n in found.nodes) == counters.in_place
    assert found.least == found.peak
    check_nesting(found)


def check_nesting(found: Profile) -> None:
    """Fail unless calls lie within each other or apart, and within the node around theirs."""
    open_calls: list[Event] = []
    for event in sorted(found.events, key=lambda e: e.start):
        while open_calls and open_calls[-1].end < event.start:
            open_calls.pop()
        if open_calls:
            assert event.end < open_calls[-1].end
            assert within(event.node, open_calls[-1].node)
        open_calls.append(event)


def within(node: NodeProfile, around: NodeProfile) -> bool:
    return node.within is not None
