"""The programs that ``test_fuzz`` runs catch the mistakes that are put into the analysis."""

from __future__ import annotations

import pytest

from tests.fuzz.mutants import OTHERS, PYTORCHS, SANE
from tests.fuzz.run import fuzz
from tests.fuzz.test_fuzz import EXAMPLES, SEED


@pytest.mark.parametrize("name", PYTORCHS)
def test_pytorchs_mistakes_are_caught(name: str) -> None:
    with PYTORCHS[name]():
        outcome = fuzz(EXAMPLES, SEED, shrink=False)
    assert outcome.failure is not None, f"{outcome.programs} programs were run, and nobody noticed"


@pytest.mark.parametrize("name", OTHERS)
def test_other_mistakes_are_caught(name: str) -> None:
    """By these programs or, if another version of hypothesis draws others, by as many more."""
    with OTHERS[name]():
        outcomes = (fuzz(EXAMPLES, seed, shrink=False) for seed in (SEED, SEED + 1, SEED + 2))
        assert any(outcome.failure is not None for outcome in outcomes), "nobody noticed"


@pytest.mark.parametrize("name", SANE)
def test_nothing_else_is_caught(name: str) -> None:
    with SANE[name]():
        outcome = fuzz(EXAMPLES // 3, SEED, shrink=False)
    assert outcome.failure is None, outcome.failure
