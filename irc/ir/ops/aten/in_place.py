"""In-place forms: ``X_`` writes what ``X`` computes into its first operand, and returns that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irc.ir.ops.aten import TAGS

IN_PLACE = sorted(TAGS.in_place)
"""Operators whose in-place forms take what they take, but for ``out_dtype``. Forms of others have rows of their own."""


def rows_in_place(rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The rows of the in-place forms of `IN_PLACE`, of which ``rows`` has those of the functional forms."""
    for name in IN_PLACE:
        for row in rows[f"aten::{name}"]:
            kind, of_tensor, rest = row.partition("(Tensor self")
            if of_tensor and rest.endswith(") -> Tensor") and "out_dtype" not in rest:
                overload = kind.removeprefix(f"aten::{name}")
                yield f"aten::{name}_{overload}(Tensor(a!) self{rest}(a!)"
