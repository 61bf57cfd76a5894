"""The programs that ``test_fuzz`` runs catch the mistakes that are put into the analysis."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import parse_module
from tests.alias.programs import random_choices
from tests.alias.test_random_updates import run as run_updates
from tests.fuzz.mutants import OTHERS, PYTORCHS, SANE, UNIONS, UPDATES
from tests.fuzz.run import fuzz
from tests.fuzz.test_fuzz import EXAMPLES, SEED
from tests.fuzz.watcher import Watcher
from tests.programs.interpreter import interpret


@pytest.mark.parametrize("name", PYTORCHS)
def test_pytorchs_mistakes_are_caught(name: str) -> None:
    with PYTORCHS[name]():
        outcome = fuzz(EXAMPLES, SEED, shrink=False)
    assert outcome.failure is not None, f"{outcome.programs} programs were run, and nobody noticed"


@pytest.mark.parametrize("name", OTHERS)
def test_other_mistakes_are_caught(name: str) -> None:
    """By these programs or, if another version of hypothesis draws others, by as many more."""
    with OTHERS[name]():
        outcomes = (fuzz(EXAMPLES, seed, shrink=False) for seed in (SEED, SEED + 1, SEED + 2))
        assert any(outcome.failure is not None for outcome in outcomes), "nobody noticed"


@pytest.mark.parametrize("name", UPDATES)
def test_mistakes_in_updates_are_caught(name: str) -> None:
    """By random updates, a third of those that ``tests/alias`` makes."""

    def updates() -> None:
        for seed in range(40):
            run_updates(random_choices(seed), random_choices(seed + 100))

    with UPDATES[name](), pytest.raises(Error, match="IRC340"):
        updates()


UNION = """
graph main(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %l : Union(Tensor, Tensor[])[] = prim::ListConstruct(%a)
  %f : Function = prim::Constant[name="put"]()
  %r : Tensor = prim::CallFunction(%f, %l, %x)
  return (%r)

graph put(%l : Union(Tensor, Tensor[])[], %x : Tensor):
  %yes : bool = prim::Constant[value=1]()
  %last : int = prim::Constant[value=-1]()
  %a : Tensor = aten::neg(%x)
  %k : Tensor[] = prim::ListConstruct(%x)
  %e : Union(Tensor, Tensor[]) = prim::If(%yes)
    block0():
      -> (%a)
    block1():
      -> (%k)
  %m : Union(Tensor, Tensor[])[] = aten::append(%l, %e)
  %u : Union(Tensor, Tensor[]) = aten::__getitem__(%l, %last)
  %t : Tensor = prim::unchecked_cast(%u)
  %w : Tensor = aten::zero_(%t)
  return (%a)
"""


@pytest.mark.parametrize("name", UNIONS)
def test_mistakes_about_unions_are_caught(name: str) -> None:
    def run() -> None:
        module = parse_module(UNION)
        (result,) = interpret(module.main, [np.ones(2, np.float32)], Watcher(module))
        assert not result.any(), "%a is written"

    run()
    with UNIONS[name](), pytest.raises(AssertionError, match="hold the same memory"):
        run()


def test_each_of_pytorchs_mistakes_is_among_them() -> None:
    """Those that ``docs/alias-analysis.md`` numbers."""
    page = (Path(__file__).parents[2] / "docs" / "alias-analysis.md").read_text()
    numbered = re.findall(r"^(\d+)\. ", page.partition("## Where PyTorch's is wrong")[2], re.MULTILINE)
    assert numbered == [str(n) for n in range(1, 9)]
    assert {name.partition(":")[0] for name in PYTORCHS} == set(numbered)


@pytest.mark.parametrize("name", SANE)
def test_nothing_else_is_caught(name: str) -> None:
    with SANE[name]():
        outcome = fuzz(EXAMPLES // 3, SEED, shrink=False)
    assert outcome.failure is None, outcome.failure
