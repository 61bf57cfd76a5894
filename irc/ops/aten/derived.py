"""Forms of operators whose records follow from those of others.

- In-place forms: ``X_`` writes what ``X`` computes into its first operand, and returns that.
- Copied forms of views: ``X_copy`` is what ``X`` shows, in memory of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import unwrap

from irc.ir.types import Type
from irc.ops.aten.call import Call, CallRule, shape_rule_of
from irc.ops.aten.promotion import BY_RESULT_TYPE, like_first
from irc.ops.record import Change, Operator, ShapeRule

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
    """What follows for the copied forms of views that have the tag ``copied``."""
    for record in records.values():
        kind, rule = f"{record.kind}_copy", record.shape
        for row in record.rows:
            name, _, rest = row.partition("(")
            if name in record.copied:
                yield Operator(kind, f"{name.removeprefix(record.kind)}({_ANNOTATION.sub('', rest)}")
        if record.copied and rule is not None:
            seen = record.layout & {"seen"}  # as the view fails, so does its copy
            yield Operator(kind, layout=seen, shape=_shape_of_view(record.kind, rule))


def _shape_of_view(view: str, rule: ShapeRule) -> ShapeRule:
    of_call: CallRule = unwrap(rule)

    @wraps(of_call)
    def told(c: Call) -> Type | Sequence[Type]:
        return of_call(Call(c.types, replace(c.schema, name=view)))

    return shape_rule_of(told)


def operand_kinds(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """The element types that in-place forms take: those of the tag ``in-place``, or what the functional forms take."""
    for record in records.values():
        form = records.get(f"{record.kind}_")
        if form is not None:
            taken = form.takes or record.in_place or record.takes
            yield Operator(form.kind, takes=taken, takes_both=form.takes_both or record.takes_both)


def types_of_results(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """What follows from the tag ``pointwise``, and from rows of operators that write elements of a tensor."""
    for record in records.values():
        rule = BY_RESULT_TYPE.get(record.result_type or "")
        if rule is None and record.changes is Change.ELEMENTS and any("(Tensor(a!) " in row for row in record.rows):
            rule = like_first
        if rule is not None and record.shape is None:
            yield Operator(record.kind, shape=shape_rule_of(rule))
        if record.result_type not in (None, "bool", "wider") and f"{record.kind}_" in records:
            yield Operator(record.kind, keeps_type="buifc" if record.result_type == "first" else "f")
