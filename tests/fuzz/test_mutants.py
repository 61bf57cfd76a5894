"""The programs that ``test_fuzz`` runs catch the mistakes that are put into the analysis."""

import re
from pathlib import Path

import pytest

from irc.errors import Error
from tests.alias.programs import random_choices
from tests.alias.test_random_updates import run as run_updates
from tests.fuzz.mutants import OTHERS, PYTORCHS, SANE, UPDATES
from tests.fuzz.run import fuzz
from tests.fuzz.test_fuzz import EXAMPLES, SEED


@pytest.mark.slow
@pytest.mark.parametrize("name", PYTORCHS)
def test_pytorchs_mistakes_are_caught(name: str) -> None:
    with PYTORCHS[name]():
        outcome = fuzz(EXAMPLES, SEED, shrink=False)
    assert outcome.failure is not None, f"{outcome.programs} programs were run, and nobody noticed"


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_mistakes_are_caught(name: str) -> None:
    """By these programs or, as what is drawn differs from version to version, by some more."""
    with OTHERS[name]():
        outcomes = (fuzz(EXAMPLES, seed, shrink=False) for seed in range(SEED, SEED + 6))
        assert any(outcome.failure is not None for outcome in outcomes), "nobody noticed"


@pytest.mark.parametrize("name", UPDATES)
def test_mistakes_in_updates_are_caught(name: str) -> None:
    """Not only by the changes to these programs: by random updates too, a third of those that ``tests/alias`` makes."""

    def updates() -> None:
        for seed in range(40):
            run_updates(random_choices(seed), random_choices(seed + 100))

    with UPDATES[name](), pytest.raises(Error, match="IRC340"):
        updates()


def test_each_of_pytorchs_mistakes_is_among_them() -> None:
    """Those that ``docs/explanation/alias-analysis.md`` numbers."""
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "alias-analysis.md").read_text()
    numbered = re.findall(r"^(\d+)\. ", page.partition("## Where PyTorch's is wrong")[2], re.MULTILINE)
    assert numbered == [str(n) for n in range(1, 9)]
    assert {name.partition(":")[0] for name in PYTORCHS} == set(numbered)


@pytest.mark.slow
@pytest.mark.parametrize("name", SANE)
def test_nothing_else_is_caught(name: str) -> None:
    with SANE[name]():
        outcome = fuzz(EXAMPLES // 3, SEED, shrink=False)
    assert outcome.failure is None, outcome.failure
