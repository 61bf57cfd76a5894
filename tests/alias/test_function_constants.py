"""Constants of functions are the same in all calls, and may be given to functions again."""

from typing import Any

import numpy as np
import pytest

from irc.alias import analyze
from irc.alias.location_sets import intersects
from irc.ir import Builder, Tensor, parse_graph, parse_module
from irc.passes import PassManager
from irc.runtime.plan import lower
from tests.graphs import ir_module
from tests.programs.interpreter import share, share_inside


@pytest.mark.parametrize(
    ("sizes", "value"),
    [("2, 3", "splat(-2.)"), ("2, 3", "tensor([1., 2., 3., 4., 5., 6.])"), ("600, 600", "splat(1.)")],
)
def test_copies_of_a_constant_are_memory_of_their_own(sizes: str, value: str) -> None:
    """Inlining makes nodes that hold one tensor: the memory of a constant without name is that of its node."""
    module = parse_module(f"""
graph(%x : Float(2, 3)):
  %f : Function = prim::Constant[name="f"]()
  %a : Float({sizes}) = prim::CallFunction(%f, %x)
  %b : Float({sizes}) = prim::CallFunction(%f, %x)
  return (%a, %b)

graph f(%x : Float(2, 3)):
  %k : Float({sizes}) = prim::Constant[value={value}]()
  return (%k)
""")
    for shared in (True, False):
        found = lower(module.main).run([np.zeros((2, 3), np.float32)])
        assert np.shares_memory(*found) is shared
        assert analyze(module.main).may_alias(*module.main.outputs) is shared
        PassManager("inline").run(module)


@pytest.mark.parametrize("weight", [np.zeros(3, np.float32), np.arange(3, dtype=np.float32), np.zeros(600_000)])
def test_constants_of_one_weight_are_one_memory(weight: np.ndarray[Any, Any]) -> None:
    held = Tensor.of(weight, "w")
    constant = f'{held.type} = prim::Constant[value=@"w"]()'
    graph = parse_graph(f"graph():\n  %a : {constant}\n  %b : {constant}\n  return (%a, %b)\n", weights={"w": held})
    assert analyze(graph).must_alias(*graph.outputs)
    assert np.shares_memory(*lower(graph).run([]))


def test_constants_of_functions_are_known_from_the_start() -> None:
    """Whoever keeps what one value denotes and asks about a constant later misses nothing."""
    module = ir_module("""
        x: Tensor -> x

        f | p: Any[] -> p
        k: "int[]" = prim.Constant(value=[0, 1])
    """)
    graph = module.graphs["f"]
    db = analyze(graph)
    p, k = graph.value("p"), graph.value("k")
    held = db.location_set(p)
    assert intersects(held, db.location_set(k))
    assert k.node is not None
    new = Builder.before(k.node).constant([0.5])
    assert new.node is not None
    db.add_node(new.node)
    held = db.location_set(p)
    assert intersects(held, db.location_set(new))
    db.check()


def test_a_list_that_is_a_constant_of_a_function_is_one_in_all_calls() -> None:
    """Whoever calls, and whoever looks into it first."""
    module = parse_module("""
graph(%x : Float(1)):
  %f : Function = prim::Constant[name="f"]()
  %g : Function = prim::Constant[name="g"]()
  %z : int = prim::Constant[value=0]()
  %a : Tensor[][] = prim::CallFunction(%g)
  %inner : Tensor[] = aten::__getitem__(%a, %z)
  %p : Tensor = aten::__getitem__(%inner, %z)
  %b : Tensor[][] = prim::CallFunction(%g)
  %q : Tensor = prim::CallFunction(%f)
  %other : Tensor[][] = prim::Constant[value=[[tensor<Float(1)>([1.])]]]()
  return (%a, %b, %p, %q, %inner, %other)

graph f():
  %g : Function = prim::Constant[name="g"]()
  %z : int = prim::Constant[value=0]()
  %held : Tensor[][] = prim::CallFunction(%g)
  %inner : Tensor[] = aten::__getitem__(%held, %z)
  %e : Tensor = aten::__getitem__(%inner, %z)
  return (%e)

graph g():
  %held : Tensor[][] = prim::Constant[value=[[tensor<Float(1)>([1.])]]]()
  return (%held)
""")
    outputs = module.main.outputs
    found = lower(module.main).run([np.zeros(1, np.float32)])
    db = analyze(module.main)
    for i, a in enumerate(outputs):
        for j, b in enumerate(outputs[:i]):
            assert db.may_alias(a, b) is share(found[i], found[j]), (a.name, b.name)
            assert db.may_contain_alias(a, b) is share_inside(found[i], found[j]), (a.name, b.name)
