"""What is decided one by one and done at once: nodes that are merged, attributes that are frozen."""

import numpy as np
import pytest

from irc.frontend.torchscript import import_torchscript
from irc.ir import Module, parse_module
from irc.passes import PassManager
from tests.alias.test_scale import lines
from tests.passes.helpers import assert_same_results, kinds, run_passes
from tests.passes.test_growth import join


def calling(body: str, returns: str) -> Module:
    """A caller that writes into the first result of a function and returns all three."""
    return parse_module(f"""
graph(%x : Float(2)):
  %f : Function = prim::Constant[name="f"]()
  %a : Float(2), %b : Float(2), %c : Float(2) = prim::CallFunction(%f, %x)
  %w : Float(2) = aten::relu_(%a)
  return (%w, %b, %c)

graph f(%x : Float(2)):
  {body}
  return ({returns})
""")


NEGATIONS = """
  %first : Float(2) = aten::neg(%x)
  %second : Float(2) = aten::neg(%x)
  %third : Float(2) = aten::neg(%x)
  %e : Float(2) = aten::exp(%first)"""


@pytest.mark.parametrize(
    ("returns", "left"),
    [("%second, %third, %e", 2), ("%second, %e, %third", 2), ("%first, %second, %third", 3), ("%third, %e, %e", 1)],
)
def test_what_a_function_returns_twice_stays_two_memories(returns: str, left: int) -> None:
    """Neither is one with what none but the function knows, if the other is already."""
    module = calling(NEGATIONS, returns)
    before = module.copy()
    run_passes(module, "cse,dce")
    assert kinds(module.graphs["f"]).count("neg") == left
    assert_same_results(before, module, np.array([1, -1], np.float32))


def test_one_memory_that_is_returned_twice_may_be_one_value() -> None:
    module = calling(
        """
  %n : Float(2) = aten::neg(%x)
  %first : Float(2) = aten::t(%n)
  %second : Float(2) = aten::t(%n)
  %third : Float(2) = aten::t(%n)""",
        "%third, %second, %first",
    )
    before = module.copy()
    run_passes(module, "cse,dce")
    assert kinds(module.graphs["f"]) == ["neg", "t"]
    assert_same_results(before, module, np.array([1, -1], np.float32))


def layers(n: int) -> str:
    """n layers that a condition may skip; each reads a weight, and what each gives is kept in one list."""
    return join(
        ["graph(%self : __torch__.Net, %v0 : Tensor, %c : bool):", "  %l : Tensor[] = prim::ListConstruct(%v0)"],
        [
            f"""  %a{i} : Tensor = prim::GetAttr[name="a{i}"](%self)
  %v{i + 1} : Tensor = prim::If(%c)
    block0():
      %m{i} : Tensor = aten::mul(%v{i}, %a{i})
      %l{i} : Tensor[] = aten::append(%l, %m{i})
      -> (%m{i})
    block1():
      -> (%v{i})"""
            for i in range(n)
        ],
        [f"  return (%l, %v{n})"],
    )


def net(n: int, distinct: int) -> Module:
    """``layers`` with weights of this many different contents."""
    weights = {f"a{i}": np.arange(20, dtype=np.float32) + i % distinct for i in range(n)}
    return import_torchscript(layers(n), weights)


@pytest.mark.parametrize("distinct", [2, 1000])
@pytest.mark.parametrize("name", ["freeze", "constant-pool", "cse"])
def test_the_analysis_is_told_once_of_what_is_decided_one_by_one(name: str, distinct: int) -> None:
    """Each weight, had it been told by itself, would have had all layers after it analysed again."""
    counts: list[int] = []
    for n in (50, 200):
        module = net(n, distinct)
        if name != "freeze":
            assert PassManager("freeze").run(module).stats["freeze.frozen"] == n
        counts.append(lines(lambda module=module: PassManager(name).run(module)))
    assert counts[1] <= 4.6 * counts[0], counts


def test_what_is_frozen_and_merged_at_once_is_told_right() -> None:
    module = net(9, 2)
    run_passes(module, "freeze,constant-pool,cse,dce")
    assert len(module.main.weights) == 2
    assert [n.kind for n in module.main.walk()].count("prim::Constant") == 2
