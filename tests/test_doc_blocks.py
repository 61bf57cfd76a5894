"""Code blocks of README and docs, examples and notebooks run as they are written."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from tests.doc_blocks import FENCE, RUN, SHOWN, Block, Runner, Wrong, blocks, is_as_shown, run_page
from tests.processes import python

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
WITH_BLOCKS = [page for page in (*PAGES, *NOTEBOOKS) if any(block.language in RUN for block in blocks(page))]


def printed(*arguments: str) -> str:
    """What a program prints, in a process of its own."""
    done = python(ROOT, *arguments, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_written(page: Path) -> None:
    """In a process of its own: blocks register passes and operators for good."""
    printed("-m", "tests.doc_blocks", str(page))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_it_says(script: Path) -> None:
    docstring = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    said = docstring.partition("Prints::\n\n")[2]
    assert said and is_as_shown(textwrap.dedent(said), printed(str(script)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_have_a_language(page: Path) -> None:
    """So none is left out by mistake; nor may an indented line hide a command."""
    assert {block.language for block in blocks(page)} <= {*RUN, *SHOWN}
    assert (
        re.findall(r"^    (?:\$|irc|python|make|pip) .*$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE) == []
    )


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Block("python", "", "print(1)  # 2\n", 1), "prints\n1\ninstead of\n2"),
        (Block("python", "", "print(1)\n", 1, "2\n"), "prints\n1\ninstead of\n2"),
        (Block("console", "", "$ echo a\nb\n", 1), "writes\na\ninstead of\nb"),
        (Block("console", "", "$ irc print missing.onnx\n", 1), "status 1"),
        (Block("sh", "", "make nonsense\n", 1), "no target nonsense"),
        (Block("sh", "", "python -m benchmarks_of_nothing\n", 1), "no module"),
        (Block("sh", "", "rm -r folder\n", 1), "nobody can tell"),
    ],
)
def test_what_is_wrong_is_found(block: Block, message: str) -> None:
    with pytest.raises(Wrong, match=re.escape(message)):
        Runner().run(block)


def test_pages_run_from_top_to_bottom_or_block_by_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "```python\nx = 1\n```\n\n```python\nprint(x)  # 1\n```\n"
    page.write_text(text)
    run_page(page)
    page.write_text(f"<!-- each block alone -->\n{text}")
    with pytest.raises(Wrong, match="name 'x' is not defined"):
        run_page(page)


def test_dots_stand_for_anything() -> None:
    assert is_as_shown("a ... c\n...\nz", "a b c\nx\ny  \nz\n") and not is_as_shown("a ...", "b a")
