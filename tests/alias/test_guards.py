"""Guards of branches, and numbers of iterations, as facts about where views lie."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from irc.alias import analyze, guards, regions
from irc.ir import Block, Value, parse_graph, parse_module
from irc.ir.polynomials import Size, minus
from irc.ops import regions as ops_regions
from tests.alias.view_programs import HEAD as PROGRAM_HEAD
from tests.alias.view_programs import check, guarded_program, run_all

HEAD = """graph(%x : Tensor, %n : int, %m : int):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  prim::Loop(%n, %true)
    block0(%i : int):
"""
BRANCH = """
      prim::If(%c)
        block0():
          THEN
          -> ()
        block1():
          OTHERWISE
          -> ()
"""
IN_BRANCH = "%a : Tensor = aten::select(%x, %0, A)\n          %b : Tensor = aten::select(%x, %0, B)"
PREVIOUS = "%j : int = aten::sub(%i, %1)\n      "


def meet(condition: str, a: str, b: str, *, otherwise: bool = False) -> bool:
    """Whether `x[a]` and `x[b]` may meet in a branch."""
    views = IN_BRANCH.replace("A", a).replace("B", b)
    then, other = ("", views) if otherwise else (views, "")
    body = BRANCH.replace("THEN", then).replace("OTHERWISE", other)
    graph = parse_graph(f"{HEAD}      {PREVIOUS}{condition}{body}      -> (%true)\n  return (%x)\n")
    return analyze(graph).may_alias(graph.value("a"), graph.value("b"))


def of(kind: str, a: str, b: str) -> str:
    return f"%c : bool = aten::{kind}({a}, {b})"


AND = (
    f"{of('ge', '%m', '%0').replace('%c', '%d')}\n      %c : bool = prim::If(%d)\n        block0():\n"
    f"          {of('gt', '%i', '%m').replace('%c', '%e')}\n          -> (%e)\n        block1():\n          -> (%false)"
)
OR = (
    f"{of('lt', '%m', '%0').replace('%c', '%d')}\n      %c : bool = prim::If(%d)\n        block0():\n"
    f"          -> (%true)\n        block1():\n          {of('eq', '%i', '%m').replace('%c', '%e')}\n          -> (%e)"
)


@pytest.mark.parametrize(
    ("condition", "a", "b", "otherwise"),
    [
        (of("lt", "%i", "%m"), "%i", "%m", False),
        (of("ge", "%i", "%m"), "%i", "%m", True),
        (of("gt", "%i", "%0"), "%i", "%j", False),
        (of("le", "%i", "%0"), "%i", "%j", True),
        (of("ne", "%i", "%0"), "%i", "%n", False),
        (of("eq", "%m", "%0"), "%m", "%n", False),
        (of("lt", "%i", "%m").replace("%c", "%d") + "\n      %c : bool = aten::__not__(%d)", "%i", "%m", True),
        (AND, "%i", "%m", False),
    ],
)
def test_places_that_a_condition_tells_apart(condition: str, a: str, b: str, otherwise: bool) -> None:
    assert not meet(condition, a, b, otherwise=otherwise)
    assert meet(condition, a, b, otherwise=not otherwise) or "%n" in (a, b)


@pytest.mark.parametrize(
    ("condition", "a", "b", "otherwise"),
    [
        (of("le", "%i", "%m"), "%i", "%m", False),
        (of("gt", "%i", "%m"), "%i", "%m", True),
        (of("lt", "%i", "%m"), "%j", "%m", False),
        (of("ne", "%i", "%m"), "%i", "%m", False),
        (OR, "%i", "%m", False),
        (AND, "%i", "%m", True),
    ],
)
def test_places_that_a_condition_does_not_tell_apart(condition: str, a: str, b: str, otherwise: bool) -> None:
    assert meet(condition, a, b, otherwise=otherwise)


def check_programs(first: int, count: int) -> None:
    for number in range(first, first + count):
        check(Random(number), guarded_program)


@pytest.mark.parametrize("block", range(2))
def test_programs_of_guarded_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(40 * block, 25)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_many_programs_of_guarded_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(80 + 60 * block, 60)


# -- wrong ideas -----------------------------------------------------------------

_facts_of, _of, _distance, _quantity = guards.facts_of, guards._of, guards._distance, guards.quantity


def behind_a_branch(block: Block) -> Iterator[Size]:
    yield from _facts_of(block)
    for node in block.nodes:
        for inner in node.blocks[:1]:
            yield from _facts_of(inner)


def operand(value: Value) -> Size:
    """Takes sums for their first operand."""
    made = value.made_by("aten::add")
    return _quantity(value if made is None else made.inputs[0])


def as_int(value: Value) -> Size:
    """Takes floats and tensors for the integers that are made of them."""
    return next((_quantity(use.output) for use in value.iter_users() if use.kind == "aten::Int"), _quantity(value))


def of_all_conditions(condition: Value, holds: bool, depth: int = 0) -> Iterator[Size]:
    node = condition.node
    if node is not None and node.blocks and depth < 4:
        for value in (node.inputs[0], *(block.returns[condition.index] for block in node.blocks)):
            yield from of_all_conditions(value, holds, depth + 1)
    else:
        yield from _of(condition, holds, depth)


WRONG = {
    "a guard behind its branch": (regions, "facts_of", behind_a_branch),
    "a guard in the other branch": (guards, "_of", lambda condition, holds, depth=0: _of(condition, True, depth)),
    "a guard that is negated twice": (guards, "_of", lambda condition, holds, depth=0: _of(condition, not holds)),
    "less, or equal": (guards, "_distance", lambda low, high, more: _distance(low, high, more or 1)),
    "more than less": (guards, "_distance", lambda low, high, more: _distance(low, high, 2 * more)),
    "a guard of another value": (guards, "quantity", operand),
    "a guard of a float": (guards, "quantity", as_int),
    "a guard of a tensor, written since": (guards, "quantity", as_int),
    "any condition of several": (guards, "_of", of_all_conditions),
    "sums that wrap around alike": (
        guards,
        "_distance",
        lambda low, high, more: (
            found if guards.is_exact(found := minus(minus(_quantity(high), _quantity(low)), more)) else None
        ),
    ),
    "sums that do not wrap around": (guards, "is_exact", lambda size: size is not None),
    "operands that are not negative, so neither is the sum": (
        ops_regions,
        "Symbol",
        lambda of, what, number=0, made=ops_regions.Symbol: made(of, "value" if what == "summand" else what, number),
    ),
    "numbers of two iterations": (regions, "values_of", lambda size: ()),
    "bounds that are never negative": (ops_regions, "is_from_0", lambda size, facts=(): True),
}


PROGRAMS = {
    "a guard of a float": """
  %f : float = aten::div(%n, %c2)
  %i : int = aten::Int(%f)
  %c : bool = aten::lt(%c0, %f)
  prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %c0, %c0)
      %b : Tensor = aten::select(%x, %c0, %i)
      -> ()
    block1():
      -> ()
""",
    "a guard of a tensor, written since": """
  %t : Tensor = prim::NumToTensor(%n)
  %c : Tensor = aten::gt(%t, %c0)
  %w : Tensor = aten::zero_(%t)
  %i : int = aten::Int(%t)
  prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %c0, %c0)
      %b : Tensor = aten::select(%x, %c0, %i)
      -> ()
    block1():
      -> ()
""",
    "sums that do not wrap around": """
  %p : int = aten::add(%n, %c2)
  %q : int = aten::add(%n, %c3)
  %c : bool = aten::ge(%p, %c0)
  prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %c0, %c0)
      %b : Tensor = aten::slice(%x, %c0, %q, %none, %c1)
      -> ()
    block1():
      -> ()
""",
    "a guard of another value": """
  %p : int = aten::add(%n, %c1)
  %c : bool = aten::ge(%p, %c1)
  prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %c0, %c0)
      %b : Tensor = aten::select(%x, %c0, %n)
      -> ()
    block1():
      -> ()
""",
    "sums that wrap around alike": """
  %p : int = aten::add(%n, %c1)
  %s : int = aten::size(%x, %c0)
  %q : int = aten::sub(%p, %s)
  %c : bool = aten::ge(%q, %p)
  prim::If(%c)
    block0():
      %a : Tensor = aten::slice(%x, %c0, %none, %s, %c1)
      %b : Tensor = aten::slice(%x, %c0, %none, %n, %c1)
      -> ()
    block1():
      -> ()
""",
    "operands that are not negative, so neither is the sum": """
  %p : int = aten::add(%n, %c1)
  %c : bool = aten::ge(%n, %c0)
  prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %c0, %c0)
      %b : Tensor = aten::slice(%x, %c0, %p, %none, %c1)
      -> ()
    block1():
      -> ()
""",
    "numbers of two iterations": """
  %first : Tensor = aten::exp(%x)
  %k : int = aten::dim(%x)
  prim::Loop(%c3, %true)
    block0(%i : int):
      %c : bool = aten::le(%k, %i)
      prim::If(%c)
        block0():
          %a : Tensor = aten::slice(%x, %c0, %none, %k, %c1)
          %r : Tensor = aten::exp(%a)
          -> ()
        block1():
          -> ()
      %d : bool = aten::gt(%m, %i)
      prim::If(%d)
        block0():
          %b : Tensor = aten::slice(%x, %c0, %m, %none, %c1)
          %w : Tensor = aten::neg_(%b)
          -> ()
        block1():
          -> ()
      -> (%true)
""",
}
"""Programs that are wrong about ideas which random programs rarely follow."""


def check_idea(idea: str) -> None:
    if idea in PROGRAMS:
        module = parse_module(f"graph{PROGRAM_HEAD}{PROGRAMS[idea][1:]}  return (%x)\n")
        run_all(module, [((4, 2), given) for given in product((-1, 0, 1, 2, 2**63 - 3, 2**63 - 1), repeat=2)])
    else:
        check_programs(0, 100)


@pytest.mark.parametrize("idea", WRONG)
def test_wrong_ideas_are_caught(idea: str, monkeypatch) -> None:
    if idea in PROGRAMS:
        check_idea(idea)
    monkeypatch.setattr(*WRONG[idea])
    with pytest.raises(AssertionError, match=r"overlap|changes|written|may move"):
        check_idea(idea)
