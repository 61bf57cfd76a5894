"""``aten::`` operators: TorchScript's tensor library and its lists, dictionaries and numbers.

Signatures are those that PyTorch 2.13 prints (``torch._C._jit_get_all_schemas``),
with ``int`` for ``SymInt``. Where PyTorch's annotations are incomplete, these
add: what certainly shares (``(a==)``, ``(a=)``, ``(a<)``), what containers hold,
and results that share although PyTorch calls them fresh: ``type_as``,
``broadcast_tensors``, ``meshgrid``, ``einsum`` of one operand, ``dropout`` in
evaluation, unsafe splits, and lists made from lists. ``docs/reference/schemas.md`` lists them all.

Tags at the end of a row state further properties of the operator: `irc.ops.record`.

Scalar semantics are those on tensors, once operands have the element type in which the operator takes them; numbers
among the operands are rounded to it too. Keyword-only parameters are further arguments, in the order of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from importlib import import_module

from irc.ir.types import Type
from irc.ops.aten.call import BY_RESULT_TYPE, Call, CallRule, like_first, shape_rule_of
from irc.ops.record import Change, Operator, ShapeRule, joined

_FAMILIES = "pointwise views nn linear_algebra reductions indexing creation python".split()


def records() -> dict[str, Operator]:
    """All records, by kind; those of in-place and copied forms that follow from others included."""
    family = joined(import_module(f"{__name__}.{each}").FAMILY for each in _FAMILIES)
    stated = family.records
    family.add(in_place_forms(stated), copied_forms(stated))
    with_forms = family.records
    family.add(operand_kinds(with_forms), types_of_results(with_forms))
    return family.records


# -- forms whose records follow from those of others ---------------------------


_ANNOTATION = re.compile(r"\(a[=<]?\)")


def in_place_forms(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """What follows for the in-place forms of operators that have the tag ``in-place``.

    ``X_`` writes what ``X`` computes into its first operand, and returns that. It takes what ``X`` takes, but for
    ``out_dtype``. Forms of others have rows of their own.
    """
    for name in sorted(kind for kind, record in records.items() if record.in_place is not None):
        for row in records[name].rows:
            overload, of_tensor, rest = row.partition("(Tensor self")
            if of_tensor and rest.endswith(") -> Tensor") and "out_dtype" not in rest:
                yield Operator(f"{name}_", f"{overload.removeprefix(name)}(Tensor(a!) self{rest}(a!)")


def copied_forms(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """The facts of ``X_copy`` by the tag ``copied``: what the view ``X`` shows, in fresh memory."""
    for record in records.values():
        kind, rule = f"{record.kind}_copy", record.shape
        for row in record.rows:
            name, _, rest = row.partition("(")
            if name in record.copied:
                yield Operator(kind, f"{name.removeprefix(record.kind)}({_ANNOTATION.sub('', rest)}")
        if record.copied and rule is not None:
            seen = record.layout & {"seen", "storage"}  # as the view fails, so does its copy
            yield Operator(kind, layout=seen, shape=_shape_of_view(record.kind, rule))


def _shape_of_view(view: str, rule: ShapeRule) -> ShapeRule:
    of_call: CallRule = getattr(rule, "__wrapped__")  # noqa: B009  # what `shape_rule_of` was given

    @wraps(of_call)
    def told(c: Call) -> Type | Sequence[Type]:
        return of_call(Call(c.types, replace(c.schema, name=view)))

    return shape_rule_of(told)


def operand_kinds(records: Mapping[str, Operator]) -> Iterator[Operator]:
    """Element types that in-place forms take: those of the tag ``in-place``, else the functional forms'."""
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
        if record.result_type is not None:
            yield Operator(record.kind, value_operands=())
        if record.result_type not in (None, "bool", "wider") and f"{record.kind}_" in records:
            yield Operator(record.kind, keeps_type="buifc" if record.result_type == "first" else "f")
