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
from tests.graphs import ir_graph
from tests.programs.generator import Program, programs
from tests.programs.interpreter import interpret
from tests.programs.soundness import Soundness
from tests.tables import rows


@pytest.mark.parametrize(("kind", "number"), PROGRAMS)
def test_the_answer_is_the_truth(kind: str, number: int) -> None:
    graph = program(kind, number)
    assert analyze(graph).may_alias(graph.value("a"), graph.value("b")) == share(kind, number)


APART = rows("""
rows of a view that keeps the first dimension | a = select(view(x, prim.ListConstruct(size(x, 0), -1)), 0, 1);
    b = select(x, 0, 0)
columns of a view that keeps the last dimension | a = select(reshape(x, prim.ListConstruct(-1, size(x, -1))), -1, 1);
    b = select(x, -1, 0)
rows of what is flat behind the first dimension | a = select(flatten(x, 1), 0, 1); b = select(Flatten(x), 0, 0)
rows of what is squeezed behind the first dimension | a = select(squeeze(x, 1), 0, 1);
    b = select(Squeeze(x, [1]), 0, 0)
columns of a Reshape that keeps two dimensions | a = select(Reshape(x, [0, 0, -1]), 1, 1); b = select(x, 1, 0)
parts in reverse order | a = Slice(x, [1], [-9], [0], [-1]); b = slice(x, 0, 2, None, 1)
""")


@pytest.mark.parametrize(("case", "body"), APART)
def test_dimensions_that_stay_are_told_apart(case: str, body: str) -> None:
    graph = ir_graph("x, y: Tensor; n: int", body, "a, b")
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


@pytest.mark.parametrize("name", ["Identity", "alias", "detach", "lift_fresh", "positive"])
def test_the_same_tensor_lies_in_the_same_place(name: str) -> None:
    """Else `canonicalize` finds more to share once it has removed it."""
    graph = ir_graph(
        "x: Float(3)", f"p, q = Split(abs(x), [1, 2], axis=0); r = {name}(q); w = neg_(r); z = neg(p)", "z"
    )
    db = analyze(graph)
    p, q, r = map(graph.value, "pqr")
    assert not db.may_alias(p, r) and not db.has_writers(p) and db.has_writers(q)


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
MAYBE = rows("""
a permutation that somebody changes | l = prim.ListConstruct(0, 1); reverse(l); p = permute(x, l);
    a = select(p, 0, 0); b = select(x, 0, 1)
one diagonal, counted from either dimension | a = diagonal(x, 1, 0, 1); b = diagonal(x, -1, 1, 0)
diagonals of other dimensions | a = diagonal(x, 0, 0, 1); b = diagonal(x, 1, 1, 2)
the end of a part, and the whole but its ends | a = slice(slice(x, 0, None, 2, 1), 0, -1, None, 1);
    b = slice(x, 0, 1, -1, 1)
a matrix in one row | a = select(reshape(x, prim.ListConstruct(-1)), 0, 1); b = select(x, 0, 0)
a diagonal by a number | a = diagonal(x, n); b = diagonal(x, 1)
places in a storage, the last of one being the first of the other | s = prim.ListConstruct(2);
    t = prim.ListConstruct(1); a = as_strided(x, s, t, 0); b = as_strided(x, s, t, 1)
places in a storage, more than two | s = prim.ListConstruct(3); t = prim.ListConstruct(1); a = as_strided(x, s, t, 0);
    b = as_strided(x, s, t, 2)
places in a storage, in steps of which one is taken once | s = prim.ListConstruct(1, 2); t = prim.ListConstruct(2, 1);
    a = as_strided(x, s, t, 0); b = as_strided(x, s, t, 1)
places in a storage, in steps of two lengths | s = prim.ListConstruct(2, 2); t = prim.ListConstruct(2, 3);
    a = as_strided(x, s, t, 0); b = as_strided(x, s, t, 1)
places in a storage, some of them twice | p = as_strided(x, prim.ListConstruct(2, 2), prim.ListConstruct(0, 1), 0);
    a = select(p, 0, 0); b = select(p, 0, 1)
places in a storage, from a number on | s = prim.ListConstruct(2); t = prim.ListConstruct(1);
    a = as_strided(x, s, t, n); b = as_strided(x, s, t, 2)
a list that somebody changes | l = unbind(x, 0); b = __getitem__(l, 1); c: "Tensor[]" = _set_item(l, 0, b);
    a = __getitem__(l, 0)
pieces of a part of a list | k: "Tensor[]" = slice(unbind(x, 0), 1, None, 1); a = __getitem__(k, 0);
    b = select(x, 0, 1)
a list of lengths that somebody changes | s = prim.ListConstruct(1, 1); c: "int[]" = _set_item(s, 0, 2);
    l = split(x, s, 0); a = __getitem__(l, 0); b = select(x, 0, 1)
places in a tensor to split at | t: Long(1) = prim.Constant(value=tensor([2]));
    a = __getitem__(tensor_split(x, t, 0), 0); b = select(x, 0, 1)
a number of parts in a tensor | t: Long() = prim.Constant(value=tensor([2]));
    a = __getitem__(tensor_split(x, t, 0), 0); b = select(x, 0, 1)
a tensor whose strides change | r = relu(x); a = select(r, 0, 0); t = t_(r); b = select(r, 0, 1)
rows of what was expanded | g = view_as(contiguous(expand_as(x, y), 0), y); a = select(g, 0, 0); b = select(g, 0, 1)
rows of what has gaps or repeats elements |
    e = empty_strided(prim.ListConstruct(2), prim.ListConstruct(0), None, None, None, None); a = select(e, 0, 0);
    b = select(e, 0, 1)
a number that may be negative | m: int = add(n, 1); a = select(x, 0, n); b = select(x, 0, m)
what is before a number, and what is behind it, if that may be -1 | m: int = add(n, 1); a = slice(x, 0, None, n, 1);
    b = slice(x, 0, m, None, 1)
a product that may be negative | m: int = mul(n, size(x, 0)); p: int = add(m, 1); a = select(x, 0, m);
    b = select(x, 0, p)
a bound that may be absent | c: bool = gt(n, 0); s: "int?" = None if c else 2; a = slice(x, 0, s, None, 1);
    b = select(x, 0, 0)
dimensions that may be one | a = select(slice(x, 0, 1, None, 1), -2, 0); b = select(x, 0, 1)
a dimension that is not constant | a = select(select(x, n, 0), 0, 0); b = select(x, 0, 1)
dimensions behind one that goes | a = select(select(x, 0, 0), 1, 0); b = select(x, 1, 1)
dimensions before one that goes | a = select(select(x, -1, 0), -2, 0); b = select(x, -2, 1)
dimensions far before one that goes | a = select(select(x, -1, 0), -3, 0); b = select(x, -2, 1)
pieces of what was expanded | l = chunk(expand_as(x, y), 2, 0); a = __getitem__(l, 0); b = __getitem__(l, 1)
rows of a piece of a slice | a = select(__getitem__(chunk(slice(x, 0, 1, None, 1), 2, 0), 1), 0, 0);
    b = select(x, 0, 2)
places some number apart | a = select(slice(x, 0, None, None, n), 0, 1); b = select(x, 0, 2)
pieces between places that are not in order | l = tensor_split(x, prim.ListConstruct(2, 1), 0); a = __getitem__(l, 0);
    b = __getitem__(l, 2)
rows of a slice from the end along two axes | a = select(Slice(x, [-1, 1], [9, 9]), 0, 0); b = select(x, 0, 1)
a slice along axes that are not known | a = Slice(x, [0], [1], y); b = select(x, 0, 1)
a slice with steps that are not known | a = select(Slice(x, [0], [9], [0], y), 0, 1); b = select(x, 0, 2)
a row and a column | a = select(transpose(x, 0, 1), 0, 0); b = select(x, 0, 1)
windows | w = unfold(x, 0, 2, 1); a = select(w, 0, 0); b = select(w, 0, 1)
rows of two inputs | a = select(x, 0, 0); b = select(y, 0, 1)
rows of a slice, transposed | a = select(t(slice(x, 0, 1, None, 1)), 0, 0); b = select(x, 0, 2)
what may be a vector, transposed | a = select(t(x), 0, 0); b = select(x, 0, 1)
what may be a vector, transposed, counted from the end | a = select(t(x), -1, 0); b = select(x, -1, 1)
a view with the sizes in another order | a = select(view(x, prim.ListConstruct(size(x, 1), size(x, 0))), 0, 1);
    b = select(x, 0, 0)
a view with the size of another tensor | a = select(view(x, prim.ListConstruct(size(y, 0), -1)), 0, 1);
    b = select(x, 0, 0)
dimensions of a view behind those that stay | a = select(view(x, prim.ListConstruct(size(x, 0), -1)), 1, 1);
    b = select(x, 1, 0)
the first dimension of a view whose last ones stay | a = select(view(x, prim.ListConstruct(-1, size(x, -1))), 0, 1);
    b = select(x, 0, 0)
the dimension that others become | a = select(flatten(x, 1, -2), 1, 1); b = select(x, 1, 0)
the last dimension, with others | a = select(flatten(x, 1, -1), -1, 1); b = select(x, -1, 0)
dimensions behind one that may go | a = select(squeeze(x, 0), 1, 0); b = select(x, 1, 1)
dimensions before one that may go | a = select(squeeze(x, -1), -2, 0); b = select(x, -2, 1)
a dimension of size 0, not one that stays | a = select(Reshape(x, [0, -1], allowzero=1), 0, 1); b = select(x, 0, 0)
a dimension behind one that stays | a = select(Reshape(x, [0, 1, -1]), 1, 0); b = select(x, 1, 1)
a matrix of the dimensions before an axis, and the others | a = select(Flatten(x, axis=2), 0, 1); b = select(x, 0, 0)
rows in reverse order | a = select(Slice(x, [2], [-9], [0], [-1]), 0, 0); b = select(x, 0, 1)
rows in reverse order from a place before the first, and the first | a = Slice(x, [-9], [-99], [0], [-1]);
    b = select(x, 0, 0)
a tensor that may be one of two | c: bool = gt(n, 0); p = x if c else y; a = select(p, 0, 0); b = select(x, 0, 1)
a slice of an axis that may be named twice | a = Slice(x, [0, 1], [1, 9], [0, -1]); b = select(x, 0, 1)
a slice of an axis that is named twice | a = Slice(x, [0, 1], [9, 9], [0, 0]); b = select(x, 0, 0)
""")


def of_body(body: str) -> Graph:
    head = f"graph(%x : Tensor, %y : Tensor, %n : int):\n  %none : NoneType = prim::Constant()\n{NUMBERS}"
    return parse_graph(f"{head}{body.strip(chr(10))}\n  return (%a, %b)\n")


@pytest.mark.parametrize(("case", "body"), MAYBE)
def test_what_may_overlap_is_not_told_apart(case: str, body: str) -> None:
    graph = ir_graph("x, y: Tensor; n: int", body, "a, b")
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
    check_chains(first, STEPS[STEPS.index(first) % 16 :: 16])


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
    check_programs(100 * block, 60)


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
