"""Updates after which a node does something else than before, and updates told in another order than the graph's."""

from itertools import permutations

import numpy as np
import pytest

from irc.alias import analyze
from irc.ir import Builder, Graph, ListType, Node, parse_module, types
from irc.ir.clone import exchange_outputs
from tests.alias.helpers import Case
from tests.graphs import ir

NORM = ir("""
    x, m: Tensor; given: bool -> y, s
    off: bool = prim.Constant(value=False); off2: bool = prim.Constant(value=False)
    on: bool = prim.Constant(value=True); n: NoneType = prim.Constant(); r: float = prim.Constant(value=0.1)
    s = relu(m); v = relu(m); d = dropout(x, r, off); y = batch_norm(d, n, n, s, v, off, r, r, off)
""")


@pytest.mark.parametrize("new", ["given", "on"])
def test_a_switch_that_is_off_no_more(new: str) -> None:
    c = Case(NORM)
    assert not c.written("s") and not c.db.is_random(c.node("d"))
    c.replace("off", new)
    assert c.written("s") and c.db.is_random(c.node("d"))
    assert c.db.is_tight
    c.db.check()
    c.replace(new, "off2")
    c.db.tighten()
    assert not c.written("s") and not c.db.is_random(c.node("d"))
    c.db.check()


ROLES = """
graph(%x : Float(2, 4), %m : Float(4)):
  %off : bool = prim::Constant[value=False]()
  %on : bool = prim::Constant[value=True]()
  %eps : float = prim::Constant[value=0.1]()
  %eps2 : float = prim::Constant[value=0.2]()
  %zero : float = prim::Constant[value=0.0]()
  %one : float = prim::Constant[value=1.0]()
  %w : Float(4) = prim::Constant[value=tensor<Float(4)>([1., 2., 3., 4.])]()
  %w2 : Float(4) = prim::Constant[value=tensor<Float(4)>([1., 2., 3., 4.])]()
  %s : Tensor = aten::relu(%m)
  %y : Tensor = aten::batch_norm(%x, %w, %w, %s, %s, %on, %eps, %eps, %off)
  %k : Tensor = aten::batch_norm(%y, %w2, %w2, %m, %m, %off, %eps2, %eps2, %on)
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::scaled_dot_product_attention(%k, %k, %k, %n, %one, %off, %n, %off)
  return (%a)
"""


def test_a_constant_of_another_truth_concerns_those_it_switches() -> None:
    c = Case(ROLES)
    c.replace("one", "zero")
    assert not c.db.is_random(c.node("a"))
    c.replace("eps", "off")
    assert c.written("s")
    c.db.check()
    c.replace("on", "off")
    c.db.check()
    assert not c.written("s") and c.db.is_tight


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_nodes_are_told_in_any_order(order: tuple[int, ...]) -> None:
    graph = Graph()
    x = graph.add_input(types.TENSOR)
    b = Builder(graph)
    a = b.op("aten::relu", x)
    db = analyze(graph)
    made = b.op("prim::ListConstruct", a, type=ListType(types.TENSOR))
    cast = b.op("prim::unchecked_cast", made, type=made.type)
    drawn = b.op("aten::rand_like", a)
    view = b.op("aten::t_", drawn)
    nodes: list[Node | None] = [v.node for v in (made, cast, drawn, view)]
    for i in order:
        node = nodes[i]
        assert node is not None
        db.add_node(node)
    assert db.may_alias(made, cast)
    assert db.may_alias(drawn, view)
    assert len(db.writers(drawn)) == 1
    db.check()


@pytest.mark.parametrize("told", ["copied", "created", "rehomed"])
def test_add_node_records_the_writes_of_a_node_whose_result_is_known(told: str) -> None:
    c = Case(ir("x: Tensor", "a = relu(x); b = relu(x); va = t(a); w = relu_(b)", "va"))
    node = Builder.before(c.node("w")).node("aten::relu_", [c["a"]], [types.TENSOR])
    if told == "copied":
        c.db.copy_value(c["b"], node.output)
    elif told == "created":
        c.db.create_value(node.output)
    else:
        c.db.rehome_value(c["va"])
        exchange_outputs(node.output, c["va"])
    held = Builder.before(c.node("w")).node("prim::ListConstruct", [node.output], [ListType(types.TENSOR)])
    c.db.add_node(held)  # it refers to what the result was told to denote
    c.db.add_node(node)
    assert c.written("a")
    assert c.db.may_alias(node.output, c["a"])
    assert c.db.may_contain_alias(held.output, c["a"])
    assert not c.db.may_alias(node.output, c["b"])
    c.db.check()
    assert c.db.is_tight


CALL = """
graph(%x : Tensor, %given : Function):
  %before : Function = prim::Constant[name="{before}"]()
  %after : Function = prim::Constant[name="{after}"]()
  %same : Function = prim::Constant[name="{after}"]()
  %w : Float(2) = prim::Constant[value=@"w"]()
  %k : int = prim::Constant[value=0]()
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%c)
  %y : Tensor = prim::CallFunction(%{called}, %b, %l)
  %e : Tensor = aten::__getitem__(%l, %k)
  return (%y, %w)
graph copies(%x : Tensor, %l : Tensor[]):
  %y : Tensor = aten::exp(%x)
  return (%y)
graph writes(%x : Tensor, %l : Tensor[]):
  %y : Tensor = aten::exp_(%x)
  %z : Tensor = aten::neg(%y)
  return (%z)
graph returns(%x : Tensor, %l : Tensor[]):
  return (%x)
graph stores(%x : Tensor, %l : Tensor[]):
  %m : Tensor[] = aten::append(%l, %x)
  %z : Tensor = aten::neg(%x)
  return (%z)
graph lets_escape(%x : Tensor, %l : Tensor[]):
  some::thing(%x)
  %z : Tensor = aten::neg(%x)
  return (%z)
graph draws(%x : Tensor, %l : Tensor[]):
  %z : Tensor = aten::rand_like(%x)
  return (%z)
graph shows_a_weight(%x : Tensor, %l : Tensor[]):
  %w : Float(2) = prim::Constant[value=@"w"]()
  return (%w)
"""
FUNCTIONS = ("copies", "writes", "returns", "stores", "lets_escape", "draws", "shows_a_weight", "is_not_known")


@pytest.mark.parametrize("called", ["before", "given"])
@pytest.mark.parametrize("before", FUNCTIONS)
@pytest.mark.parametrize("after", FUNCTIONS)
def test_another_function_is_called(before: str, after: str, called: str) -> None:
    text = CALL.format(before=before, after=after, called=called)
    graph = parse_module(text, {"w": np.ones(2, np.float32)}).main
    db = analyze(graph)
    db.check()  # all has been asked before
    for old, new in ((called, "after"), ("after", "same")):
        work = db.solves, db.regions
        graph.value(old).replace_all_uses_with(graph.value(new))
        db.replace_value(graph.value(old), graph.value(new))
        assert db.is_tight
        db.check()
    assert work == (db.solves, db.regions), "the same function is called"


def test_what_is_none_on_every_path_becomes_a_tensor() -> None:
    c = Case("""
        x: Tensor; c: bool -> q, w
        a = relu(x); r: "Tensor?" = prim.If(c)
        with block(): yield None
        with block(): yield None
        q: "Tensor?" = prim.unchecked_cast(a); u = prim.unchecked_unwrap_optional(r); w = relu_(u)
    """)
    c.replace("r", "q")
    assert c.alias("u", "a") and c.written("a")
    c.db.check()
