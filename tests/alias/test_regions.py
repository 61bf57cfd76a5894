"""Parts of one tensor that cannot overlap: what is told apart, and that nothing is that does overlap."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from irc.alias import analyze, regions
from irc.ir import Graph, parse_graph
from irc.ops import record
from irc.ops import regions as ops_regions
from irc.ops.regions import Bound, Span
from irc.passes import PassManager
from tests.alias.slice_programs import PROGRAMS, program, share
from tests.effort import examples
from tests.operators import records_for_a_while
from tests.programs.generator import Program, programs
from tests.programs.interpreter import interpret
from tests.programs.soundness import Soundness

IMPRECISE = {("diagonal", 2)}
"""Two diagonals of one matrix are not told apart."""


@pytest.mark.parametrize(("kind", "number"), PROGRAMS)
def test_the_answer_is_the_truth(kind: str, number: int) -> None:
    graph = program(kind, number)
    answer = analyze(graph).may_alias(graph.value("a"), graph.value("b"))
    assert answer == share(kind, number) or (answer and (kind, number) in IMPRECISE)


# -- spans -----------------------------------------------------------------------

bounds = st.none() | st.integers(-5, 7)
cuts = st.lists(st.tuples(bounds, bounds, st.integers(1, 3)), min_size=1, max_size=3)


def cut(slices: list[tuple[int | None, int | None, int]]) -> Span:
    span = Span()
    for low, high, step in slices:
        span = span.part(*[None if n is None else Bound.of(n) for n in (low, high)], step)
    return span


def places(slices: list[tuple[int | None, int | None, int]], size: int) -> set[int]:
    found = list(range(size))
    for low, high, step in slices:
        found = found[low:high:step]
    return set(found)


@examples(400)
@given(cuts, cuts)
def test_spans_are_apart_only_if_no_size_lets_them_meet(one, other) -> None:
    if cut(one).is_apart(cut(other)):
        assert all(places(one, size).isdisjoint(places(other, size)) for size in range(12))


# -- writes ----------------------------------------------------------------------

CONSTANTS = "".join(f"  %{n} : int = prim::Constant[value={n}]()\n" for n in range(3))
ROWS = f"""
graph(%x : Tensor, %y : Tensor, %n : int):
{CONSTANTS}  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
  %first : Tensor = aten::exp(%a)
  %w : Tensor = aten::add_(%b, %y, %1)
  %second : Tensor = aten::exp(%a)
  %third : Tensor = aten::exp(%b)
  return (%first, %second, %third)
"""


def test_a_write_to_one_row_is_none_to_another() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    a, b, x = map(graph.value, "abx")
    first, w, second, third = (graph.value(name).node for name in ("first", "w", "second", "third"))
    assert not db.writes_between(a, first, second) and db.writes_between(b, first, second)
    assert db.writes_between(x, first, second), "all of it is written in part"
    assert not db.has_writers(a) and db.has_writers(b) and db.has_writers(x)
    assert (db.writers(a), db.writers(b)) == ([], [w])
    assert not db.writes_to_alias(w, a) and db.writes_to_alias(w, b)
    assert db.can_move_before(second, w) and not db.can_move_before(third, w)
    assert PassManager("cse").run(graph).stats["cse.merged"] == 1
    assert str(graph).count("aten::exp(%a)") == 1


LOOP = """
graph(%x : Tensor, %count : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  prim::Loop(%count, %true)
    block0(%i : int):
      %j : int = aten::add(%i, %1)
      %a : Tensor = aten::select(%x, %0, %i)
      %b : Tensor = aten::select(%x, %0, %j)
      %first : Tensor = aten::exp(%a)
      %w : Tensor = aten::relu_(%b)
      %second : Tensor = aten::exp(%a)
      -> (%true)
  return (%x)
"""


def test_parts_of_an_iteration_are_apart_and_those_of_two_iterations_are_not() -> None:
    graph = parse_graph(LOOP)
    db = analyze(graph)
    a, b = map(graph.value, "ab")
    first, second = (graph.value(name).node for name in ("first", "second"))
    assert not db.may_alias(a, b)
    assert not db.writes_between(a, first, second)
    assert db.writes_between(a, second, first), "what is %b in an iteration is %a in the next one"
    assert db.has_writers(a)


DENIED = {
    "a list that somebody changes": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %l : Tensor[] = aten::unbind(%x, %0)
  %b : Tensor = aten::__getitem__(%l, %1)
  %c : Tensor[] = aten::_set_item(%l, %0, %b)
  %a : Tensor = aten::__getitem__(%l, %0)
  return (%a, %b)
""",
    "a tensor whose strides change": """
graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %r : Tensor = aten::relu(%x)
  %a : Tensor = aten::select(%r, %0, %0)
  %t : Tensor = aten::t_(%r)
  %b : Tensor = aten::select(%r, %0, %1)
  return (%a, %b)
""",
    "rows of what was expanded": """
graph(%x : Tensor, %like : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %e : Tensor = aten::expand_as(%x, %like)
  %f : Tensor = aten::contiguous(%e, %0)
  %s : int[] = prim::ListConstruct(%1, %1)
  %g : Tensor = aten::view_as(%f, %like)
  %a : Tensor = aten::select(%g, %0, %0)
  %b : Tensor = aten::select(%g, %0, %1)
  return (%a, %b)
""",
    "places that count elements of two sizes": """
graph(%x : Tensor, %type : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %s : int[] = prim::ListConstruct(%2)
  %t : int[] = prim::ListConstruct(%1)
  %v : Tensor = aten::view(%x, %type)
  %a : Tensor = aten::as_strided(%v, %s, %t, %2)
  %b : Tensor = aten::as_strided(%x, %s, %t, %0)
  return (%a, %b)
""",
    "a number that may be negative": """
graph(%x : Tensor, %n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %m : int = aten::add(%n, %1)
  %a : Tensor = aten::select(%x, %0, %n)
  %b : Tensor = aten::select(%x, %0, %m)
  return (%a, %b)
""",
    "a tensor that may be one of two": """
graph(%x : Tensor, %y : Tensor, %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
  return (%a, %b)
""",
}


@pytest.mark.parametrize("case", DENIED)
def test_what_may_overlap_is_not_told_apart(case: str) -> None:
    graph = parse_graph(DENIED[case])
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b"))


def test_a_called_function_may_write_more_of_a_storage_than_it_is_given() -> None:
    graph = parse_graph(ROWS.replace("aten::add_(%b, %y, %1)", "third::unknown(%b)"))
    db = analyze(graph)
    assert db.writes_between(graph.value("a"), graph.value("first").node, graph.value("second").node)


# -- random programs -------------------------------------------------------------

FEATURES = ("slices", "slices", "torch views", "torch writes", "numbers", "torch", "branches")
slicing = programs(FEATURES, size=30, dense=True) | programs(("slices", "torch writes", "loops", "numbers"), size=25)
"""Programs full of parts of tensors, written and read, in and out of loops."""


def watch(program: Program) -> Soundness:
    watcher = Soundness(program.module)
    interpret(program.graph, program.inputs(), watcher)
    return watcher


@examples(60)
@given(slicing)
def test_the_analysis_denies_nothing_that_happens(program: Program) -> None:
    watch(program)


Mutant = Callable[[], AbstractContextManager[object]]


def without(kind: str, rule: ops_regions.RegionRule) -> Mutant:
    return lambda: records_for_a_while({kind: replace(record(kind), region=rule)})


def scope_of_all(self: Bound, other: Bound) -> bool:
    """Bounds that count from the start are compared with those that count from the end."""
    return isinstance(self.number, int) and isinstance(other.number, int) and self.number <= other.number


def dimensions_kept(node, made, index, shown):
    return ops_regions.select(node, made, index, shown)._replace(dims=shown.dims)


MUTANTS: dict[str, Mutant] = {
    "places counted from the end are before all others": lambda: patch.object(Bound, "precedes", scope_of_all),
    "expanding shows each place once": without("aten::expand", ops_regions.same_elements),
    "windows show each place once": without("aten::unfold", ops_regions.same_elements),
    "transposing changes no dimension": without("aten::transpose", ops_regions.same),
    "a dimension of one place stays": without("aten::select", dimensions_kept),
    "as_strided stays in what it is given": without("aten::as_strided", ops_regions.same_elements),
    "new dimensions are none": without("aten::unsqueeze", ops_regions.same),
    "a part of a part begins where the whole does": lambda: patch.object(Span, "part", from_the_start),
}


part = Span.part


def from_the_start(self: Span, low: Bound | None, high: Bound | None, step: int = 1) -> Span:
    return part(Span(), low, high, step)


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_ideas_are_caught(name: str) -> None:
    @seed(1)
    @settings(
        max_examples=300,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(slicing)
    def run(program: Program) -> None:
        watch(program)

    with MUTANTS[name](), pytest.raises(AssertionError):
        run()


def test_graphs_without_parts_ask_for_none(spy) -> None:
    chain = spy(regions, "_chain")
    graph: Graph = parse_graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu_(%x)\n  return (%a)\n")
    db = analyze(graph)
    assert db.may_alias(graph.value("x"), graph.value("a")) and db.has_writers(graph.value("x"))
    assert not chain.called
