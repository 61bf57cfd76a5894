"""What pages say of the source is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_files_that_it_names_exist(page: Path) -> None:
    named = set(re.findall(r"`(irc/[\w/.*-]+)`", page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not list(ROOT.glob(name.rstrip("/")))] == []


def test_tables_that_the_architecture_names_are_in_their_files() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(_?[A-Z]\w+)` in `(irc/[\w/]+\.py)`", page)
    assert len(named) >= 4
    assert [name for name, path in named if f"\n{name}" not in (ROOT / path).read_text(encoding="utf-8")] == []
