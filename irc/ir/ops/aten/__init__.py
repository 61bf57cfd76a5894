"""``aten::`` operators: TorchScript's tensor library and its lists, dictionaries and numbers.

Signatures are those that PyTorch 2.13 prints (``torch._C._jit_get_all_schemas``),
with ``int`` for ``SymInt``. Where PyTorch's annotations are incomplete, these
add: what certainly shares (``(a==)``, ``(a=)``, ``(a<)``), what containers hold,
and results that share although PyTorch calls them fresh: ``type_as``,
``broadcast_tensors``, ``meshgrid``, ``einsum`` of one operand, ``dropout`` in
evaluation, unsafe splits, and lists made from lists. ``beyond.py`` lists them all.

Tags at the end of a row state further properties of the operator: ``tags.py``.
"""

from __future__ import annotations

from irc.ir.ops.aten import (
    binary,
    containers,
    creation,
    indexing,
    logic,
    nn,
    reductions,
    scalars,
    signals,
    tags,
    unary,
    views,
)

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

_TAGGED = tuple(
    family.ROWS.replace("{like}", "{options}, MemoryFormat? memory_format=None").replace("{options}", _OPTIONS)
    for family in (unary, binary, logic, views, nn, reductions, indexing, creation, signals, scalars, containers)
)
ROWS = tuple(map(tags.without_tags, _TAGGED))
TAGS = tags.tags_of(_TAGGED)

RANDOM = creation.RANDOM
RANDOM_UNLESS_FALSE = nn.RANDOM_UNLESS_FALSE
SIDE_EFFECT = scalars.SIDE_EFFECT
