"""Operators of ``com.microsoft``: what ONNX Runtime's optimisers and exporters put into models.

Each imports as a function body of standard operators, so that passes see into
it: a table by topic says what there is, and writes the bodies.
"""

from __future__ import annotations

from irc.frontend.onnx.contrib import attention, experimental, grouped, layers, qlinear, quantized, rotary
from irc.frontend.onnx.contrib.table import MICROSOFT, Row

__all__ = ["MICROSOFT", "ROWS", "Row"]

_TOPICS = (layers, experimental, rotary, grouped, attention, quantized, qlinear)

ROWS: dict[tuple[str, str], Row] = {(row.domain, row.name): row for topic in _TOPICS for row in topic.ROWS}
"""(domain, name) -> the operator."""
