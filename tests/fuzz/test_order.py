"""No answer depends on what was asked before: with lists that hold themselves, too."""

import random

from hypothesis import given
from hypothesis import strategies as st

from irc.alias import analyze
from irc.ir import Graph, parse_graph
from tests.effort import examples
from tests.fuzz.mutants import PYTORCHS
from tests.fuzz.run import FOCUS
from tests.programs.generator import Program, programs

MOST = 40
"""Values of a graph that are asked about."""


def answers(graph: Graph, order: random.Random | None = None) -> dict[tuple[str, str, str], bool]:
    """All answers about pairs of values, asked one by one; in a random order, if one is given."""
    db = analyze(graph)
    values = list(graph.values())[-MOST:]
    questions = [(what, a, b) for what in ("alias", "contain", "writers") for a in values for b in values]
    if order is not None:
        order.shuffle(questions)
    ask = {"alias": db.may_alias, "contain": db.may_contain_alias, "writers": lambda a, b: db.has_writers([a, b])}
    return {(what, a.name, b.name): ask[what](a, b) for what, a, b in questions}


def check(program: Program, seed: int) -> None:
    for graph in program.module.graphs.values():
        assert answers(graph) == answers(graph, random.Random(seed)), str(graph)


@examples(40)
@given(programs(FOCUS), st.integers(0, 1 << 16))
def test_the_order_of_queries_changes_no_answer(program: Program, seed: int) -> None:
    check(program, seed)


KNOT = """
graph(%x : Tensor):
  %c : Any[] = prim::ListConstruct(%x)
  %a : Any[] = prim::ListConstruct(%c)
  %b : Any[] = prim::ListConstruct(%a)
  %w : Any[] = aten::append(%a, %b)
  return (%x)
"""


def test_an_order_that_matters_is_noticed() -> None:
    graph = parse_graph(KNOT)
    expected = answers(graph)
    assert all(answers(graph, random.Random(seed)) == expected for seed in range(20))
    with PYTORCHS["6: closures depend on the order of queries"]():
        assert any(answers(graph, random.Random(seed)) != expected for seed in range(20))
