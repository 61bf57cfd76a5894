"""Parts of one tensor that cannot overlap: what is told apart, and that nothing is that does overlap."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given

from irc.alias import AliasDb, analyze, regions
from irc.ir import Graph, Node, Value, parse_graph, parse_module
from irc.ir.clone import exchange_outputs
from irc.ops import regions as ops_regions
from irc.passes import PassManager
from tests.alias.slice_programs import PROGRAMS, program, share
from tests.alias.view_programs import RANKS, STEPS, chain_program, check, run_all
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.interpreter import interpret
from tests.programs.soundness import Soundness


@pytest.mark.parametrize(("kind", "number"), PROGRAMS)
def test_the_answer_is_the_truth(kind: str, number: int) -> None:
    graph = program(kind, number)
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b")) == share(kind, number)


APART = {
    "rows of a view that keeps the first dimension": """
  %s : int = aten::size(%x, %0)
  %l : int[] = prim::ListConstruct(%s, %m1)
  %p : Tensor = aten::view(%x, %l)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "columns of a view that keeps the last dimension": """
  %s : int = aten::size(%x, %m1)
  %l : int[] = prim::ListConstruct(%m1, %s)
  %p : Tensor = aten::reshape(%x, %l)
  %a : Tensor = aten::select(%p, %m1, %1)
  %b : Tensor = aten::select(%x, %m1, %0)
""",
    "rows of what is flat behind the first dimension": """
  %p : Tensor = aten::flatten(%x, %1)
  %q : Tensor = onnx::Flatten(%x)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%q, %0, %0)
""",
    "rows of what is squeezed behind the first dimension": """
  %e : Long(1) = prim::Constant[value=tensor([1])]()
  %p : Tensor = aten::squeeze(%x, %1)
  %q : Tensor = onnx::Squeeze(%x, %e)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%q, %0, %0)
""",
    "columns of a Reshape that keeps two dimensions": """
  %e : Long(3) = prim::Constant[value=tensor([0, 0, -1])]()
  %p : Tensor = onnx::Reshape(%x, %e)
  %a : Tensor = aten::select(%p, %1, %1)
  %b : Tensor = aten::select(%x, %1, %0)
""",
    "parts in reverse order": """
  %e : Long(1) = prim::Constant[value=tensor([1])]()
  %f : Long(1) = prim::Constant[value=tensor([-9])]()
  %z : Long(1) = prim::Constant[value=tensor([0])]()
  %m : Long(1) = prim::Constant[value=tensor([-1])]()
  %a : Tensor = onnx::Slice(%x, %e, %f, %z, %m)
  %b : Tensor = aten::slice(%x, %0, %2, %none, %1)
""",
}


@pytest.mark.parametrize("case", APART)
def test_dimensions_that_stay_are_told_apart(case: str) -> None:
    graph = of_body(APART[case])
    assert not analyze(graph).may_alias(graph.value("a"), graph.value("b"))


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
    w = graph.value("w").node
    assert db.has_writers(a) and db.writers(a) == [w] and db.writes_to_alias(w, a)


def test_a_write_moves_past_a_read_of_another_row_only() -> None:
    for row, may_move in (("%a", True), ("%b", False)):
        graph = parse_graph(ROWS.replace("aten::exp(%a)", f"aten::exp({row})", 1))
        first, w = (graph.value(name).node for name in ("first", "w"))
        assert analyze(graph).can_move_before(w, first) is may_move


def test_parts_of_what_is_another_view_in_each_iteration_are_not_apart() -> None:
    sliced = "%k : int = aten::neg(%i)\n      %v : Tensor = aten::slice(%x, %0, %k, %count, %1)\n      %a"
    text = LOOP.replace("%a", sliced, 1).replace("(%x, %0, %i)", "(%v, %0, %0)").replace("(%x, %0, %j)", "(%v, %0, %1)")
    graph = parse_graph(text)
    db = analyze(graph)
    assert not db.may_alias(graph.value("a"), graph.value("b")) and db.has_writers(graph.value("a"))


def test_elements_of_what_a_loop_carries_may_be_in_one_place() -> None:
    graph = parse_graph(
        LOOP.replace("prim::Loop(%count, %true)", "%r : Tensor = prim::Loop(%count, %true, %e)")
        .replace("  %r", "  %e : Tensor = aten::expand_as(%x, %x)\n  %r", 1)
        .replace("%i : int", "%i : int, %c : Tensor")
        .replace("select(%x", "select(%c")
        .replace("-> (%true)", "-> (%true, %w)")
    )
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b"))


def test_a_number_that_a_loop_carries_may_be_negative() -> None:
    carried = LOOP.replace("prim::Loop(%count, %true)", "%r : int = prim::Loop(%count, %true, %m)")
    carried = carried.replace("%i : int", "%k : int, %i : int").replace("-> (%true)", "-> (%true, %j)")
    graph = parse_graph(carried.replace("%count : int", "%count : int, %m : int"))
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b"))


NUMBERS = "".join(f"  %{'m' * (n < 0)}{abs(n)} : int = prim::Constant[value={n}]()\n" for n in range(-3, 4))
STRIDED = "  %s : int[] = prim::ListConstruct({})\n  %t : int[] = prim::ListConstruct({})\n"
MAYBE = {
    "a permutation that somebody changes": """
  %l : int[] = prim::ListConstruct(%0, %1)
  aten::reverse(%l)
  %p : Tensor = aten::permute(%x, %l)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "one diagonal, counted from either dimension": """
  %a : Tensor = aten::diagonal(%x, %1, %0, %1)
  %b : Tensor = aten::diagonal(%x, %m1, %1, %0)
""",
    "diagonals of other dimensions": """
  %a : Tensor = aten::diagonal(%x, %0, %0, %1)
  %b : Tensor = aten::diagonal(%x, %1, %1, %2)
""",
    "the end of a part, and the whole but its ends": """
  %p : Tensor = aten::slice(%x, %0, %none, %2, %1)
  %a : Tensor = aten::slice(%p, %0, %m1, %none, %1)
  %b : Tensor = aten::slice(%x, %0, %1, %m1, %1)
""",
    "a matrix in one row": """
  %s : int[] = prim::ListConstruct(%m1)
  %p : Tensor = aten::reshape(%x, %s)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "a diagonal by a number": """
  %a : Tensor = aten::diagonal(%x, %n)
  %b : Tensor = aten::diagonal(%x, %1)
""",
    "places in a storage, the last of one being the first of the other": STRIDED.format("%2", "%1")
    + """
  %a : Tensor = aten::as_strided(%x, %s, %t, %0)
  %b : Tensor = aten::as_strided(%x, %s, %t, %1)
""",
    "places in a storage, more than two": """
  %s : int[] = prim::ListConstruct(%3)
  %t : int[] = prim::ListConstruct(%1)
  %a : Tensor = aten::as_strided(%x, %s, %t, %0)
  %b : Tensor = aten::as_strided(%x, %s, %t, %2)
""",
    "places in a storage, in steps of which one is taken once": STRIDED.format("%1, %2", "%2, %1")
    + """
  %a : Tensor = aten::as_strided(%x, %s, %t, %0)
  %b : Tensor = aten::as_strided(%x, %s, %t, %1)
""",
    "places in a storage, in steps of two lengths": STRIDED.format("%2, %2", "%2, %3")
    + """
  %a : Tensor = aten::as_strided(%x, %s, %t, %0)
  %b : Tensor = aten::as_strided(%x, %s, %t, %1)
""",
    "places in a storage, some of them twice": STRIDED.format("%2, %2", "%0, %1")
    + """
  %p : Tensor = aten::as_strided(%x, %s, %t, %0)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%p, %0, %1)
""",
    "places in a storage, from a number on": STRIDED.format("%2", "%1")
    + """
  %a : Tensor = aten::as_strided(%x, %s, %t, %n)
  %b : Tensor = aten::as_strided(%x, %s, %t, %2)
""",
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
    "a number that may be negative": """
  %m : int = aten::add(%n, %1)
  %a : Tensor = aten::select(%x, %0, %n)
  %b : Tensor = aten::select(%x, %0, %m)
""",
    "what is before a number, and what is behind it, if that may be -1": """
  %m : int = aten::add(%n, %1)
  %a : Tensor = aten::slice(%x, %0, %none, %n, %1)
  %b : Tensor = aten::slice(%x, %0, %m, %none, %1)
""",
    "a product that may be negative": """
  %s : int = aten::size(%x, %0)
  %m : int = aten::mul(%n, %s)
  %p : int = aten::add(%m, %1)
  %a : Tensor = aten::select(%x, %0, %m)
  %b : Tensor = aten::select(%x, %0, %p)
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
    "dimensions behind one that goes": """
  %p : Tensor = aten::select(%x, %0, %0)
  %a : Tensor = aten::select(%p, %1, %0)
  %b : Tensor = aten::select(%x, %1, %1)
""",
    "dimensions before one that goes": """
  %p : Tensor = aten::select(%x, %m1, %0)
  %a : Tensor = aten::select(%p, %m2, %0)
  %b : Tensor = aten::select(%x, %m2, %1)
""",
    "dimensions far before one that goes": """
  %p : Tensor = aten::select(%x, %m1, %0)
  %a : Tensor = aten::select(%p, %m3, %0)
  %b : Tensor = aten::select(%x, %m2, %1)
""",
    "pieces of what was expanded": """
  %e : Tensor = aten::expand_as(%x, %y)
  %l : Tensor[] = aten::chunk(%e, %2, %0)
  %a : Tensor = aten::__getitem__(%l, %0)
  %b : Tensor = aten::__getitem__(%l, %1)
""",
    "rows of a piece of a slice": """
  %p : Tensor = aten::slice(%x, %0, %1, %none, %1)
  %l : Tensor[] = aten::chunk(%p, %2, %0)
  %q : Tensor = aten::__getitem__(%l, %1)
  %a : Tensor = aten::select(%q, %0, %0)
  %b : Tensor = aten::select(%x, %0, %2)
""",
    "places some number apart": """
  %p : Tensor = aten::slice(%x, %0, %none, %none, %n)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %2)
""",
    "pieces between places that are not in order": """
  %s : int[] = prim::ListConstruct(%2, %1)
  %l : Tensor[] = aten::tensor_split(%x, %s, %0)
  %a : Tensor = aten::__getitem__(%l, %0)
  %b : Tensor = aten::__getitem__(%l, %2)
""",
    "rows of a slice from the end along two axes": """
  %e : Long(2) = prim::Constant[value=tensor([-1, 1])]()
  %f : Long(2) = prim::Constant[value=tensor([9, 9])]()
  %p : Tensor = onnx::Slice(%x, %e, %f)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a slice along axes that are not known": """
  %e : Long(1) = prim::Constant[value=tensor([0])]()
  %f : Long(1) = prim::Constant[value=tensor([1])]()
  %a : Tensor = onnx::Slice(%x, %e, %f, %y)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "a slice with steps that are not known": """
  %e : Long(1) = prim::Constant[value=tensor([0])]()
  %f : Long(1) = prim::Constant[value=tensor([9])]()
  %p : Tensor = onnx::Slice(%x, %e, %f, %e, %y)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %2)
""",
    "a row and a column": """
  %t : Tensor = aten::transpose(%x, %0, %1)
  %a : Tensor = aten::select(%t, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "windows": """
  %w : Tensor = aten::unfold(%x, %0, %2, %1)
  %a : Tensor = aten::select(%w, %0, %0)
  %b : Tensor = aten::select(%w, %0, %1)
""",
    "rows of two inputs": """
  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%y, %0, %1)
""",
    "rows of a slice, transposed": """
  %p : Tensor = aten::slice(%x, %0, %1, %none, %1)
  %t : Tensor = aten::t(%p)
  %a : Tensor = aten::select(%t, %0, %0)
  %b : Tensor = aten::select(%x, %0, %2)
""",
    "what may be a vector, transposed": """
  %t : Tensor = aten::t(%x)
  %a : Tensor = aten::select(%t, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "what may be a vector, transposed, counted from the end": """
  %t : Tensor = aten::t(%x)
  %a : Tensor = aten::select(%t, %m1, %0)
  %b : Tensor = aten::select(%x, %m1, %1)
""",
    "a view with the sizes in another order": """
  %s : int = aten::size(%x, %1)
  %r : int = aten::size(%x, %0)
  %l : int[] = prim::ListConstruct(%s, %r)
  %p : Tensor = aten::view(%x, %l)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "a view with the size of another tensor": """
  %s : int = aten::size(%y, %0)
  %l : int[] = prim::ListConstruct(%s, %m1)
  %p : Tensor = aten::view(%x, %l)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "dimensions of a view behind those that stay": """
  %s : int = aten::size(%x, %0)
  %l : int[] = prim::ListConstruct(%s, %m1)
  %p : Tensor = aten::view(%x, %l)
  %a : Tensor = aten::select(%p, %1, %1)
  %b : Tensor = aten::select(%x, %1, %0)
""",
    "the first dimension of a view whose last ones stay": """
  %s : int = aten::size(%x, %m1)
  %l : int[] = prim::ListConstruct(%m1, %s)
  %p : Tensor = aten::view(%x, %l)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "the dimension that others become": """
  %p : Tensor = aten::flatten(%x, %1, %m2)
  %a : Tensor = aten::select(%p, %1, %1)
  %b : Tensor = aten::select(%x, %1, %0)
""",
    "the last dimension, with others": """
  %p : Tensor = aten::flatten(%x, %1, %m1)
  %a : Tensor = aten::select(%p, %m1, %1)
  %b : Tensor = aten::select(%x, %m1, %0)
""",
    "dimensions behind one that may go": """
  %p : Tensor = aten::squeeze(%x, %0)
  %a : Tensor = aten::select(%p, %1, %0)
  %b : Tensor = aten::select(%x, %1, %1)
""",
    "dimensions before one that may go": """
  %p : Tensor = aten::squeeze(%x, %m1)
  %a : Tensor = aten::select(%p, %m2, %0)
  %b : Tensor = aten::select(%x, %m2, %1)
""",
    "a dimension of size 0, not one that stays": """
  %e : Long(2) = prim::Constant[value=tensor([0, -1])]()
  %p : Tensor = onnx::Reshape[allowzero=1](%x, %e)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "a dimension behind one that stays": """
  %e : Long(3) = prim::Constant[value=tensor([0, 1, -1])]()
  %p : Tensor = onnx::Reshape(%x, %e)
  %a : Tensor = aten::select(%p, %1, %0)
  %b : Tensor = aten::select(%x, %1, %1)
""",
    "a matrix of the dimensions before an axis, and the others": """
  %p : Tensor = onnx::Flatten[axis=2](%x)
  %a : Tensor = aten::select(%p, %0, %1)
  %b : Tensor = aten::select(%x, %0, %0)
""",
    "rows in reverse order": """
  %e : Long(1) = prim::Constant[value=tensor([2])]()
  %f : Long(1) = prim::Constant[value=tensor([-9])]()
  %z : Long(1) = prim::Constant[value=tensor([0])]()
  %m : Long(1) = prim::Constant[value=tensor([-1])]()
  %p : Tensor = onnx::Slice(%x, %e, %f, %z, %m)
  %a : Tensor = aten::select(%p, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
""",
    "rows in reverse order from a place before the first, and the first": """
  %e : Long(1) = prim::Constant[value=tensor([-9])]()
  %f : Long(1) = prim::Constant[value=tensor([-99])]()
  %z : Long(1) = prim::Constant[value=tensor([0])]()
  %m : Long(1) = prim::Constant[value=tensor([-1])]()
  %a : Tensor = onnx::Slice(%x, %e, %f, %z, %m)
  %b : Tensor = aten::select(%x, %0, %0)
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


CHANGING = """
  %c : bool = aten::gt(%n, %0)
  %z : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%x)
  %s : int[] = prim::ListConstruct(%1, %1)
  %k : Tensor[] = aten::split(%x, %s, %0)
  %p : Tensor = aten::__getitem__(%k, %0)
  %l : Tensor[] = aten::unbind(%x, %0)
  %e, %q, %r : Tensor = prim::ListUnpack(%l)
  %v : Tensor = aten::slice(%x, %0, %1, %none, %1)
  %a : Tensor = aten::select(%z, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
"""


def made_by(graph: Graph, name: str) -> Node:
    node = graph.value(name).node
    assert node is not None
    return node


CHANGES: dict[str, tuple[str, Callable[[Graph], object]]] = {
    "an input": ("ab", lambda g: made_by(g, "b").replace_input(2, g.value("0"))),
    "all inputs": ("ab", lambda g: made_by(g, "b").set_inputs([g.value(name) for name in "x00"])),
    "the uses of a number": ("ab", lambda g: g.value("1").replace_all_uses_with(g.value("0"))),
    "one more length before a piece": ("pb", lambda g: made_by(g, "s").insert_input(0, g.value("2"))),
    "the bounds of a slice go": ("av", lambda g: made_by(g, "v").erase_inputs([2, 3, 4])),
    "two outputs change places": ("ar", lambda g: exchange_outputs(g.value("e"), g.value("r"))),
    "an output goes": ("aq", lambda g: made_by(g, "e").erase_outputs([0])),
    "what a branch returns": ("ab", lambda g: made_by(g, "z").blocks[0].set_returns([g.value("y")])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_answers_follow_changes_of_numbers_that_no_update_reports(change: str) -> None:
    graph = of_body(CHANGING)
    db = analyze(graph)
    names, carry_out = CHANGES[change]
    first, second = map(graph.value, names)
    assert not db.may_alias(first, second)
    carry_out(graph)
    assert analyze(graph).may_alias(first, second) == db.may_alias(first, second)


def test_answers_about_writes_follow_changes() -> None:
    graph = parse_graph(ROWS)
    db = analyze(graph)
    a = graph.value("a")
    assert not db.has_writers(a) and db.writers(a) == []
    node = graph.create("aten::relu_", [a], [a.type]).insert_after(made_by(graph, "a"))
    db.add_node(node)
    assert db.has_writers(a) and db.writers(a) == [node]
    db.erase_node(node)
    node.erase()
    assert not db.has_writers(a) and db.can_move_before(made_by(graph, "second"), made_by(graph, "w"))
    made_by(graph, "b").replace_input(2, graph.value("0"))
    assert db.has_writers(a) and not db.can_move_before(made_by(graph, "second"), made_by(graph, "w"))


READERS = {
    "a scatter into the storage": "%{} : Tensor = aten::as_strided_scatter(%a, %y, %s, %s, %0)",
    "a copy of a part of the storage": "%{} : Tensor = aten::as_strided_copy(%a, %s, %s, %0)",
    "a called function": "%{} : Tensor = prim::CallFunction(%f, %a)",
    "a branch": (
        "%{0} : Tensor = prim::If(%c)\n    block0():\n      %l{0} : Tensor = aten::as_strided_copy(%a, %s, %s, %0)\n"
        "      -> (%l{0})\n    block1():\n      -> (%y)"
    ),
}
LOOKING = """
graph(%x : Tensor, %y : Tensor, %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %f : Function = prim::Constant[name="f"]()
  %s : int[] = prim::Constant[value=[1]]()
  %v : Tensor = aten::neg(%x)
  %a : Tensor = aten::select(%v, %0, %0)
  %b : Tensor = aten::select(%v, %0, %1)
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
    assert db.writes_between(graph.value("a"), first, second) and db.has_writers(graph.value("a"))
    assert db.writes_to_alias(w, graph.value("a")) and not db.can_move_before(second, w)


CALLED = """
graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::select(%x, %0, %0)
  %b : Tensor = aten::select(%x, %0, %1)
  return (%a, %b)

graph outer(%x : Tensor, %y : Tensor):
  %f : Function = prim::Constant[name="main"]()
  %e : Tensor = aten::expand_as(%x, %y)
  %a : Tensor, %b : Tensor = prim::CallFunction(%f, %e, %y)
  return (%a)
"""


def test_what_a_function_may_pass_to_a_graph_may_overlap_itself() -> None:
    module = parse_module(CALLED)
    graph = module.main
    assert analyze(graph, module).may_alias(graph.value("a"), graph.value("b"))
    alone = parse_graph(CALLED.partition("\n\ngraph outer")[0])
    assert not analyze(alone).may_alias(alone.value("a"), alone.value("b"))


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


@examples(12)
@given(slicing)
def test_the_analysis_denies_nothing_that_happens(program: Program) -> None:
    watch(program)


@pytest.mark.parametrize("first", STEPS)
def test_dimensions_are_followed_through_chains_of_views(first: str) -> None:
    check_chains(first, STEPS[STEPS.index(first) % 8 :: 8])


@pytest.mark.slow
@pytest.mark.parametrize("first", STEPS)
def test_dimensions_are_followed_through_all_chains_of_views(first: str) -> None:
    check_chains(first, STEPS)


def check_chains(first: str, others: Sequence[str]) -> None:
    for second in others:
        run_all(chain_program(first, second), [(shape, (0, 0)) for shape in RANKS])


def check_programs(first: int, count: int) -> None:
    seen = sum(check(Random(number))[0] for number in range(first, first + count))
    assert seen > 8 * count, "parts that are said to be apart are rare"


@pytest.mark.parametrize("block", range(4))
def test_programs_of_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(100 * block, 100)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(12))
def test_many_programs_of_views_do_nothing_that_is_denied(block: int) -> None:
    check_programs(400 + 500 * block, 500)


def test_graphs_without_parts_ask_for_none(spy) -> None:
    asked = spy(regions, "_view")
    graph: Graph = parse_graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu_(%x)\n  return (%a)\n")
    db = analyze(graph)
    assert db.may_alias(graph.value("x"), graph.value("a")) and db.has_writers(graph.value("x"))
    assert not asked.called


def many_rows(count: int) -> Graph:
    """``count`` rows that are all written and read, and the last of so many pieces of two kinds."""
    rows = "".join(
        f"  %i{i} : int = prim::Constant[value={i}]()\n  %r{i} : Tensor = aten::select(%x, %0, %i{i})\n"
        for i in range(count)
    )
    writes = "".join(f"  %w{i} : Tensor = aten::zero_(%r{i})\n" for i in range(count))
    return parse_graph(
        f"graph(%x : Tensor, %y : int):\n{CONSTANTS}{rows}{writes}  %e : Tensor = aten::exp(%r{count - 1})\n"
        f"  %n : int = prim::Constant[value={count}]()\n  %l : Tensor[] = aten::tensor_split(%x, %n, %0)\n"
        f"  %m : int[] = prim::ListConstruct({', '.join(['%y'] * count)})\n"
        f"  %k : Tensor[] = aten::split(%x, %m, %0)\n  %p : Tensor = aten::__getitem__(%l, %i{count - 1})\n"
        f"  %q : Tensor = aten::__getitem__(%k, %i{count - 1})\n  return (%x)\n"
    )


QUERIES: dict[str, Callable[[AliasDb, Graph, list[Value]], object]] = {
    "two lists": lambda db, graph, rows: db.may_alias(rows[::2], rows[1::2]),
    "writers": lambda db, graph, rows: db.writers(rows[0]),
    "a list, written by one": lambda db, graph, rows: db.writes_to_alias(graph.value("w0").node, rows),
    "a move": lambda db, graph, rows: db.can_move_before(graph.value("e").node, graph.value("w0").node),
    "one of equal pieces": lambda db, graph, rows: db.has_writers(graph.value("p")),
    "one of given pieces": lambda db, graph, rows: db.has_writers(graph.value("q")),
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_work_of_a_query_does_not_grow_with_the_number_of_parts(query: str, spy) -> None:
    looks = [spy(regions, "_view"), spy(ops_regions, "quantity"), spy(ops_regions, "plus")]
    counts = []
    for count in (100, 400):
        graph = many_rows(count)
        before = sum(look.call_count for look in looks)
        QUERIES[query](analyze(graph), graph, [graph.value(f"r{i}") for i in range(count)])
        counts.append(sum(look.call_count for look in looks) - before)
    assert counts[0] == counts[1]
