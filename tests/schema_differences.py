"""Where irc's rows differ from PyTorch's: the table in ``docs/reference/schemas.md``.

``tests/differential`` compares every row with PyTorch's and allows only these differences.
"""

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from irc.ir import Node
from irc.ops.signatures import resolve

TEXT = (Path(__file__).parents[1] / "docs" / "reference" / "schemas.md").read_text(encoding="utf-8")

SHARES = "shares"
"""The word for a result that may share with an argument, which PyTorch calls fresh."""


class Difference(NamedTuple):
    """Rows (``name.overload``, with wildcards), what they state that PyTorch's do not, in words, and why."""

    rows: tuple[str, ...]
    says: tuple[str, ...]
    why: str


def table(heading: str) -> list[list[str]]:
    """The cells of the table under ``heading``, its own heading left out."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


WORDS = [word for word, _ in table("What rows say")]
DIFFERENCES = [
    Difference(tuple(rows.replace("`", "").split(", ")), tuple(says.split(", ")), why)
    for rows, says, why in table("The rows")
]


@cache
def difference(name: str, overload: str) -> Difference | None:
    """What the row with that name and overload states beyond PyTorch's; None if they state the same."""
    row = f"{name}.{overload}" if overload else name
    return next((b for b in DIFFERENCES if any(fnmatchcase(row, r) for r in b.rows)), None)


def is_missed(name: str, overload: str) -> bool:
    """Whether PyTorch's row misses that a result may share with an argument."""
    found = difference(name, overload)
    return found is not None and SHARES in found.says


def shares(node: Node) -> bool:
    """Whether a result of ``node`` may share with an argument by irc's schema row, but not by PyTorch's."""
    row = resolve(node)
    return row is not None and is_missed(row.name, row.overload)
