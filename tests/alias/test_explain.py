"""Why two values may share memory."""

import pytest
from hypothesis import given

from irc.alias import analyze
from tests.alias.helpers import Case
from tests.alias.missed import cases, numbers
from tests.alias.programs import choices, program
from tests.effort import examples
from tests.graphs import ir

CASE = ir("""
    x: Tensor; n: int -> view
    t: bool = prim.Constant(value=1); z: int = prim.Constant(value=0); a = relu(x); b = sigmoid(x)
    l: "Tensor[]" = prim.ListConstruct(a); s: "Tensor[]" = append(l, b); e = __getitem__(l, z)
    p, q = prim.Loop(n, t, a, b)
    with block(i=int, u=Tensor, v=Tensor): k = neg(u); yield t, v, k
    view = t(p)
""")


def test_the_facts_lead_to_one_location() -> None:
    c = Case(CASE)
    facts = [str(fact) for fact in c.db.why(c["e"], c["b"])]
    assert facts == [
        "%e may be what temporary %l : Tensor[] holds    by %e = aten::__getitem__(%l, %z)",
        "what temporary %l : Tensor[] holds may be %b    by %s = aten::append(%l, %b)",
        "%b may be temporary %b : Tensor    by %b = aten::sigmoid(%x)",
    ]


def test_what_an_unknown_list_holds_is_not_the_list() -> None:
    c = Case(ir("x: Tensor", 'm: "Tensor[]" = foreign.make(x)', "m"))
    assert [str(fact) for fact in c.db.why(c["m"], c["x"])][1:3] == [
        "any unknown Tensor[] may be unknown : Tensor[]",
        "what unknown : Tensor[] holds may be any unknown Tensor",
    ]


def test_loops_tell_which_edge_it_was() -> None:
    c = Case(CASE)
    assert cases(c.db, c["view"], c["a"]) == [0, 2, 0], "the loop may make no iteration"
    assert 1 in cases(c.db, c["v"], c["k"]), "by the back edge"


ESCAPES = """
graph(%l : {held}[], %c : bool, %x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %k : Tensor[] = prim::ListConstruct(%x)
  %e : {held} = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%k)
  %m : {held}[] = aten::append(%l, %{stored})
  %u : {held} = aten::__getitem__(%l, %z)
  %t : Tensor = prim::unchecked_cast(%u)
  return (%t)
"""


@pytest.mark.parametrize(
    ("held", "stored", "found"),
    [("Union(Tensor, Tensor[])", "e", {0, 7}), ("Union(Tensor, Tensor[])", "a", {0}), ("Any", "e", {0, 4})],
)
def test_facts_tell_as_what_a_value_escaped(held: str, stored: str, found: set[int]) -> None:
    c = Case(ESCAPES.format(held=held, stored=stored))
    assert set(cases(c.db, c["t"], c["a"])) == found


def test_what_a_list_holds_is_returned_by_what_pytorch_takes_to_copy() -> None:
    c = Case(ir("x: Tensor; e: str", 'l: "Tensor[]" = prim.ListConstruct(x); y = einsum(e, l, None)', "y"))
    assert 5 in cases(c.db, c["y"], c["x"])


def test_what_is_held_is_explained_too() -> None:
    c = Case(CASE)
    facts = c.db.why(c["l"], c["a"])
    assert numbers(c.db, facts)[-2:] == [3, 0]
    assert facts[-1].object == "temporary %a : Tensor"


def test_no_facts_if_nothing_is_shared() -> None:
    c = Case(CASE)
    assert c.db.why(c["a"], c["b"]) == []
    assert c.db.why(c["z"], c["z"]) == []


@given(choices)
@examples(60)
def test_there_are_facts_if_and_only_if_something_may_be_shared(numbers: list[int]) -> None:
    graph = program(numbers)
    db = analyze(graph)
    values = list(graph.values())
    for a in values:
        for b in values:
            assert bool(db.why(a, b)) == db.may_contain_alias(a, b), (str(graph), a, b)


def test_what_pytorch_misses_is_numbered() -> None:
    c = Case("""
        x: Tensor; any: Any -> e
        a = relu(x); same = type_as(a, x); l: "Tensor[]" = prim.ListConstruct(a); m: "Tensor[]" = broadcast_tensors(l)
        e = __getitem__(m, 0)
    """)
    assert cases(c.db, c["same"], c["a"]) == [5, 0], "its schema calls the result fresh"
    assert 5 in cases(c.db, c["e"], c["a"])
    assert 4 in cases(c.db, c["any"], c["x"]), "Any may be a tensor"
    assert set(cases(c.db, c["l"], c["a"])) == {0, 3}
