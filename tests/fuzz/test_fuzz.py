"""Random programs on real memory, as ``make fuzz`` runs them, but few."""

from __future__ import annotations

from tests.fuzz.run import fuzz

EXAMPLES, SEED = 300, 23


def test_the_analysis_is_right_about_real_memory() -> None:
    outcome = fuzz(EXAMPLES, SEED)
    assert outcome.failure is None, outcome.failure
    assert not outcome.missing(), "the programs exercise too little"
