"""Who may hold which memory: nobody is overlooked, at however many places he may be."""

from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from irc.alias.location_sets import LocationSet, SetTable, intersects, members
from irc.passes.in_place import ReverseAlias
from tests.effort import examples, tuned

PLACES = range(5)
VALUES = "abc"

places = st.sets(st.sampled_from(PLACES), max_size=3)
steps = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(VALUES), places),
    st.tuples(st.just("drop"), st.sampled_from(VALUES)),
    st.tuples(st.just("moved"), st.sets(st.sampled_from(PLACES), min_size=1, max_size=2), places),
    st.tuples(st.just("renumber"), st.permutations(PLACES)),
)


class Db:
    """What `ReverseAlias` asks an ``AliasDb``; ``at`` says where each value may be."""

    def __init__(self) -> None:
        self._table = SetTable()
        self.generation: tuple[int, int] = (0, 0)
        self.at: dict[str, set[int]] = {}

    def set_of(self, locations: set[int]) -> LocationSet:
        return self._table.of(locations)

    def reach_set(self, value: str) -> LocationSet:
        return self.set_of(self.at[value])

    def union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        return self._table.union(a, b)


@examples(500)
@example([("enter", "a", {0, 1}), ("moved", {0}, {2, 3})], {1}, 2)  # few places, then many: the first ones stay
@given(st.lists(steps, max_size=12), places, st.sampled_from([0, 1, 2]))
def test_nobody_is_overlooked(taken: list[tuple[Any, ...]], asked: set[int], wide: int) -> None:
    db = Db()
    with tuned("irc.passes.in_place._WIDE", wide):
        found: Any = ReverseAlias(cast("Any", db))  # values are letters here
        for kind, *given in taken:
            if kind == "enter":
                value, where = given
                if value in db.at:
                    continue  # what a value denotes changes by what is told only
                db.at[value] = where
                found.enter([value])
            elif kind == "drop" and given[0] in db.at:
                found.drop(given)
                del db.at[given[0]]
            elif kind == "moved":
                old, new = given
                old = db.set_of(old)
                for value, where in db.at.items():
                    if intersects(db.set_of(where), old):
                        db.at[value] = (where - set(members(old))) | new
                found.moved(old, db.set_of(new))
            elif kind == "renumber":
                db.at = {value: {given[0][place] for place in where} for value, where in db.at.items()}
                db.generation = db.generation[0] + 1, 0
        for where in (asked, *({place} for place in PLACES)):
            locations = db.set_of(where)
            there = {value for value, at in db.at.items() if at & where}
            candidates = list(found.candidates(locations))
            assert len(candidates) == len(set(candidates)) and there <= set(candidates) <= db.at.keys()
            assert {value for value in VALUES if found.holds(value, locations)} == there
