"""What a profile says about a run: by a clock that ticks once whenever it is read, so that figures are exact."""

import gc
import json
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import irc
from irc.errors import Error
from irc.ir import Node
from irc.ops import register
from irc.runtime.execution import Frame, Observer, Run, Slots
from irc.runtime.kernels.registry import kernel
from irc.runtime.limits import ArrayBytes
from irc.runtime.model import CompiledModel
from irc.runtime.plan import lower
from irc.runtime.profile import Event, NodeProfile, Profile, Profiler, trace_events
from tests.counting import calls
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.operators import operator_of
from tests.programs.generator import Program, programs
from tests.runtime.helpers import graph_of, i64, model_of, module_of, observed_run


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


def test_iterations_are_calls():
    found = profile(LOOP, np.ones(3, np.float32), 5)
    (loop, exp) = found.nodes
    assert (exp.calls, exp.own, exp.total) == (5, 5, 5)
    assert (loop.calls, loop.own) == (1, 6)
    assert [row.kind for row in found.by_operator()] == ["prim::Loop", "onnx::Exp"]
    assert found.by_operator()[1][1:4] == (1, 5, 5)
    assert len(found.events) == 6


DEEP = ir("""
    x: Tensor; k: bool; n: int -> b
    t: bool = prim.Constant(value=1); y = prim.Loop(n, t, x)
    with block(i=int, p=Tensor):
        z = prim.If(k)
        with block():
            w = prim.If(k)
            with block(): a = Exp(p); yield a
            with block(): yield p
            yield w
        with block(): yield p
        yield t, z
    b = Neg(y)
""")


def test_the_total_of_a_node_holds_all_that_is_inside_however_deep():
    found = profile(DEEP, np.ones(3, np.float32), np.array(True), 2)
    own = {name: own for name, (_, own, _) in rows(found).items()}
    total = {name: total for name, (_, _, total) in rows(found).items()}
    assert total["w"] == own["w"] + own["a"]
    assert total["z"] == own["z"] + total["w"]
    assert total["y"] == own["y"] + total["z"]
    outermost = [node for node in found.nodes if node.within is None]
    assert [node.kind for node in outermost] == ["prim::Loop", "onnx::Neg"]
    assert sum(node.total for node in outermost) == found.own == sum(own.values())


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


GROUP = ir(
    "x, c: Tensor",
    "y = FusionGroup_0(x, c); z = Softmax(y)",
    "z",
    FusionGroup_0=("x, c: Tensor", "y = Add(Sigmoid(Mul(Relu(x), c)), x)", "y"),
)


def test_members_of_a_group():
    x = np.ones((4, 4), np.float32)
    found = profile(GROUP, x, x)
    (group,) = found.by_group()
    assert sorted(m.kind for m in group.members) == ["onnx::Add", "onnx::Mul", "onnx::Relu", "onnx::Sigmoid"]
    assert all(m.group is group.node and m.own == 1 for m in group.members)
    assert (group.node.own, group.node.total, group.node.calls) == (0, 4, 1)
    assert [n.kind for n in found.nodes if n.group is None] == ["prim::FusionGroup", "onnx::Softmax"]


def test_an_error_ends_the_run_and_says_what_it_always_says():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(Error, match="MatMul"):
        profile("graph(%x : Tensor):\n  %y : Tensor = onnx::MatMul(%x, %x)\n  return (%y)\n", x)


def test_from_a_model():
    model = model_of(GROUP.replace(" : Tensor", " : Float(4, 4)"))
    feeds = {"x": np.ones((4, 4), np.float32), "c": np.ones((4, 4), np.float32)}
    found = model.profile(feeds)
    np.testing.assert_array_equal(found.outputs["z"], model.run(feeds)["z"])
    assert found.elapsed > 0
    assert found.counters.units == model.counters.units == 1
    assert model.profile(feeds, ["z"]).peak <= 3 * 64
    with pytest.raises(Error, match="IRC411"):
        model.profile(feeds, ["y"])


# -- memory --------------------------------------------------------------------


def test_memory_is_counted_once_and_until_it_is_given_back():
    text = ir("x, n: Tensor", "e = Exp(ReduceSum(Softmax(Reshape(Softmax(x), n))))", "e")
    found = profile(text, np.ones((10, 10), np.float32), i64([100]))
    assert found.peak == 2 * 400  # %a, which %v is a view of, and %m
    assert [n.bytes for n in found.nodes] == [400, 0, 400, 4, 0]  # Exp writes over its operand
    assert [alive for _, alive in found.memory] == [0, 400, 800, 400, 404, 4]


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


GROWING = {
    "appended": ("", "%a : Tensor[] = aten::append(%l, %y)", "-> (%t)"),
    "carried": (", %l", "%a : Tensor[] = aten::append(%c, %y)", "-> (%t, %a)"),
    "in another": (
        "",
        """%o : Tensor[][] = prim::ListConstruct(%l)
      %s : Tensor[] = aten::__getitem__(%o, %zero)
      %a : Tensor[] = aten::append(%s, %y)""",
        "-> (%t)",
    ),
    "in branches": (
        "",
        """%b : Tensor[] = prim::If(%t)
        block0():
          -> (%l)
        block1():
          -> (%l)
      %a : Tensor[] = aten::append(%b, %y)""",
        "-> (%t)",
    ),
}


@pytest.mark.parametrize(("carried", "body", "returns"), GROWING.values(), ids=GROWING)
def test_lists_that_grow_are_not_looked_into_again(carried: str, body: str, returns: str) -> None:
    text = f"""
    graph(%x : Tensor, %n : int):
      %t : bool = prim::Constant[value=1]()
      %zero : int = prim::Constant[value=0]()
      %l : Tensor[] = prim::ListConstruct()
      {"%r : Tensor[]" if carried else ""} = prim::Loop(%n, %t{carried})
        block0(%i : int{", %c : Tensor[]" if carried else ""}):
          %y : Tensor = aten::neg(%x)
          {body}
          {returns}
      return (%l)
    """
    model = model_of(text)

    def work(n: int) -> int:
        feeds = {"x": np.ones(2, np.float32), "n": n}
        profile = model.profile(feeds)
        assert profile.peak == 8 * n and profile.allocations == n
        return calls(lambda: model.profile(feeds))

    assert work(400) < 5 * work(100)


def test_arrays_in_lists_that_operators_make_count() -> None:
    register(operator_of("test::two(Tensor x) -> Tensor[]"))
    kernel("test::two")(lambda node: lambda x: [x + 1, x + 2])
    model = model_of("graph(%x : Tensor):\n  %l : Tensor[] = test::two(%x)\n  return (%l)")
    found = model.profile({"x": np.ones(4, np.float32)})
    assert (found.peak, found.allocations) == (32, 2)


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


LASTING = {
    "a copy": ("%v : Float(64, 2) = onnx::Reshape(%t, %n)", 3 * 512),  # t is not needed after v, nor a after t
    "a view": ("%v : Float(64, 2) = onnx::Reshape(%a, %n)", 2 * 512),
}


@pytest.mark.parametrize(("line", "least"), LASTING.values(), ids=LASTING)
def test_a_place_is_needed_as_long_as_something_may_show_it(line: str, least: int) -> None:
    """The plan does not know whether a Reshape is a copy."""
    model = model_of(f"""
graph(%x : Float(8, 16), %n : Long(2)):
  %a : Float(8, 16) = onnx::Softmax(%x)
  %t : Float(16, 8) = onnx::Transpose[perm=[1, 0]](%a)
  {line}
  %w : Float(64, 2) = onnx::Softmax(%v)
  %u : Float(64, 2) = onnx::Softmax(%w)
  %s : Tensor = onnx::ReduceSum(%u)
  return (%s)
""")
    feeds = {"x": np.ones((8, 16), np.float32), "n": i64([64, 2])}
    first = model.profile(feeds)
    assert first.least == first.peak == 2 * 512
    model.run(feeds)
    model.run(feeds)
    planned = model.profile(feeds)
    assert planned.counters.planned > 0
    assert planned.least == least
    assert planned.peak >= least


def test_what_groups_need_at_least() -> None:
    model = model_of(
        ir("""
        x: Float(40, 24); k: bool -> s
        a: Float(40, 24) = Softmax(x); y: Float(40, 24) = FusionGroup_0(x, a); b: Float(40, 24) = prim.If(k)
        with block():
            c: Float(40, 24) = Softmax(y); d: Float(40, 24) = Softmax(c); e: Float(40, 24) = Add(d, y); yield e
        with block(): yield y
        s = ReduceSum(b)

        with FusionGroup_0 | x, a: Float(40, 24) -> y
        b: Float(40, 24) = Softmax(x); c: Float(40, 24) = Sigmoid(b); y: Float(40, 24) = Add(c, a)
    """)
    )
    feeds = {"x": np.ones((40, 24), np.float32), "k": True}
    for runs in range(3):
        found = model.profile(feeds)
        assert found.least == 3 * 40 * 24 * 4  # y, c and d
        assert (found.counters.planned > 0) == (runs > 0)
        model.run(feeds)


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


def test_in_place_forms_count_in_branches_iterations_and_calls() -> None:
    text = ir("""
        x: Float(3); k: bool; n: int -> e
        f: Function = prim.Constant(name="double"); a: Float(3) = Neg(x); b: Float(3) = prim.If(k)
        with block(): p: Float(3) = Exp_(a); q: Float(3) = relu_(p); yield q
        with block(): yield a
        c: Float(3) = prim.Loop(n, True, b)
        with block(i=int, u=Float(3)): v: Float(3) = Relu_(u); w: Float(3) = Softmax(v); yield True, w
        d: Float(3) = prim.CallFunction(f, c); e: Float(3) = Squeeze(d)

        double | x: Float(3) -> y
        y: Float(3) = Add_(x, x)
    """)
    found = profile(text, np.ones(3, np.float32), np.array(True), 5)
    assert places(found) == {
        "a": (0, 1),
        "p": (1, 0),
        "q": (1, 0),
        "b": (0, 0),
        "v": (5, 0),
        "w": (0, 5),
        "c": (0, 0),
        "y": (1, 0),
        "d": (0, 0),
        "e": (0, 0),  # a view
    }
    counters = Run()
    lower(module_of(text, {}, verify=False).main).run([np.ones(3, np.float32), np.array(False), 2], counters)
    assert counters.in_place == 2 + 1


TWINS = ir(
    "x, c: Tensor",
    "y, r = FusionGroup_0(x, c)",
    "y, r",
    FusionGroup_0=("x, c: Tensor", "a = Softmax(x); b = Exp_(a); s = Sigmoid(b); y = Add(s, c); r = Mul(s, y)", "y, r"),
)


def test_members_count_results() -> None:
    x = np.ones((40, 24), np.float32)
    found = profile(TWINS, x, x)
    assert places(found) == {"a": (0, 1), "b": (1, 0), "s": (1, 0), "y": (0, 1), "r": (1, 0)}
    counters = Run()
    plan = lower(module_of(TWINS, {}).main)
    with np.errstate(all="ignore"):
        plan.call([x, x], counters)
    assert (counters.in_place, counters.kernels) == (found.counters.in_place, 5)


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


def test_profiles_are_plain_data():
    found = profile(GROUP, np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    data = json.loads(json.dumps(found.to_dict()))
    assert {row["kind"] for row in data["operators"]} == {n.kind for n in found.nodes}
    assert {row["group"] for row in data["nodes"]} == {None, "prim::FusionGroup '%y'"}


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
