"""The figures of the documentation are those that ``python -m tests.figures`` draws, and pages show all of them."""

from tests.figures import DOCS, figures


def test_figures_are_up_to_date_and_shown() -> None:
    drawn = figures()
    assert set(DOCS.rglob("figures/*.svg")) == set(drawn)
    outdated = [path.name for path, text in drawn.items() if path.read_text("utf-8") != text]
    assert outdated == [], "python -m tests.figures draws the figures anew"
    for path in drawn:
        pages = path.parent.parent.glob("*.md")
        assert any(f"](figures/{path.name})" in page.read_text("utf-8") for page in pages), path
