"""Random programs: the analysis against the oracle, and against itself in another order."""

import random

from hypothesis import given

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Value
from tests.alias.oracle import Oracle
from tests.alias.programs import choices, program
from tests.effort import examples


def relations(db: AliasDb, values: list[Value]) -> list[object]:
    return [
        [db.may_alias(a, b) for a in values for b in values],
        [db.may_contain_alias(a, b) for a in values for b in values],
        [db.has_writers(v) for v in values],
    ]


def with_memory(graph: Graph) -> list[Value]:
    return list(graph.values())


@given(choices)
@examples(150)
def test_equals_the_oracle(numbers: list[int]) -> None:
    graph = program(numbers)
    graph.verify()
    db, oracle = analyze(graph), Oracle(graph)
    values = with_memory(graph)
    for a in values:
        assert db.has_writers(a) == oracle.has_writers(a), (str(graph), a)
        for b in values:
            assert db.may_alias(a, b) == oracle.may_alias(a, b), (str(graph), a, b)
            assert db.may_contain_alias(a, b) == oracle.may_contain_alias(a, b), (str(graph), a, b)
    for node in graph.walk():
        if not node.blocks:
            for v in values:
                assert db.writes_to_alias(node, v) == oracle.writes_to(node, v), (str(graph), node, v)


@given(choices)
@examples(60)
def test_query_order_never_changes_an_answer(numbers: list[int]) -> None:
    graph = program(numbers)
    values = with_memory(graph)
    expected = relations(analyze(graph), values)
    other = analyze(graph)
    shuffled = [(a, b) for a in values for b in values]
    random.Random(len(numbers)).shuffle(shuffled)
    for a, b in shuffled:
        other.may_contain_alias(a, b)
        other.has_writers(b)
    assert relations(other, values) == expected
