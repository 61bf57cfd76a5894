"""Random loops that assign to parts of tensors, and carry what they write: compiled, and run as they are written."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import irc
from irc.ir import parse_graph
from tests.programs.interpreter import interpret

HEAD = """graph(%x : Float(4, 4), %y : Float(4, 4)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %o : Tensor = aten::clone(%x, %none)
  %p : Tensor = aten::clone(%y, %none)
  %f : Tensor = aten::slice(%x, %0, %0, %1, %1)
"""


class Maker:
    """The lines of a program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.made: list[str] = []

    def add(self, operation: str, type: str = "Tensor") -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"      {name} : {type} = aten::{operation}\n".replace("aten::prim", "prim"))
        return name

    def one_of(self, *options: str) -> str:
        return self.random.choice(options)

    def part(self, *of: str) -> str:
        """A row, a column or some rows of one of the tensors."""
        x, at = self.one_of(*of), self.one_of("%i", "%j", "%0", "%1")
        if self.random.random() < 0.6:
            return self.add(f"select({x}, {self.one_of('%0', '%0', '%1')}, {at})")
        return self.add(f"slice({x}, %0, {self.one_of('%none', '%i', '%0')}, {self.one_of('%none', '%j', '%2')}, %1)")

    def assignment(self) -> None:
        """``part = f(part)``, perhaps with something between; what is assigned may be used again."""
        a = self.one_of(*self.made, self.part("%x", "%y", "%o", "%p"))
        made = self.add(self.one_of(f"mul({a}, %2)", f"tanh({a})", f"add({a}, {a}, %1)"))
        if self.random.random() < 0.3:
            self.add(f"neg_({self.part('%o', '%p')})")
        into = self.part("%o", "%p")
        self.add(f"copy_({into}, {made}, %false)")
        self.made += [v for v in (made, into) if self.random.random() < 0.35]

    def joined(self) -> str:
        """Parts of what is carried, with something between or in another order."""
        a = self.add("slice(%c, %0, %none, %i, %1)")
        b = self.add(f"slice(%c, %0, {self.one_of('%j', '%i')}, %none, %1)")
        k = self.add(f"{self.one_of('relu', 'alias')}({self.one_of('%f', a, b)})")
        parts = self.random.choice([(a, k, b), (b, k, a), (a, b), (k, b)])
        listed = self.add(f"prim::ListConstruct({', '.join(parts)})", "Tensor[]")
        return self.add(f"cat({listed}, %0)")


def program(seed: int) -> str:
    p = Maker(seed)
    for _ in range(p.random.randint(1, 4)):
        p.assignment()
    returned = p.one_of(*p.made, "%c", p.joined(), p.add(f"neg({p.one_of(*p.made, '%c')})"))
    start = p.one_of("clone(%y, %none)", "alias(%o)", "neg(%y)")
    loop = "  %z : Tensor = prim::Loop(%3, %true, %e)\n    block0(%i : int, %c : Tensor):\n"
    body = f"      %j : int = aten::add(%i, %1)\n{''.join(p.lines)}      -> (%true, {returned})\n"
    return f"{HEAD}  %e : Tensor = aten::{start}\n{loop}{body}  return (%o, %p, %z)\n"


def check(seed: int, *backends: str) -> int:
    """How many results were made over others; 0 if the program fails."""
    rng = np.random.default_rng(seed)
    x, y = (rng.random((4, 4), np.float32) - np.float32(0.5) for _ in "xy")
    try:
        wanted = [np.array(v) for v in interpret(parse_graph(program(seed)), [x.copy(), y.copy()])]
    except Exception:  # parts of other shapes
        return 0
    count = 0
    for backend in backends:
        for passes in ("none", "default"):
            model = irc.compile(parse_graph(program(seed)), backend=backend, passes=passes)
            for _ in range(2):
                found = model.run({"x": x, "y": y}).values()
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=program(seed))
            count += model.counters.in_place
    return count


@pytest.mark.parametrize("block", range(4))
def test_loops_of_assignments(block: int) -> None:
    assert sum(check(seed, "numpy") for seed in range(100 * block, 100 * block + 100)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_loops_of_assignments(block: int) -> None:
    assert sum(check(seed, "numpy", "native") for seed in range(400 + 200 * block, 600 + 200 * block)) > 800
