"""These tests compare with PyTorch: without it there is nothing to do. What they find is told at the end."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]

_FOUND = "irc and PyTorch"

Report = Callable[..., None]


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Report:
    """Tell lines when all tests have run. They travel with the test's result, so pytest-xdist does not lose them."""

    def tell(*lines: str) -> None:
        for line in lines:
            record_property(_FOUND, line)

    return tell


def pytest_terminal_summary(terminalreporter: Any) -> None:
    results = [r for reports in terminalreporter.stats.values() for r in reports if getattr(r, "when", "") == "call"]
    lines = [line for result in results for name, line in result.user_properties if name == _FOUND]
    if lines:
        terminalreporter.section(_FOUND)
        for line in sorted(lines):
            terminalreporter.write_line(line)
