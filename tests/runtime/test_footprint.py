"""How much is alive at once, against what is found value by value and place by place."""

import zlib

import pytest
from hypothesis import given

from irc.alias import AliasDb, Kind, Location, analyze
from irc.ir import Graph, Value
from irc.runtime import report
from tests.alias.programs import choices, program
from tests.effort import examples


def size_of(value: Value) -> int:
    """A size, for values whose types do not say theirs."""
    return zlib.crc32(value.name.encode()) % 1000


def place_by_place(graph: Graph, db: AliasDb) -> int:
    nodes = [*graph.nodes, graph.block.return_node]
    where = {node: i for i, node in enumerate(nodes, 1)}
    spans: dict[Location, tuple[int, int, int]] = {}
    for value in (*graph.inputs, *(v for n in nodes if n.kind != "prim::Constant" for v in n.outputs)):
        born = where[value.node] if value.node is not None else 0
        users = [user.ancestor_in(graph.block) for user in value.users]
        span = born, max((where[u] for u in users if u is not None), default=born), size_of(value)
        places = [x for x in db.locations(value) if x.kind is not Kind.CONSTANT]
        for place in [x for x in places if x.kind is not Kind.UNKNOWN] or places:
            old = spans.get(place, span)
            spans[place] = min(old[0], span[0]), max(old[1], span[1]), max(old[2], span[2])
    return max(sum(size for born, died, size in spans.values() if born <= i <= died) for i in range(len(nodes) + 1))


@given(choices)
@examples(100)
def test_peak_of_random_programs(numbers: list[int]) -> None:
    graph = program(numbers, opaque=len(numbers) % 3 == 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "value_bytes", size_of)
        assert report.peak_bytes(graph, analyze(graph)) == place_by_place(graph, analyze(graph))
