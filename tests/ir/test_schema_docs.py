"""``docs/reference/schemas.md`` shows rows as they are."""

import re

import pytest

from irc.ir.schema import Schema
from irc.ops import schemas
from tests.schema_differences import TEXT

SHOWN = re.findall(r"^irc {6}(.*)$", TEXT, re.MULTILINE)


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
