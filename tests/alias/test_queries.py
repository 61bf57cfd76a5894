"""What each query means, on small programs; after PyTorch's own tests of its alias analysis."""

import random
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import Kind, analyze
from irc.alias.location_sets import SetIndex
from irc.alias.write_index import common_block, outermost_loop
from irc.errors import Error
from irc.ir import IF, Block, Graph, Node
from tests.alias.helpers import Case
from tests.alias.programs import choices, program
from tests.effort import examples

# -- sharing -------------------------------------------------------------------


def test_inputs_may_share_unless_they_are_known_not_to() -> None:
    text = "graph(%x : Tensor, %y : Tensor, %l : Tensor[]):\n  return (%x)\n"
    c = Case(text)
    c.claims("x ~ y, x !~ l, x has l")
    d = Case(text, noalias=("x", "l"))
    assert not d.alias("x", "y")
    assert not d.contain("x", "l")
    assert {x.kind for x in d.db.locations(d["x"])} == {Kind.DONATED}
    with pytest.raises(Error, match="IRC341"):
        analyze(c.graph, noalias=["nobody"])
    with pytest.raises(Error, match="IRC341"):
        analyze(c.graph, noalias=[d["x"]])
    with pytest.raises(TypeError, match=r"a list of their names: \['xy'\]"):
        analyze(c.graph, noalias="xy")


@pytest.mark.parametrize(
    ("result", "functional"),
    [
        ("Tensor = aten::add(%x, %x, %n)", True),
        ("Tensor = aten::add(%x, %x, %n, %o)", False),
        ("Tensor = aten::add_(%o, %x, %n)", False),
        ("Tensor = aten::t(%o)", False),
        ("Tensor[] = prim::ListConstruct(%o)", False),
        ("int = aten::add(%n, %n)", True),
        ("Tensor = aten::rand_like(%x, %none, %none, %none, %none, %none)", False),
        ("int = no::such(%n)", False),
        ("Tensor = aten::to(%o, %any, %any, %any)", False),
    ],
)
def test_functional_nodes_write_nothing_and_make_memory_of_their_own(result: str, functional: bool) -> None:
    c = Case(f"""
graph(%x : Tensor, %n : int, %any : Any):
  %none : NoneType = prim::Constant()
  %o : Tensor = aten::relu(%x)
  %r : {result}
  return (%r)
""")
    node = c["r"].node
    assert node is not None and c.db.is_functional(node) == functional


def test_nothing_is_certain_of_what_gets_another_storage() -> None:
    c = Case("""
        x, y: Tensor -> v
        a = neg(x); v = t(a); s = set_(a, y); b = neg(x); w = t(b); f: Function = prim.Constant(name="f"); d = neg(x)
        u = t(d); e = prim.CallFunction(f, d, y)

        f | p, q: Tensor -> r
        r = set_(p, q)
    """)
    must = c.db.must_alias
    for a, b in (("a", "v"), ("a", "s"), ("v", "s"), ("d", "u")):
        assert not must(c[a], c[b]), (a, b)
        assert c.alias(a, b)
    for a, b in (("a", "a"), ("b", "w"), ("v", "v")):
        assert must(c[a], c[b]), (a, b)


# -- types ---------------------------------------------------------------------


def test_queries_refuse_names() -> None:
    c = Case("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n")
    with pytest.raises(TypeError, match=r"graph\.value\('x'\)"):
        c.db.may_alias("x", "y")  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["must_alias", "why"])
def test_queries_of_two_values_take_no_more(query: str) -> None:
    c = Case("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n")
    ask = getattr(c.db, query)
    for several in ([c["x"]], (c["x"], c["y"]), "x", None):
        for sides in ((several, c["y"]), (c["y"], several)):
            with pytest.raises(TypeError, match="one value on each side"):
                ask(*sides)
    other = Case("graph(%x : Tensor):\n  return (%x)\n")
    with pytest.raises(Error, match="IRC343"):
        ask(c["x"], other["x"])


def may_run_between(first: Node, middle: Node, last: Node) -> bool:
    """Whether ``middle`` may run after the latest run of ``first`` before ``last`` does, by where they stand."""
    block = common_block(first, last)
    assert block is not None
    start, end, at = (node.ancestor_in(block) for node in (first, last, middle))
    assert start is not None and end is not None
    loop = outermost_loop(block)
    repeats = loop is not None and middle.ancestor_in(loop) is not None
    if not start.is_before(end):
        return repeats or (start is at is end and start.kind != IF and start not in (first, last))
    if start is not first and repeats:
        return True  # ``first`` is inside another node, so iterations of a loop around that may pass it by
    if at is start:
        return start is not first and _may_follow(first, middle, within=block)
    if at is end:
        return end is not last and _may_follow(middle, last, within=block)
    return at is not None and start.is_before(at) and at.is_before(end)


def _may_follow(before: Node, after: Node, within: Block) -> bool:
    """Whether ``after`` may run after ``before``, by a path inside the node of ``within`` that both are in."""
    block = common_block(before, after)
    assert block is not None
    a, b = before.ancestor_in(block), after.ancestor_in(block)
    assert a is not None and b is not None
    if a is b and (a is before or b is after or a.kind != IF):
        return True  # one is inside the other: a node may write before and after what it runs
    if a is not b and a.is_before(b):
        return True
    around = takewhile(lambda at: at is not within, block.around())
    return any(at.node is not None and at.node.kind != IF for at in around)


@given(choices, st.randoms(use_true_random=False), st.booleans())
@examples(100)
def test_writes_between_is_that_some_writer_may_run_between(
    numbers: list[int], rnd: random.Random, is_far: bool
) -> None:
    """What the index has in order is asked, where nodes are far apart, and stays right while nodes move."""
    with pytest.MonkeyPatch.context() as patch:
        if is_far:
            patch.setattr(SetIndex, "ways", lambda self, locations: -1)
        check_writes_between(program(numbers, opaque=len(numbers) % 3 == 0), rnd)


def check_writes_between(graph: Graph, rnd: random.Random) -> None:
    db = analyze(graph)
    nodes = list(graph.walk())
    values = list(graph.values())
    for _ in range(3):
        for _ in range(30):
            value, first, last = rnd.choice(values), rnd.choice(nodes), rnd.choice(nodes)
            wanted = any(may_run_between(first, writer, last) for writer in db.writers(value))
            assert db.writes_between(value, first, last) == wanted
        db.move_before(rnd.choice(nodes), rnd.choice(nodes))
        db.move_after(rnd.choice(nodes), rnd.choice(nodes))
    db.check()


@given(choices)
@examples(60)
def test_what_a_node_writes_is_asked_with_and_without_a_description(numbers: list[int]) -> None:
    graph = program(numbers)
    db = analyze(graph)
    for node in graph.walk():
        assert db.writes_anything(node) == bool(db.writes(node))
    values = list(graph.values())
    assert db.locations(values) == frozenset(location for value in values for location in db.locations(value))
