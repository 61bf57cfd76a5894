"""Function calls and fusion groups."""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Builder, DType, Module, Node, parse_graph, types
from irc.runtime.execution import Frame, Observer, Slots
from irc.runtime.plan import lower
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32, graph_of, observed_run, run

FLOAT = types.tensor(DType.FLOAT)

CALLS = """
graph(%x : Float(2)):
  %f : Function = prim::Constant[name="my.domain.Twice"]()
  %a : Float(2), %b : Float(2) = prim::CallFunction(%f, %x)
  %c : Float(2), %d : Float(2) = prim::CallFunction(%f, %a)
  return (%c, %d, %b)

graph my.domain.Twice(%x : Float(2)):
  %g : Function = prim::Constant[name="Add1"]()
  %t : Float(2) = onnx::Add(%x, %x)
  %u : Float(2) = prim::CallFunction(%g, %t)
  return (%u, %x)

graph Add1(%x : Float(2)):
  %one : Float(2) = prim::Constant[value=splat<Float(2)>(1.)]()
  %y : Float(2) = onnx::Add(%x, %one)
  return (%y)
"""


def test_functions_may_call_themselves():
    text = ir("""
        n: int -> y
        f: Function = prim.Constant(name="factorial"); y: int = prim.CallFunction(f, n)

        factorial | n: int -> y
        f: Function = prim.Constant(name="factorial"); stop: bool = le(n, 1); y: int = prim.If(stop)
        with block(): yield 1
        with block(): less: int = sub(n, 1); r: int = prim.CallFunction(f, less); p: int = mul(n, r); yield p
    """)
    plan = lower(graph_of(text))
    assert plan.run([5]) == [120]
    with pytest.raises(Error, match="nested too deeply"):
        plan.run([100_000])
    assert plan.run([4]) == [24]


CHOSEN = ir("""
    c: bool; x: Float(2) -> y
    f: Function = prim.Constant(name="Neg"); g: Function = prim.Constant(name="Abs"); h: Function = f if c else g
    y: Float(2) = prim.CallFunction(h, x)

    Neg | x: Float(2) -> y
    y: Float(2) = Neg(x)

    Abs | x: Float(2) -> y
    y: Float(2) = Abs(x)
""")


def test_unknown_functions_are_refused():
    module = Module()
    b = Builder(module.main)
    f = b.op("prim::Constant", type=types.FUNCTION, attributes={"name": "nowhere"})
    module.main.set_outputs([b.op("prim::CallFunction", f, type=FLOAT)])
    with pytest.raises(Error, match="no function 'nowhere'"):
        lower(module.main)


@pytest.mark.parametrize("inputs", [0, 2])
def test_calls_with_wrong_numbers_of_arguments_are_refused(inputs):
    text = CALLS.replace("prim::CallFunction(%g, %t)", f"prim::CallFunction(%g{', %t' * inputs})")
    with pytest.raises(Error, match=f"IRC213: .* must have 2 inputs here, not {inputs + 1}"):
        run(text, f32(1, 2), verify=False)
    text = CHOSEN.replace("prim::CallFunction(%h, %x)", f"prim::CallFunction(%h{', %x' * inputs})")
    with pytest.raises(Error, match=f"IRC434: .*takes 1 values, not {inputs}"):
        run(text, True, f32(1, 2))


RETURNS = ir("""
    x, z, unread: Float(2) -> b, c, d, g
    a: Float(2) = Neg(x)
    b[Float(2)], c[Float(2)], d[Float(2)], e[Float(2)], f[Float(2)] = prim.FusionGroup_0(a, z, z, unread)
    g: Float(2) = Add(b, e)

    with FusionGroup_0 | p, q, r, s: Float(2) -> n, n, q, p, two
    two: Float(2) = prim.Constant(value=tensor([2, 2])); m: Float(2) = Mul(p, q); n: Float(2) = Add(m, r)
""")


def test_a_group_makes_what_it_returns_where_the_graph_around_it_wants_it():
    """Nothing is put from slot to slot but what it does not make itself, or returns twice."""
    plan = lower(graph_of(RETURNS))
    assert len(plan.template) == len(["run", *"xzu", *"abcdef", *"g", "two", "m"])
    for _ in range(2):
        results = plan.run([f32(1, -1), f32(3, 4), f32(0, 0)])
        assert [r.tolist() for r in results] == [[0, 8], [0, 8], [3, 4], [-1, 9]]


class _Seen(Observer):
    def __init__(self) -> None:
        self.left: list[int] = []

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        if node.kind == "onnx::Add" and node.output.name == "g":
            self.left.append(sum(value is not None for value in frame[1:]))


def test_a_group_leaves_nothing_behind_that_nobody_reads():
    plan, seen = lower(graph_of(RETURNS)), _Seen()
    plan.run([f32(1, -1), f32(3, 4), f32(0, 0)], observed_run(seen))
    assert seen.left == [len(["b", "c", "d", "e", "two"])]


def test_one_subgraph_may_serve_two_groups():
    negated = ("x: Float(3)", "a = Neg(x); b = Add(a, a)", "b")
    other = ("x: Float(3)", "", "x")
    calls = "a = FusionGroup_0(x); b = FusionGroup_1(a)"
    graph = graph_of(typed_ir("x: Float(3)", calls, "a, b", FusionGroup_0=negated, FusionGroup_1=other))
    first, second = graph.nodes
    second.attributes["Subgraph"] = first.attributes["Subgraph"]
    a, b = lower(graph).run([f32(1, 2, 3)])
    assert a.tolist() == [-2, -4, -6] and b.tolist() == [4, 8, 12]


def test_what_a_group_reads_is_not_overwritten_in_it_if_its_subgraph_serves_another_too():
    squared, other = ("x: Float(3)", "y = Mul(x, x)", "y"), ("x: Float(3)", "", "x")
    calls = "a = Neg(x); p = FusionGroup_0(a); q = FusionGroup_1(Add(x, x)); t = Add(q, Add(p, a))"
    graph = graph_of(typed_ir("x: Float(3)", calls, "t", FusionGroup_0=squared, FusionGroup_1=other))
    first, second = (node for node in graph.nodes if node.kind == "prim::FusionGroup")
    second.attributes["Subgraph"] = first.attributes["Subgraph"]
    (t,) = lower(graph).run([f32(1, 2, 3)])
    assert t.tolist() == [1 + 4 - 1, 4 + 16 - 2, 9 + 36 - 3]


@pytest.mark.parametrize("value", ["3", "[1, 2]", '"fused"'])
def test_what_other_operators_call_a_subgraph_is_an_attribute_like_any_other(value: str) -> None:
    listed = f'l: "Tensor[]" = prim.ListConstruct(Neg(x), Subgraph={value})'
    body = f"{listed}; d = Neg(Softmax(prim.ListUnpack(l, Subgraph={value})))"
    model = irc.compile(parse_graph(typed_ir("x: Float(2)", body, "d")))
    for _ in range(3):  # the later ones in planned memory
        assert model.run({"x": f32(1, 1)})["d"].tolist() == [-0.5, -0.5]
    model.profile({"x": f32(1, 1)})


def test_groups_may_give_nothing() -> None:
    text = """
    graph(%x : Float(2)):
      %a : Float(2) = onnx::Neg(%x)
       = prim::FusionGroup_0(%a)
      return (%a)
    with prim::FusionGroup_0 = graph(%a : Float(2)):
      %w : Float(2) = aten::relu_(%a)
      return ()
    """
    model = irc.compile(parse_graph(text))
    (group,) = model.report.groups
    assert (group.result, group.operators) == ("", ["aten::relu_"])
    assert model.run({"x": f32(1, -2)})["a"].tolist() == [0, 2]


def test_groups_may_hold_groups_and_blocks_and_all_that_is_in_them_is_counted() -> None:
    model = irc.compile(
        parse_graph(
            ir("""
            x: Float(2); n: Long() -> y, z
            y[Float(2)], z = prim.FusionGroup_0(x, n)

            with FusionGroup_0 | x: Float(2); n: Long() -> y, z
            t: Bool() = prim.Constant(value=splat(1)); z = Loop(n, t)
            with block(i=Long(), c=Bool()): v = Neg(x); yield t, v
            y: Float(2) = prim.FusionGroup_0(x)

            with FusionGroup_0 | x: Float(2) -> y
            y: Float(2) = Abs(x)
        """)
        ),
        "none",
    )
    assert model.report.operators_after == {"onnx::Abs": 1, "onnx::Loop": 1, "onnx::Neg": 1}
    y, z = model.run({"x": f32(-1, 2), "n": np.array(0)}).values()
    assert y.tolist() == [1, 2]
    assert (z.shape, z.dtype) == ((0, 2), np.float32)  # a stack of nothing has its type from inside
