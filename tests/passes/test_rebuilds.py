"""Passes keep the alias analysis they were lent: counters, never clocks."""

import gc
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import irc
from irc.alias import AliasDb, AliasDbBuilder
from irc.frontend.torchscript import import_torchscript
from irc.ir import Node, Tensor, parse_module, types
from irc.passes import Instrument, PassContext, PassManager, create_instruments
from irc.passes.constant_fold import ConstantFold
from tests.counting import analyses
from tests.graphs import ir, ir_graph
from tests.passes.helpers import kinds, parse_graph

T = "Float(4)"


def test_dropping_branches_builds_no_further_analysis() -> None:
    """Each If holds a write and something that acts on the world, which then stand in the block around it."""
    lines = [f"graph(%x : {T}):", "  %c : bool = prim::Constant[value=1]()", '  %s : str = prim::Constant[value="!"]()']
    lines.append(f"  %v0 : {T} = aten::neg(%x)")
    for i in range(30):
        lines += [
            f"  %v{i + 1} : {T} = prim::If(%c)",
            "    block0():",
            f"      %w{i} : {T} = aten::neg_(%v{i})",
            f"      -> (%w{i})",
            "    block1():",
            "       = prim::RaiseException(%s, %s)",
            f"      -> (%v{i})",
        ]
    lines.append("  return (%v30)")
    graph = parse_graph("\n".join(lines))
    with analyses() as built:
        report = PassManager("constant-fold", create_instruments(["verify-each", "verify-alias"])).run(graph)
    assert report.stats["constant-fold.branches"] == 30
    assert report.stats["alias.built"] == 1 == built.call_count
    assert kinds(graph) == ["neg"] + ["neg_"] * 30


def test_the_analysis_is_told_of_types_that_rule_something_out() -> None:
    graph = ir_graph("""
        x: Tensor; c: bool -> a, w
        n: NoneType = prim.Constant(); a = relu(x); r: "Tensor?" = n if c else n; w = relu_(ones(r))
    """)
    passes = "dce,canonicalize,cse,dce,shape-inference"
    report = PassManager(passes, create_instruments(["verify-each", "verify-alias"])).run(graph)
    assert report.stats["alias.built"] == 1
    assert graph.value("r").type == types.NONE


@pytest.mark.parametrize("n", [10, 40])
def test_however_many_branches_are_taken_the_graph_is_analysed_again_once(n: int) -> None:
    """Each If gives one of two lists, which are then read from and stored into."""
    lines = [f"graph(%x : {T}, %l0 : Tensor[]):", "  %c : bool = prim::Constant[value=1]()"]
    lines += ["  %z : int = prim::Constant[value=0]()"]
    for i in range(n):
        lines += [
            f"  %t{i} : Tensor = aten::__getitem__(%l{i}, %z)",
            f"  %m{i} : Tensor[] = prim::ListConstruct(%t{i})",
            f"  %l{i + 1} : Tensor[] = prim::If(%c)",
            "    block0():",
            f"      -> (%m{i})",
            "    block1():",
            f"      -> (%l{i})",
            f"  %s{i} : Tensor[] = aten::append(%l{i + 1}, %x)",
        ]
    lines.append(f"  return (%l{n})")
    graph = parse_graph("\n".join(lines))
    ctx = PassContext()
    db = ctx.alias_db(graph)
    assert ConstantFold().run(graph, ctx)
    assert not any(node.kind == "prim::If" for node in graph.walk())
    assert db is ctx.alias_db(graph)
    assert db.solves + db.regions <= 2
    db.check()


def test_moved_writes_are_known_to_be_where_they_are() -> None:
    text = ir("""
        x: Float(4); d: bool -> a
        c: bool = prim.Constant(value=1); s: str = prim.Constant(value="!"); a: Float(4) = neg(x); prim.If(d)
        with block():
            prim.If(c)
            with block(): w: Float(4) = neg_(a); prim.RaiseException(s, s); yield
            with block(): yield
            yield
        with block(): yield
    """)
    graph = parse_graph(text)
    ctx = PassContext()
    db = ctx.alias_db(graph)
    outer = next(node for node in graph.nodes if node.kind == "prim::If")
    (inner,) = outer.blocks[0].nodes
    write = graph.value("w").node
    first, last = graph.value("s").node, graph.block.return_node
    assert db.has_side_effects(outer) and db.writes(inner) and db.acts_on_world_between(first, last)
    assert ConstantFold().run(graph, ctx)
    assert db is ctx.alias_db(graph)
    assert write.block is outer.blocks[0]
    assert db.has_side_effects(outer) and db.writes(outer)
    assert db.acts_on_world_between(write, outer.blocks[0].return_node)
    db.check()


def test_wide_nodes_are_rewritten_once_however_many_of_their_inputs_merge(spy) -> None:
    n = 50
    lines = [f"  %v{i} : {T} = onnx::Relu(%x)" for i in range(n)]
    lines.append(f"  %l : Tensor[] = prim::ListConstruct({', '.join(f'%v{i}' for i in range(n))})")
    lines += ["  %z : int = prim::Constant[value=0]()", "  %y : Tensor = aten::cat(%l, %z)", "  return (%y)"]
    graph = parse_graph("\n".join([f"graph(%x : {T}):", *lines]))
    replaced = [spy(Node, name) for name in ("set_inputs", "replace_input")]
    report = PassManager("cse").run(graph)
    assert report.stats["cse.merged"] == n - 1
    assert sum(len(call.args[0].inputs) == n for mock in replaced for call in mock.call_args_list) <= 2


@pytest.mark.parametrize("results", ["equal", "same"])
def test_what_a_graph_returns_is_changed_once_however_many_of_its_results_merge(results: str, spy) -> None:
    """Each result is one of n equal ones, or one of them all."""
    changes = [spy(Node, name) for name in ("set_inputs", "replace_input", "replace_uses")]
    widths: list[int] = []
    for n in (50, 200):
        returned = ", ".join(f"%v{i if results == 'equal' else 1}" for i in range(n))
        body = [f"  %v{i} : {T} = onnx::Relu(%x)" for i in range(n)]
        graph = parse_graph("\n".join([f"graph(%x : {T}):", *body, f"  return ({returned})"]))
        for change in changes:
            change.reset_mock()
        report = PassManager("cse").run(graph)
        assert report.stats["cse.merged"] == n - 1
        assert len(graph.outputs) == n
        widths.append(sum(len(call.args[0].inputs) for change in changes for call in change.call_args_list))
    assert widths[1] <= 4.4 * widths[0], widths


def test_inputs_of_wide_nodes_are_put_together_once_however_many_are_replaced(spy) -> None:
    from irc.ir import node

    made = spy(node._Replaced, "by_now")
    n = 2 * node.WIDE
    for last in ("onnx::Sum", "onnx::Concat[axis=0]", "prim::ListConstruct"):
        made.reset_mock()
        inputs = ", ".join(f"%x{i} : {T}" for i in range(n))
        copies = [f"  %v{i} : {T} = onnx::Identity(%x{i})" for i in range(n)]
        result = "Tensor[]" if last == "prim::ListConstruct" else "Tensor"
        end = f"  %y : {result} = {last}({', '.join(f'%v{i}' for i in range(n))})"
        graph = parse_graph("\n".join([f"graph({inputs}):", *copies, end, "  return (%y)"]))
        PassManager("canonicalize", create_instruments(["verify-each"])).run(graph)
        assert kinds(graph) == [last.partition("[")[0].partition("::")[2]]
        assert [len(call.args[0].instead) for call in made.call_args_list] == [n]


@pytest.mark.parametrize("user", ["opaque.test::See", "custom::unknown"])
def test_what_a_dropped_branch_gave_to_unknown_code_is_forgotten(user: str) -> None:
    graph = parse_graph(f"""
graph(%x : Float(3, 2), %m : Float(2)):
  %a : Float(2) = aten::neg(%m)
  %b : Float(2) = aten::relu(%m)
  %f : bool = prim::Constant[value=0]()
  %y : Float(2) = prim::If(%f)
    block0():
      -> (%a)
    block1():
      -> (%b)
  {user}(%y)
  return (%a)
""")
    PassManager("constant-fold", ["verify-alias"]).run(graph)  # which compares with an analysis made anew
    assert not graph.value("b").has_uses or [node.kind for node in graph.value("b").users] == [user]


def test_what_only_a_dropped_branch_looked_at_is_folded_at_once() -> None:
    graph = ir_graph("""
        x: Float(2, 3) -> y
        w: Float(2, 3) = prim.Constant(value=tensor([3., 3., -2., -3., 0., 3.])); t: Float(3, 2) = t(w)
        r: Float(6) = reshape(t, [-1]); y: Float(6) = prim.If(False)
        with block(): c: bool = is_contiguous(t); i: Float(6) = add(r, c); yield i
        with block(): yield r
    """)
    PassManager("constant-fold").run(graph)
    assert [node.kind for node in graph.nodes] == ["prim::Constant"]


PLAIN = ir("""
    x, y: Float(4, 4) -> b, v, w
    m: Float(4, 4) = MatMul(x, y); a: Float(4, 4) = Relu(m); b: Float(4, 4) = Sigmoid(a); v: Float(16) = Flatten(y)
    w: Float(4, 4) = Relu_(x)
""")

BRANCHES = ir("""
    x: Float(4); c: Bool() -> y
    y: Float(4) = prim.If(c)
    with block(): a: Float(4) = Relu(x); b: Float(4) = Exp(a); yield b
    with block(): yield x
""")

LOOP = ir("""
    x: Float(4); n: int -> y
    y: Float(4) = prim.Loop(n, True, x)
    with block(i=int, h=Float(4)): a: Float(4) = Relu(h); yield True, a
""")

LISTS = ir("l: Tensor[]; x: Tensor", 'y = relu(x); m: "Tensor[]" = append(l, y)', "l")

COUNTER = ir("""
    self: __torch__.Counter; x: Tensor -> d
    c = prim.GetAttr(self, name="count"); one: int = prim.Constant(value=1); d = add_(c, x, one)
""")


def records() -> AbstractContextManager[Any]:
    """Gives a mock whose ``call_count`` is how often a whole graph has been analysed since."""
    return patch.object(AliasDbBuilder, "record", autospec=True, side_effect=AliasDbBuilder.record)


@pytest.mark.parametrize(
    ("text", "passes", "count"),
    [
        (PLAIN, "default", 1),
        (PLAIN, "none", 1),
        (BRANCHES, "default", 1),
        (LOOP, "default", 2),  # what loops carry is told apart in one of its own
        (LISTS, "default", 2),  # what is stored in a list is known outside, unless that is given up
    ],
)
def test_compiling_a_model_analyses_it_once(text: str, passes: str, count: int) -> None:
    with records() as recorded:
        compiled = irc.compile(parse_module(text), passes)
    assert recorded.call_count == count
    assert passes == "none" or text is not PLAIN or compiled.report.groups


def test_objects_are_told_from_the_same_analysis() -> None:
    module = import_torchscript(COUNTER, {"count": Tensor.of(np.zeros(4, np.float32))})
    with records() as recorded:
        compiled = irc.compile(module)
    assert compiled.state.changes
    assert recorded.call_count == 1


def test_what_an_instrument_of_another_package_may_have_changed_is_analysed_again() -> None:
    with records() as recorded:
        irc.compile(parse_module(PLAIN), instruments=[Elsewhere()])
    assert recorded.call_count == 2


class Elsewhere(Instrument):
    """An instrument that is not irc's own."""


def test_analyses_are_freed_once_the_model_is_made() -> None:
    def analyses() -> int:
        gc.collect()
        return sum(isinstance(x, AliasDb) for x in gc.get_objects())

    before = analyses()
    compiled = irc.compile(parse_module(PLAIN))
    assert analyses() == before
    assert compiled.report.alias["writes"] == 1
