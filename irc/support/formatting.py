"""Numbers in sentences, and names from models in what people read."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MAY_NEED_ESCAPES = re.compile(r"[^\n -~]")


def count(n: int, what: str, plural: str = "") -> str:
    """``1 group``, ``2,000 groups``; the plural is given where it is not made by adding an s."""
    return f"{n:,} {what if n == 1 else plural or f'{what}s'}"


def first_of(n: int, what: str, first: str) -> str:
    """``1 node %x``, ``2 nodes, the first %x``."""
    return f"1 {what} {first}" if n == 1 else f"{n} {what}s, the first {first}"


def pointed_at(line: str, column: int, length: int = 1, indent: str = "  ") -> str:
    """``line`` on a line of its own, and below it carets under what begins at ``column``, from 0."""
    return f"\n{indent}{line}\n{indent}{' ' * column}{'^' * length}"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``; "" for nothing."""
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def scaled(n: int) -> str:
    """A number with three digits and a power of 1,000: ``800``, ``1.23 M``."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (1000, "K")):
        if n >= unit:
            return f"{n / unit:,.{max(0, 3 - len(str(n // unit)))}f} {name}"
    return str(n)


def amount(size: int) -> str:
    """A number of bytes: ``800 bytes``, ``1.23 MB`` (powers of 1,000)."""
    return count(size, "byte") if size < 1000 else f"{scaled(size)}B"


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters: the rest is ``...``."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def milliseconds(seconds: float) -> str:
    """A time, with one digit after the point if it is short."""
    return f"{seconds * 1e3:,.1f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def printable(text: str) -> str:
    """``text`` with control characters and lone surrogates escaped: models must not steer the terminal."""
    return _MAY_NEED_ESCAPES.sub(_escaped, text)


def one_line(name: str) -> str:
    """As `printable`, line ends too: a name must not look like a line of its own."""
    return printable(name).replace("\n", "\\n")


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return char if char.isprintable() else char.encode("unicode_escape").decode()
