"""The figures of the documentation are those that ``python -m tests.figures`` draws, and pages show all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures import DOCS, figures

FIGURES = figures()


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figure_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == FIGURES[path], "python -m tests.figures draws the figures anew"


def test_no_figure_is_left_over_and_each_is_shown() -> None:
    assert set(DOCS.rglob("figures/*.svg")) == set(FIGURES)
    for path in FIGURES:
        pages = path.parent.parent.glob("*.md")
        assert any(f"](figures/{path.name})" in page.read_text("utf-8") for page in pages), path
