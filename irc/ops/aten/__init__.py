"""``aten::`` operators: TorchScript's tensor library and its lists, dictionaries and numbers.

Signatures are those that PyTorch 2.13 prints (``torch._C._jit_get_all_schemas``),
with ``int`` for ``SymInt``. Where PyTorch's annotations are incomplete, these
add: what certainly shares (``(a==)``, ``(a=)``, ``(a<)``), what containers hold,
and results that share although PyTorch calls them fresh: ``type_as``,
``broadcast_tensors``, ``meshgrid``, ``einsum`` of one operand, ``dropout`` in
evaluation, unsafe splits, and lists made from lists. ``schema_differences.py`` lists them all.

Tags at the end of a row state further properties of the operator: `irc.ops.tags`.

Scalar semantics are those on tensors, once operands have the element type in which the operator takes them; numbers
among the operands are rounded to it too. Keyword-only parameters are further arguments, in the order of the schema.
"""

from __future__ import annotations

from irc.ops.aten import (
    activations,
    arithmetic,
    containers,
    creation,
    indexing,
    linear_algebra,
    logic,
    nn,
    reductions,
    scalars,
    signals,
    unary,
    views,
)
from irc.ops.aten.derived import copied_forms, in_place_forms, operand_kinds, types_of_results
from irc.ops.record import Operator, joined

_FAMILIES = (
    *(unary, activations, arithmetic, logic, views, nn, linear_algebra, reductions),
    *(indexing, creation, signals, scalars, containers),
)


def records() -> dict[str, Operator]:
    """All records, by kind; those of in-place and copied forms that follow from others included."""
    family = joined(module.FAMILY for module in _FAMILIES)
    stated = family.records
    family.add(in_place_forms(stated), copied_forms(stated))
    with_forms = family.records
    family.add(operand_kinds(with_forms), types_of_results(with_forms))
    return family.records
