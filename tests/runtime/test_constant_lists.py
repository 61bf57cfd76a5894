"""Lists that are constants: unchangeable inside a run, lists for callers, never taken for tuples."""

import pytest

import irc
from irc.errors import Error
from tests.graphs import typed_ir
from tests.runtime.helpers import model_of


@pytest.mark.parametrize("pipeline", ["none", "default"])
def test_a_run_does_not_change_a_constant_list(pipeline):
    text = typed_ir("n: int", "m: 'int[]' = aten.append([1, 2], n); k: int = aten.len([1, 2])", "k")
    model = irc.compile(irc.ir.parse_module(text), pipeline)
    for _ in range(2):
        with pytest.raises(Error, match=r"^IRC431: .*would change a list that is a constant"):
            model.run({"n": 5})


def test_constant_lists_and_tuples_are_told_apart():
    text = """
graph():
  %l : int[] = prim::Constant[value=[1, 2]]()
  %t : (int, int) = prim::Constant[value=(1, 2)]()
  %lt : bool = prim::isinstance[types=[(int, int)]](%l)
  %ll : bool = prim::isinstance[types=[int[]]](%l)
  %tt : bool = prim::isinstance[types=[(int, int)]](%t)
  %tl : bool = prim::isinstance[types=[int[]]](%t)
  %p : (int, int)[] = prim::Constant[value=[(1, 2)]]()
  %pp : bool = prim::isinstance[types=[int, ((int, int)[], int)?, (int, int)[]]](%p)
  return (%lt, %ll, %tt, %tl, %pp)
"""
    assert model_of(text).run({}) == {"lt": False, "ll": True, "tt": True, "tl": False, "pp": True}
