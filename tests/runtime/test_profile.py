"""What a profile says about a run: by a clock that ticks once whenever it is read, so that figures are exact."""

import gc
from itertools import count
from typing import Any

import numpy as np
from hypothesis import given

from irc.ir import Node
from irc.runtime.execution import Frame, Observer, Run, Slots
from irc.runtime.limits import ArrayBytes
from irc.runtime.model import CompiledModel
from irc.runtime.plan import lower
from irc.runtime.profile import Profile, Profiler
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.programs.generator import Program, programs
from tests.runtime.helpers import graph_of, model_of, module_of, observed_run


def ticking() -> Profiler:
    return Profiler(count().__next__)


def profile(text: str, *inputs: Any) -> Profile:
    graph = module_of(text, {}, verify=False).main
    plan = lower(graph)
    profiler = ticking()
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
    assert planned.arena == planned.counters.arena_bytes == 2 * 256
    assert first.arena == 0
    assert planned.peak >= first.peak  # all three, while c is made
    data = planned.to_dict()
    assert (data["peak_bytes"], data["arena_bytes"]) == (planned.peak, 512)
    assert "1 allocation, 2 results in 512 bytes of planned memory, at most 512" in str(planned)
    np.testing.assert_array_equal(planned.outputs["c"], first.outputs["c"])


@examples(40)
@given(programs())
def test_nodes_in_place_are_those_that_runs_count(program: Program) -> None:
    model = CompiledModel(program.module)
    names = [v.name for v in program.graph.inputs]
    for seed in range(3):
        feeds = dict(zip(names, program.refilled(seed).inputs()))
        model.run(feeds)
        found = model.profile(feeds)
        assert found.peak >= found.arena
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
    assert sum(n.calls for n in ran) == sum(counting.calls.values())
    assert len(ran) == len(counting.calls)
    assert all(n.kind == "prim::FusionGroup" for n in found.nodes if not n.own)
    assert all(n.calls > 0 and n.own <= n.total for n in found.nodes)
    for group in found.by_group():
        assert group.node.total == group.node.own + sum(m.total for m in group.members if m.within is group.node)
    assert sum(n.own for n in found.nodes) + found.following + found.between == found.elapsed
    assert found.between > 0
    assert sum(row.own for row in found.by_operator()) == found.own
    assert sum(n.in_place for n in found.nodes) == counters.in_place
