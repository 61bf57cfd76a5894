"""Forms of operators whose rows follow from those of others.

- In-place forms: ``X_`` writes what ``X`` computes into its first operand, and returns that.
- Copied forms of views: ``X_copy`` is what ``X`` shows, in memory of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from irc.ops.record import Operator

COPIED = (
    "alias as_strided detach diagonal expand narrow permute select.int slice.Tensor split.Tensor split_with_sizes "
    "squeeze squeeze.dim squeeze.dims t transpose.int unbind.int unfold unsqueeze view view.dtype view_as_complex "
    "view_as_real"
).split()
"""Views, with overloads, whose copied forms take what they take."""

COPIED_NAMES = tuple(dict.fromkeys(name.partition(".")[0] for name in COPIED))
"""`COPIED` without overloads."""

_ANNOTATION = re.compile(r"\(a[=<]?\)")


def in_place_forms(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """What follows for the in-place forms of operators that have the tag ``in-place``.

    They take what the functional forms take, but for ``out_dtype``. Forms of others have rows of their own.
    """
    for name in sorted(kind for kind, record in records.items() if record.in_place is not None):
        for row in records[name].rows:
            overload, of_tensor, rest = row.partition("(Tensor self")
            if of_tensor and rest.endswith(") -> Tensor") and "out_dtype" not in rest:
                yield Operator(f"{name}_", f"{overload.removeprefix(name)}(Tensor(a!) self{rest}(a!)")


def copied_forms(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """What follows for the copied forms of `COPIED`."""
    for view in COPIED:
        name, dot, overload = view.partition(".")
        start = f"aten::{view}("
        row = next(row for row in records[f"aten::{name}"].rows if row.startswith(start))
        yield Operator(f"aten::{name}_copy", f"{dot}{overload}({_ANNOTATION.sub('', row.removeprefix(start))}")
