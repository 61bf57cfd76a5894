"""Sets of locations against Python's own, and their hash-consing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias.location_sets import EMPTY, BigSet, LocationSet, SetTable, askable, contains, intersects, members

numbers = st.one_of(st.integers(0, 40), st.integers(4090, 4100), st.integers(0, 60_000))
plain = st.one_of(
    st.frozensets(numbers, max_size=5),
    st.frozensets(numbers, min_size=10, max_size=60),
    st.builds(lambda start, size: frozenset(range(start, start + size)), st.integers(0, 9000), st.integers(0, 400)),
)


def plain_of(a: LocationSet) -> frozenset[int]:
    return frozenset(members(a))


@given(plain, plain)
def test_operations(a: frozenset[int], b: frozenset[int]) -> None:
    table = SetTable()
    x, y = table.of(a), table.of(b)
    assert plain_of(x) == a
    assert plain_of(table.union(x, y)) == a | b
    assert plain_of(table.difference(x, y)) == a - b
    assert intersects(x, y) == intersects(y, x) == bool(a & b)
    for z in (*list(a)[:3], *list(b)[:3], 7):
        assert contains(x, z) == (z in a)


@given(st.lists(plain, max_size=6))
def test_union_of_many(parts: list[frozenset[int]]) -> None:
    table = SetTable()
    assert plain_of(table.union_all([table.of(p) for p in parts])) == frozenset().union(*parts)


@given(plain, plain)
def test_equal_sets_are_one_object(a: frozenset[int], b: frozenset[int]) -> None:
    table = SetTable()
    whole = table.of(a | b)
    for other in (table.union(table.of(a), table.of(b)), table.union(table.of(b), table.of(a)), table.of(b | a)):
        assert other is whole or (isinstance(other, int) and other == whole)
    rest = table.of(a - b)
    for other in (table.difference(table.of(a), table.of(b)), table.difference(whole, table.of(b))):
        assert other is rest or (isinstance(other, int) and other == rest)


def test_unions_are_memoised() -> None:
    table = SetTable()
    a, b = table.of(range(100)), table.of(range(50, 200))
    first = table.union(a, b)
    done = table.unions
    assert table.union(a, b) is first
    assert table.union(first, b) is first
    assert table.union(first, a) is first
    assert table.union(a, b) is first
    assert table.unions <= done + 2, "only the unions not seen before are computed"


def parts(found: LocationSet) -> set[int]:
    """The identities of all parts of a large set."""
    assert isinstance(found, BigSet)
    pending = [found]
    for part in pending:  # grows while it is walked
        pending += part.parts
    return set(map(id, pending))


@pytest.mark.parametrize("size", [5_000, 50_000, 500_000])
def test_growing_sets_share_their_parts(size: int) -> None:
    """A chain of sets that each add one location: all but one leaf and the nodes above it is shared."""
    table = SetTable()
    before = table.of(range(size))
    after = table.union(before, size + 7)
    assert len(parts(after) - parts(before)) <= 4
    assert len(after) == size + 1  # type: ignore[arg-type]


def test_sets_can_be_asked_whether_they_meet() -> None:
    table = SetTable()
    sets = [EMPTY, 1, 2, table.of((1, 2)), table.of((3, 4)), table.of(range(2, 40)), table.of(range(40, 9000))]
    for a in sets:
        for b in sets:
            if isinstance(b, BigSet) and not isinstance(a, BigSet):
                with pytest.raises(TypeError):
                    askable(a).isdisjoint(askable(b))
            else:
                assert askable(a).isdisjoint(askable(b)) != intersects(a, b), (a, b)
