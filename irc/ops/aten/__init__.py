"""``aten::`` operators: TorchScript's tensor library and its lists, dictionaries and numbers.

Signatures are those that PyTorch 2.13 prints (``torch._C._jit_get_all_schemas``),
with ``int`` for ``SymInt``. Where PyTorch's annotations are incomplete, these
add: what certainly shares (``(a==)``, ``(a=)``, ``(a<)``), what containers hold,
and results that share although PyTorch calls them fresh: ``type_as``,
``broadcast_tensors``, ``meshgrid``, ``einsum`` of one operand, ``dropout`` in
evaluation, unsafe splits, and lists made from lists. ``beyond.py`` lists them all.

Tags at the end of a row state further properties of the operator: `irc.ops.tags`.

Scalar semantics are those on tensors, once operands have the element type in which the operator takes them; numbers
among the operands are rounded to it too. Keyword-only parameters are further arguments, in the order of the schema.
"""

from __future__ import annotations

from irc.ops.aten import (
    activations,
    arithmetic,
    binary,
    containers,
    creation,
    indexing,
    logic,
    nn,
    reductions,
    scalars,
    signals,
    unary,
    views,
)
from irc.ops.aten.derived import copied_forms, in_place_forms
from irc.ops.record import Family, Operator, gathered

_FAMILIES = (unary, binary, logic, views, nn, reductions, indexing, creation, signals, scalars, containers)


def records() -> dict[str, Operator]:
    """All records, by kind; those of in-place and copied forms that follow from others included."""
    found = gathered(module.FAMILY for module in (*_FAMILIES, activations, arithmetic))
    return gathered(Family("aten", part) for part in (found.values(), in_place_forms(found), copied_forms(found)))
