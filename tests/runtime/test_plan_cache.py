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


def test_kinds_of_which_the_first_is_not_worth_it_are_made_when_they_come_again() -> None:
    kept: PlanCache[str] = PlanCache(budget=10, least=2)
    assert come(kept, range(8), new=False) == (0, 0)
    assert come(kept, range(8), new=False) == (0, 8)
    assert come(kept, range(8), new=False) == (8, 0)


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
