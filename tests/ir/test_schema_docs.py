"""``docs/reference/schemas.md`` lists what irc's rows say beyond PyTorch's, all of it and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irc.ir.schema import Schema
from irc.ops import schemas
from irc.ops.aten.schema_differences import DIFFERENCES, Says

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "schemas.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^irc {6}(.*)$", TEXT, re.MULTILINE)


def table(heading: str) -> list[list[str]]:
    """The cells of the table under ``heading``, its own heading left out."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


def name(says: Says) -> str:
    return says.name.lower().replace("_", " ")


def test_what_rows_say() -> None:
    assert table("What rows say") == [[name(s), s.value] for s in Says]


def test_the_rows() -> None:
    expected = [[", ".join(f"`{r}`" for r in b.rows.split()), ", ".join(map(name, b.says)), b.why] for b in DIFFERENCES]
    assert table("The rows") == expected


def test_rows_shown_are_irc_s() -> None:
    assert len(SHOWN) >= 5
    for text in SHOWN:
        assert text in map(str, schemas(re.split(r"[.(]", text)[0]))


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("t", "(a=)"), ("view", "(a=)"), ("select", "(a<)")),
        *(("reshape", "(a)"), ("contiguous", "(a)"), ("flatten", "(a)")),
    ],
)
def test_what_must_share_and_what_may(kind: str, how: str) -> None:
    rows: list[Schema] = list(schemas(f"aten::{kind}"))
    assert rows
    assert all(str(row).endswith(f"-> Tensor{how}") for row in rows if str(row.returns[0].type) == "Tensor")
