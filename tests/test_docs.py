"""What pages say of the source is there, and what they link to."""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LINKING = [*PAGES, *sorted(ROOT.glob("*.md"))]
each_page = pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))


def prose_of(page: Path) -> str:
    """The page without its code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(page: Path) -> set[str]:
    """The targets of links into a page: its headings as GitHub and the site spell them, and explicit ones."""
    text = page.read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each)) for each in headings]
    return {each.lower().strip().replace(" ", "-") for each in plain} | set(re.findall(r'<a id="([^"]+)">', text))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for path, _, anchor in re.findall(r"\]\((?!\w+:)([^)#]*)(#?)([^)]*)\)", prose_of(page)):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


@each_page
def test_files_that_it_names_exist(page: Path) -> None:
    named = set(re.findall(r"`((?:irc|tests|benchmarks|examples|docs)/[\w/.*-]+)`", page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not list(ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_is_longer_than_one_reads_at_a_time(page: Path) -> None:
    """But for tables of the reference."""
    assert page.stem in ("errors", "conformance") or len(page.read_text("utf-8").split()) <= 3000


def test_every_page_is_in_the_navigation() -> None:
    """Once each; the file is not read as YAML, which the tests can do without."""
    listed = re.findall(r"- ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]


@pytest.mark.parametrize("page", sorted((ROOT / "docs/reference/api").glob("*.md")), ids=lambda page: page.stem)
def test_names_of_the_api_reference_exist(page: Path) -> None:
    names = re.findall(r"^::: ([\w.]+)$", page.read_text("utf-8"), re.MULTILINE)
    assert names
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_tables_that_the_architecture_names_are_in_their_files() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(_?[A-Z]\w+)` in `(irc/[\w/]+\.py)`", page)
    assert len(named) >= 4
    assert [name for name, path in named if f"\n{name}" not in (ROOT / path).read_text(encoding="utf-8")] == []
