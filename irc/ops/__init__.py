"""Records of operators: one each, by family, with all that irc knows of it.

Families are read when an operator of their namespace is first asked for. This layer knows nothing of the alias
analysis, passes and kernels; those ask it.
"""

from __future__ import annotations

from irc.ops.record import REARRANGING, Effects, Family, Movement, Operator
from irc.ops.registry import functional_by_default, of_kind, record, records, register, semantics
from irc.ops.scalar import Choice, ScalarSemantics
from irc.ops.signatures import effects, effects_of, resolve, schema_of, schemas

__all__ = [
    "REARRANGING",
    "Choice",
    "Effects",
    "Family",
    "Movement",
    "Operator",
    "ScalarSemantics",
    "effects",
    "effects_of",
    "functional_by_default",
    "of_kind",
    "record",
    "records",
    "register",
    "resolve",
    "schema_of",
    "schemas",
    "semantics",
]
