"""docs/reference/errors.md says what every error code means, and each means one thing."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import irc.errors
from tests.layers import sources

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "errors.md"
CODE = re.compile(r"IRC\d{3}")


class Row(NamedTuple):
    code: str
    section: str
    meaning: str
    remedy: str
    parts: frozenset[str]


def rows() -> Iterator[Row]:
    section = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| IRC"):
            code, meaning, remedy, parts = (cell.strip() for cell in line.strip("|").split(" | "))
            yield Row(code, section, meaning, remedy, frozenset(parts.split(", ")))


def mentioned() -> set[tuple[str, str]]:
    """Each code that the source holds outside of docstrings, with the part of irc/ that does."""
    found: set[tuple[str, str]] = set()
    for source in sources():
        part = source.path.relative_to(ROOT / "irc").parts[0].removesuffix(".py")
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add((node.value, part))
    return found


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    assert {row.code for row in rows()} == {code for code, _ in mentioned()}


def test_a_code_is_documented_once_and_in_its_section() -> None:
    assert Counter(row.code for row in rows()).most_common(1)[0][1] == 1
    assert Counter(row.meaning for row in rows()).most_common(1)[0][1] == 1
    for row in rows():
        assert row.section.startswith(f"{row.code[:4]}xx: ")
        assert row.meaning and row.remedy
    assert [row.code for row in rows()] == sorted(row.code for row in rows())


def test_a_code_is_reported_by_the_parts_that_the_page_names() -> None:
    """What clashes is most often reported by parts that know nothing of each other."""
    documented = {(row.code, part) for row in rows() for part in row.parts}
    assert documented == mentioned()


def test_the_groups_are_those_of_the_exception() -> None:
    groups = {row.code[:4] + "xx" for row in rows()}
    assert groups == set(re.findall(r"IRC\dxx", irc.errors.__doc__ or ""))
