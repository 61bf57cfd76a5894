"""The DAG of locations by itself, on facts made by hand."""

import random

from hypothesis import given
from hypothesis import strategies as st

from irc.alias.facts import Facts, Kind, Site
from irc.alias.location_sets import intersects, members
from irc.alias.memory_dag import MemoryDAG
from irc.ir import ListType, types


class Dag:
    """Elements by name; ``points`` and ``holds`` make facts."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.names: dict[str, int] = {}
        self.contents: dict[int, int] = {}
        self.dag = MemoryDAG(self.facts, lambda location: self.contents.get(location, 0))

    def location(self, name: str) -> int:
        self.names[name] = self.facts.location(Site(Kind.TEMPORARY, name, ListType(types.TENSOR)))
        return self.names[name]

    def element(self, name: str, *targets: str) -> None:
        self.names[name] = self.facts.new()
        for target in targets:
            self.points(name, target)

    def points(self, source: str, target: str) -> None:
        self.facts.point(self.names[source], self.names[target])

    def holds(self, container: str, held: str) -> None:
        inside = self.contents.setdefault(self.names[container], 0) or self.facts.new()
        self.contents[self.names[container]] = inside
        self.facts.point(inside, self.names[held])

    def alias(self, a: str, b: str) -> bool:
        return intersects(self.dag.locations(self.names[a]), self.dag.locations(self.names[b]))


def test_a_deep_chain() -> None:
    d = Dag()
    d.location("end")
    d.element("0", "end")
    for i in range(1, 50_000):
        d.element(str(i), str(i - 1))
        d.points(str(i), "end")  # more than one target each, so that no short cut applies
    assert d.alias("49999", "end")


edges = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=70)


@given(edges, edges, st.randoms(use_true_random=False))
def test_equals_reachability_in_any_order(
    points: list[tuple[int, int]], holds: list[tuple[int, int]], rnd: random.Random
) -> None:
    """Elements 0 to 11 are locations; the others only point."""
    d = Dag()
    for i in range(25):
        if i < 12:
            d.location(str(i))
        else:
            d.element(str(i))
    for a, b in points:
        if a != b and a >= 12:
            d.points(str(a), str(b))
    for a, b in holds:
        if a < 12:
            d.holds(str(a), str(b))
    expected: dict[int, set[int]] = {}
    for start in range(25):
        seen = {start}
        pending = [start]
        while pending:
            e = pending.pop()
            for a, b in points:
                if a == e and a >= 12 and b not in seen:
                    seen.add(b)
                    pending.append(b)
        expected[start] = {x for x in seen if x < 12}
    order = list(range(25))
    rnd.shuffle(order)
    for i in order:
        found = {n for n in range(12) if d.names[str(n)] in set(members(d.dag.locations(d.names[str(i)])))}
        assert found == expected[i]
    for i in order:
        reach = set(expected[i])
        while more := {x for a, b in holds if a in reach and a < 12 for x in expected[b]} - reach:
            reach |= more
        closure = set(members(d.dag.closure(d.names[str(i)])))
        assert {n for n in range(12) if d.names[str(n)] in closure} == reach
