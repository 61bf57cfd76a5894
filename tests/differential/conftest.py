"""These tests compare with PyTorch: without it there is nothing to do. What they find is told at the end."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]

_LINES: list[str] = []


def report(*lines: str) -> None:
    """Tell ``lines`` when all tests have run."""
    _LINES.extend(lines)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _LINES:
        terminalreporter.section("irc and PyTorch")
        for line in _LINES:
            terminalreporter.write_line(line)
