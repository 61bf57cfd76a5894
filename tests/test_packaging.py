"""What goes into the source distribution, as far as it can be seen without building one."""

import re
import tomllib
from pathlib import Path

import irc

ROOT = Path(__file__).parent.parent


def test_the_source_distribution_has_what_tests_import_and_read() -> None:
    """setuptools alone takes files ``tests/test_*.py``, without the folders beside them."""
    commands = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines() if line[:1] not in ("", "#")]
    whole = {folder for command, *folders in commands if command == "graft" for folder in folders}
    single = {name for command, *names in commands if command == "include" for name in names}
    assert {"benchmarks", "docs", "examples", "tests"} <= whole
    assert {"CHANGELOG.md", "Makefile"} <= single
    assert all((ROOT / name).exists() for name in whole | single)


def test_the_version_has_a_dated_section_in_the_changelog() -> None:
    """Above it there may be one for what is not released yet."""
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version, date = next(section for section in sections if section[0] != "Unreleased")
    assert version == irc.__version__ and date


def test_the_licence_is_given_by_its_name() -> None:
    """Tables are taken by setuptools until 2027 only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "MIT"
    assert all((ROOT / name).read_text().startswith("MIT License") for name in project["license-files"])
