"""What allocation sites tell apart; ``tests/differential`` shows that wildcards do not."""

import pytest

from tests.alias.helpers import Case
from tests.alias.precision import PROGRAMS


def test_there_are_forty() -> None:
    assert len(PROGRAMS) >= 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_containers_are_told_apart(name: str) -> None:
    program = PROGRAMS[name]
    case = Case(program.text)
    for pair in program.apart:
        assert not case.contain(*pair.split()), f"{pair} are apart"
    for pair in program.together:
        assert case.contain(*pair.split()), f"{pair} are not apart"
    for value in program.unwritten:
        assert not case.written(value), f"nothing writes {value}"
