"""Softmax of scores that may all be masked, as PyTorch's exporters write it: ``where(isnan(s), 0, s)``.

Masked scores are -inf, and the softmax of a row of nothing but -inf is NaN. Either all elements of a row are NaN or
none is, so `irc::masked_softmax` need not look at all of them. When exported to ONNX, it is written as several
operators again (`irc.frontend.onnx_export.decompositions`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from irc.ir.constants import one_number
from irc.ir.kinds import MASKED_SOFTMAX
from irc.passes.canonicalize.match import Match, rewrite

if TYPE_CHECKING:
    from irc.ir import Value


@rewrite("Where")
def masked_softmax(m: Match) -> Value | None:
    """0 where the result of a Softmax that nothing else uses is NaN."""
    condition, zero, found = m.node.inputs
    test, softmax = condition.made_by("onnx::IsNaN"), found.made_by("onnx::Softmax")
    if test is None or softmax is None or test.inputs[0] is not found or found.use_count != 2:
        return None
    number = one_number(zero)
    if number is None or number or math.copysign(1, number) < 0 or not m.type_of(found).rank:
        return None  # the number may have an axis
    if m.types_of(softmax).version < 13 or not m.still_holds_here([test, softmax]):
        return None
    return m.new(MASKED_SOFTMAX, [softmax.inputs[0]], m.output.type, {"axis": softmax.attributes.get("axis", -1)})
