"""Records of the operators of the ONNX standard."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from irc.ops.record import Operator, joined
from irc.ops.shape_rules import rule_of

_FAMILIES = "convolution creation images indexing ml pointwise products reductions sequences shaping signal".split()


def records() -> dict[str, Operator]:
    """All records, by kind, with what follows from shape rules and scalar semantics."""
    family = joined(import_module(f"{__name__}.{each}").FAMILY for each in _FAMILIES)
    for facts in family.stated.values():
        if not facts.keys().isdisjoint(("shape", "scalar")):
            facts.setdefault("value_operands", ())
        if "scalar" in facts:
            facts.setdefault("kernel", "elementwise")
    return {kind: replace(found, shape=found.shape or rule_of(found)) for kind, found in family.records.items()}
