"""Copied forms of views: ``X_copy`` is what ``X`` shows, in memory of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

COPIED = (
    "alias as_strided detach diagonal expand narrow permute select.int slice.Tensor split.Tensor split_with_sizes "
    "squeeze squeeze.dim squeeze.dims t transpose.int unbind.int unfold unsqueeze view view.dtype view_as_complex "
    "view_as_real"
).split()
"""Views, with overloads, whose copied forms take what they take."""

COPIED_NAMES = tuple(dict.fromkeys(name.partition(".")[0] for name in COPIED))
"""`COPIED` without overloads."""

_ANNOTATION = re.compile(r"\(a[=<]?\)")


def rows_copied(rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The rows of the copied forms of `COPIED`, of which ``rows`` has those of the views."""
    for view in COPIED:
        name, dot, overload = view.partition(".")
        start = f"aten::{view}("
        row = next(row for row in rows[f"aten::{name}"] if row.startswith(start))
        yield f"aten::{name}_copy{dot}{overload}({_ANNOTATION.sub('', row.removeprefix(start))}"
