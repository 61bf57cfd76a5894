"""Random programs on real memory, as ``make fuzz`` runs them, but few."""

import pytest

from tests.fuzz.run import fuzz

EXAMPLES, SEED = 300, 23


@pytest.mark.parametrize("examples", [EXAMPLES // 6, pytest.param(EXAMPLES, marks=pytest.mark.slow)])
def test_the_analysis_is_right_about_real_memory(examples: int) -> None:
    outcome = fuzz(examples, SEED)
    assert outcome.failure is None, outcome.failure
    assert not outcome.missing(), "the programs exercise too little"
