"""Parts of one tensor that cannot overlap: what is told apart, and that nothing is that does overlap."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from irc.alias import analyze, regions
from irc.ir import Graph, Node, parse_graph, parse_module
from irc.ops import record
from irc.ops import regions as ops_regions
from irc.ops.regions import Region, Span
from irc.passes import PassManager
from tests.alias.slice_programs import PROGRAMS, program, share
from tests.alias.view_programs import check, view_programs
from tests.effort import examples
from tests.operators import records_for_a_while
from tests.programs.generator import Program, programs
from tests.programs.interpreter import interpret
from tests.programs.soundness import Soundness

IMPRECISE = {("transpose", 1), ("diagonal", 2), ("as_strided", 3), ("as_strided", 4)}
"""`t` of what may be a vector, two diagonals of one matrix, and places in a storage are not told apart."""


@pytest.mark.parametrize(("kind", "number"), PROGRAMS)
def test_the_answer_is_the_truth(kind: str, number: int) -> None:
    graph = program(kind, number)
    answer = analyze(graph).may_alias(graph.value("a"), graph.value("b"))
    assert answer == share(kind, number) or (answer and (kind, number) in IMPRECISE)


@examples(150)
@given(view_programs())
def test_what_is_denied_to_overlap_never_does(graph: Graph) -> None:
    check(graph)


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


NUMBERS = "".join(f"  %{'m' * (n < 0)}{abs(n)} : int = prim::Constant[value={n}]()\n" for n in (-2, -1, 0, 1, 2))
MAYBE = {
    "a list that somebody changes": """
  %l : Tensor[] = aten::unbind(%x, %0)
  %b : Tensor = aten::__getitem__(%l, %1)
  %c : Tensor[] = aten::_set_item(%l, %0, %b)
  %a : Tensor = aten::__getitem__(%l, %0)
""",
    "pieces of a part of a list": """
  %l : Tensor[] = aten::unbind(%x, %0)
  %k : Tensor[] = aten::slice(%l, %1, %none, %1)
  %a : Tensor = aten::__getitem__(%k, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a list of lengths that somebody changes": """
  %s : int[] = prim::ListConstruct(%1, %1)
  %c : int[] = aten::_set_item(%s, %0, %2)
  %l : Tensor[] = aten::split(%x, %s, %0)
  %a : Tensor = aten::__getitem__(%l, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "places in a tensor to split at": """
  %t : Long(1) = prim::Constant[value=tensor([2])]()
  %l : Tensor[] = aten::tensor_split(%x, %t, %0)
  %a : Tensor = aten::__getitem__(%l, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a number of parts in a tensor": """
  %t : Long() = prim::Constant[value=tensor([2])]()
  %l : Tensor[] = aten::tensor_split(%x, %t, %0)
  %a : Tensor = aten::__getitem__(%l, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a tensor whose strides change": """
  %r : Tensor = aten::relu(%x)
  %a : Tensor = aten::select(%r, %0, %0)
  %t : Tensor = aten::t_(%r)
  %b : Tensor = aten::select(%r, %0, %1)
""",
    "rows of what was expanded": """
  %e : Tensor = aten::expand_as(%x, %y)
  %f : Tensor = aten::contiguous(%e, %0)
  %g : Tensor = aten::view_as(%f, %y)
  %a : Tensor = aten::select(%g, %0, %0)
  %b : Tensor = aten::select(%g, %0, %1)
""",
    "rows of what has gaps or repeats elements": """
  %s : int[] = prim::ListConstruct(%2)
  %t : int[] = prim::ListConstruct(%0)
  %e : Tensor = aten::empty_strided(%s, %t, %none, %none, %none, %none)
  %a : Tensor = aten::select(%e, %0, %0)
  %b : Tensor = aten::select(%e, %0, %1)
""",
    "rows of another element type": """
  %v : Tensor = aten::view(%x, %n)
  %a : Tensor = aten::select(%v, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a number that may be negative": """
  %m : int = aten::add(%n, %1)
  %a : Tensor = aten::select(%x, %0, %n)
  %b : Tensor = aten::select(%x, %0, %m)
""",
    "a bound that may be absent": """
  %c : bool = aten::gt(%n, %0)
  %s : int? = prim::If(%c)
    block0():
      -> (%none)
    block1():
      -> (%2)
  %a : Tensor = aten::slice(%x, %0, %s, %none, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "dimensions that may be one": """
  %p : Tensor = aten::slice(%x, %0, %1, %none, %1)
  %a : Tensor = aten::select(%p, %m2, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a dimension that is not constant": """
  %p : Tensor = aten::select(%x, %n, %0)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "what may be a vector, transposed": """
  %t : Tensor = aten::t(%x)
  %a : Tensor = aten::select(%t, %0, %0)
  %b : Tensor = aten::select(%x, %1, %1)
""",
    "a tensor that may be one of two": """
  %c : bool = aten::gt(%n, %0)
  %p : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a slice of an axis that may be named twice": """
  %e : Long(2) = prim::Constant[value=tensor([0, 1])]()
  %f : Long(2) = prim::Constant[value=tensor([1, 9])]()
  %z : Long(2) = prim::Constant[value=tensor([0, -1])]()
  %a : Tensor = onnx::Slice(%x, %e, %f, %z)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a slice of an axis that is named twice": """
  %e : Long(2) = prim::Constant[value=tensor([0, 1])]()
  %f : Long(2) = prim::Constant[value=tensor([9, 9])]()
  %z : Long(2) = prim::Constant[value=tensor([0, 0])]()
  %a : Tensor = onnx::Slice(%x, %e, %f, %z)
  %b : Tensor = aten::select(%x, %0, %0)
""",
}


def of_body(body: str) -> Graph:
    head = f"graph(%x : Tensor, %y : Tensor, %n : int):\n  %none : NoneType = prim::Constant()\n{NUMBERS}"
    return parse_graph(f"{head}{body.strip(chr(10))}\n  return (%a, %b)\n")


@pytest.mark.parametrize("case", MAYBE)
def test_what_may_overlap_is_not_told_apart(case: str) -> None:
    graph = of_body(MAYBE[case])
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b"))


def test_what_is_declared_unknown_is_not_told_apart() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    a, b = map(graph.value, "ab")
    assert not db.may_alias(a, b) and db.why(a, b) == []
    db.set_wildcard(a)
    assert db.may_alias(a, b)


READERS = {
    "a scatter into the storage": "%{} : Tensor = aten::as_strided_scatter(%a, %y, %s, %s, %0)",
    "a copy of a part of the storage": "%{} : Tensor = aten::as_strided_copy(%a, %s, %s, %0)",
    "a called function": "%{} : Tensor = prim::CallFunction(%f, %a)",
}
LOOKING = """
graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %f : Function = prim::Constant[name="f"]()
  %s : int[] = prim::Constant[value=[1]]()
  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
  FIRST
  %w : Tensor = aten::add_(%b, %y, %1)
  SECOND
  return (%first, %second)

graph f(%z : Tensor):
  %0 : int = prim::Constant[value=0]()
  %s : int[] = prim::Constant[value=[1]]()
  %r : Tensor = aten::as_strided_copy(%z, %s, %s, %0)
  return (%r)
"""


@pytest.mark.parametrize("reader", READERS)
def test_readers_of_more_of_a_storage_than_they_are_given_wait_for_writes_to_all_of_it(reader: str) -> None:
    text = READERS[reader]
    module = parse_module(LOOKING.replace("FIRST", text.format("first")).replace("SECOND", text.format("second")))
    graph = module.main
    db = analyze(graph, module)
    first, w, second = (graph.value(name).node for name in ("first", "w", "second"))
    assert db.writes_between(first.inputs, first, second) and db.has_writers(graph.value("a"))
    assert db.writes_to_alias(w, graph.value("a")) and not db.can_move_before(second, w)


@pytest.mark.parametrize("writer", ["third::unknown(%b)", "aten::resize_(%b, %s)", "aten::as_strided_(%b, %s, %s)"])
def test_other_operators_may_write_more_of_a_storage_than_they_are_given(writer: str) -> None:
    text = ROWS.replace("aten::add_(%b, %y, %1)", writer)
    graph = parse_graph(text.replace("  %first", "  %s : int[] = prim::Constant[value=[1]]()\n  %first", 1))
    db = analyze(graph)
    assert db.writes_between(graph.value("a"), graph.value("first").node, graph.value("second").node)


def test_random_writes_to_parts_keep_their_order() -> None:
    text = ROWS.replace("aten::exp(%a)", "aten::normal_(%a)", 1).replace("aten::add_(%b, %y, %1)", "aten::normal_(%b)")
    graph = parse_graph(text)
    db = analyze(graph)
    first, w = (graph.value(name).node for name in ("first", "w"))
    assert not db.can_move_before(w, first)


# -- random programs -------------------------------------------------------------

FEATURES = ("slices", "slices", "torch views", "torch writes", "numbers", "torch", "branches")
slicing = programs(FEATURES, size=30, dense=True) | programs(("slices", "torch writes", "loops", "numbers"), size=25)
"""Programs full of parts of tensors, written and read, in and out of loops."""


def watch(program: Program) -> Soundness:
    watcher = Soundness(program.module)
    interpret(program.graph, program.inputs(), watcher)
    return watcher


@examples(25)
@given(slicing)
def test_the_analysis_denies_nothing_that_happens(program: Program) -> None:
    watch(program)


Mutant = Callable[[], AbstractContextManager[object]]


def with_rule(kind: str, rule: ops_regions.RegionRule | None) -> Mutant:
    return lambda: records_for_a_while({kind: replace(record(kind), region=rule)})


def instead(of: object, name: str, found: object) -> Mutant:
    return lambda: patch.object(of, name, found)


def absent_if_unknown(node: Node, position: int, default: object) -> object:
    found = known_number(node, position, default)
    return default if found is None else found


def from_the_start(self: Span, *bounds: object) -> Span:
    return part(Span(self.of), *bounds)


known_number, part = ops_regions._number, Span.part

MUTANTS: dict[str, Mutant] = {
    "integers are not negative": instead(ops_regions, "is_from_0", ops_regions.is_size),
    "dimensions are counted from both ends": instead(Region, "on_side", lambda self, dim: dict(self.dims)),
    "what is not known is absent": instead(ops_regions, "_number", absent_if_unknown),
    "a part of a part begins where the whole does": instead(Span, "part", from_the_start),
    "a dimension of one place stays": instead(Region, "without", lambda self, dim: self),
    "expanding shows each place once": with_rule("aten::expand_as", ops_regions.renumbered),
    "windows show each place once": with_rule("aten::unfold", ops_regions.renumbered),
    "transposing changes no dimension": with_rule("aten::transpose", ops_regions.same),
    "reshaping changes no dimension": with_rule("aten::reshape", ops_regions.same),
    "squeezing changes no dimension": with_rule("aten::squeeze", ops_regions.same),
    "new dimensions are none": with_rule("aten::unsqueeze", ops_regions.same),
    "as_strided stays in what it is given": with_rule("aten::as_strided", ops_regions.renumbered),
    "whatever is allocated has a place for each element": instead(regions, "makes_dense", lambda kind: True),
    "lists stay as they are": instead(regions, "_is_settled", lambda db, view: True),
}
OF_LOOPS: dict[str, Mutant] = {
    "values are the same in all iterations": instead(regions, "_around", lambda block: Everything()),
}


class Everything(set[object]):
    def __contains__(self, of: object) -> bool:
        return True

    def __or__(self, other: object) -> Everything:  # type: ignore[override]
        return self


def caught(name: str, run: Callable[[], None]) -> None:
    with {**MUTANTS, **OF_LOOPS}[name](), pytest.raises(AssertionError):
        run()


EXHAUSTIVE = settings(
    max_examples=3000, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_ideas_are_caught(name: str) -> None:
    @seed(1)
    @EXHAUSTIVE
    @given(view_programs())
    def run(graph: Graph) -> None:
        check(graph)

    caught(name, run)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_LOOPS)
def test_wrong_ideas_of_iterations_are_caught(name: str) -> None:
    @seed(1)
    @EXHAUSTIVE
    @given(slicing)
    def run(program: Program) -> None:
        watch(program)

    caught(name, run)


def test_graphs_without_parts_ask_for_none(spy) -> None:
    asked = spy(regions, "_step")
    graph: Graph = parse_graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu_(%x)\n  return (%a)\n")
    db = analyze(graph)
    assert db.may_alias(graph.value("x"), graph.value("a")) and db.has_writers(graph.value("x"))
    assert not asked.called
