"""A folder to run commands in."""

from pathlib import Path

import pytest

from tests.cli.helpers import Command


@pytest.fixture
def irc(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs ``irc`` in a new folder, which is the working folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return Command(tmp_path, capsys)
