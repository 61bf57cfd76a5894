"""Records of the operators of the ONNX standard."""

from __future__ import annotations

from dataclasses import replace

from irc.ops.onnx import (
    convolution,
    creation,
    images,
    indexing,
    ml,
    pointwise,
    products,
    reductions,
    sequences,
    shaping,
    signal,
)
from irc.ops.record import Operator, joined
from irc.ops.shape_rules import rule_of

_FAMILIES = (
    *(convolution, creation, images, indexing, ml, pointwise),
    *(products, reductions, sequences, shaping, signal),
)


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return {kind: _completed(found) for kind, found in joined(module.FAMILY for module in _FAMILIES).records.items()}


def _completed(operator: Operator) -> Operator:
    """``operator`` with what follows from its scalar semantics."""
    if not operator.scalar:
        return operator
    return replace(
        operator, shape=operator.shape or rule_of(operator), value_operands=(), kernel=operator.kernel or "elementwise"
    )
