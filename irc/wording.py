"""Numbers in sentences."""

from __future__ import annotations


def count(n: int, what: str, plural: str = "") -> str:
    """``1 group``, ``2,000 groups``; the plural is given where it is not made by adding an s."""
    return f"{n:,} {what if n == 1 else plural or f'{what}s'}"


def milliseconds(seconds: float) -> str:
    """A time, with one digit after the point if it is short."""
    return f"{seconds * 1e3:,.1f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"
