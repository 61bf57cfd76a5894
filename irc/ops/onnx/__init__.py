"""Records of the operators of the ONNX standard."""

from __future__ import annotations

from irc.ops.onnx import activations, arithmetic, logic, random, shaping, unary
from irc.ops.record import Operator, gathered


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return gathered(module.FAMILY for module in (activations, arithmetic, logic, random, shaping, unary))
