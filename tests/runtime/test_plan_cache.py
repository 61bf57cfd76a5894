"""Which kinds something is kept for: those that come again, in whatever order."""

from collections.abc import Iterable

import numpy as np
import pytest

from irc.runtime import plan_cache
from irc.runtime.plan_cache import PlanCache


def come(kept: PlanCache[str], kinds: Iterable[int], cost: int = 1, new: bool = True) -> tuple[int, int]:
    """Let ``kinds`` come; how many of them there was something for, and for how many it was made."""
    found = made = 0
    for kind in kinds:
        try:
            assert kept.get(kind) == str(kind)
            found += 1
        except KeyError:
            if kept.admits(kind, new):
                kept.put(kind, str(kind), cost)
                made += 1
    return found, made


@pytest.mark.parametrize("count", [11, 20, 500])
def test_of_kinds_in_turn_as_many_stay_as_there_is_room_for(count: int) -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=2)
    assert come(kept, range(count)) == (0, 10)
    for _ in range(5):
        assert come(kept, range(count)) == (10, 0)
    assert len(kept) == 10


def test_there_is_room_for_some_whatever_they_cost() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=4)
    assert come(kept, range(9), cost=100) == (0, 4)
    assert come(kept, range(9), cost=100) == (4, 0)


@pytest.mark.parametrize("cost", [3, 7, 10])
def test_only_the_last_may_exceed_the_room(cost: int) -> None:
    kept: PlanCache[str] = PlanCache(budget=100, least=2)
    come(kept, range(200), cost)
    assert 100 <= len(kept) * cost < 100 + cost
    kept.budget = 200
    come(kept, range(200), cost)
    assert 200 <= len(kept) * cost < 200 + cost


def test_what_becomes_dearer_drives_out_the_oldest() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=2)
    come(kept, range(10))
    kept.put(9, "9", 4)
    assert kept.made() == [str(kind) for kind in range(3, 10)]
    kept.put(9, "9", 40)
    assert kept.made() == ["8", "9"]


def test_kinds_of_which_the_first_is_not_worth_it_are_made_when_they_come_again() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=2)
    assert come(kept, range(8), new=False) == (0, 0)
    assert come(kept, range(8), new=False) == (0, 8)
    assert come(kept, range(8), new=False) == (8, 0)


def test_a_kind_that_comes_twice_takes_the_place_of_one_that_has_not_come_since() -> None:
    kept: PlanCache[str] = PlanCache(budget=3, least=1)
    come(kept, [1, 2, 3])
    assert come(kept, [4]) == (0, 0)
    assert come(kept, [2, 3, 4]) == (2, 1)  # 1 has not come
    assert kept.made() == ["2", "3", "4"]


def test_a_kind_that_comes_more_rarely_than_those_that_are_kept_does_not() -> None:
    kept: PlanCache[str] = PlanCache(budget=3, least=1)
    come(kept, [1, 2, 3])
    assert come(kept, [4, 1, 2, 3] * 5) == (15, 0)


def test_kinds_that_come_no_more_make_way_one_after_the_other() -> None:
    kept: PlanCache[str] = PlanCache(budget=5, least=1)
    come(kept, range(5))
    found, made = come(kept, [*range(10, 15)] * plan_cache.PAUSE)
    assert made == 5
    assert kept.made() == ["10", "11", "12", "13", "14"]
    assert found >= 2 * plan_cache.PAUSE


def test_at_random_little_is_made() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=1)
    kinds = np.random.default_rng(0).integers(0, 50, 6400).tolist()
    found, made = come(kept, kinds)
    assert 10 < made <= 10 + 6400 / plan_cache.PAUSE
    assert found > 0.8 * 6400 * 10 / 50


def test_few_kinds_are_remembered() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=1)
    come(kept, range(3 * plan_cache.MET))
    assert len(kept) == 10
    assert len(kept._met) == plan_cache.MET
    assert come(kept, range(3 * plan_cache.MET)) == (10, 0)
