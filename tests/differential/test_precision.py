"""The pairs that allocation sites tell apart are one to PyTorch, whose wildcards merge what containers hold."""

import pytest

from tests.alias.precision import PROGRAMS
from tests.differential.both import Both
from tests.differential.conftest import Report


@pytest.mark.parametrize("name", PROGRAMS)
def test_wildcards_tell_them_apart_less_well(name: str) -> None:
    program = PROGRAMS[name]
    both = Both(program.text)
    apart = [tuple(both[v] for v in pair.split()) for pair in program.apart]
    assert not any(both.db.may_contain_alias(a, b) for a, b in apart)
    assert any(both.they_contain(a, b) for a, b in apart), "PyTorch tells all of them apart too"


def test_how_much_less_well(report: Report) -> None:
    pairs = merged = written = unwritten = 0
    for program in PROGRAMS.values():
        both = Both(program.text)
        for pair in program.apart:
            a, b = (both[v] for v in pair.split())
            pairs += 1
            merged += both.they_contain(a, b)
        for value in program.unwritten:
            unwritten += 1
            written += both.they_write(both[value])
    report(
        f"{len(PROGRAMS)} programs with containers: irc tells {pairs} pairs apart, {merged} of them one to PyTorch; "
        f"it knows that {unwritten} values are not written, {written} of them written to PyTorch"
    )
    assert merged > pairs / 2
