"""Operators of ``com.microsoft``: what ONNX Runtime's optimisers and exporters put into models.

Each imports as a function body of standard operators, so that passes see into
it: a table by topic says what there is, and writes the bodies.
"""

from __future__ import annotations

from irc.frontend.onnx.contrib import attention, layers, quantized
from irc.frontend.onnx.contrib.body import MICROSOFT, Row

__all__ = ["MICROSOFT", "ROWS", "Row"]

ROWS: dict[tuple[str, str], Row] = {
    (row.domain, row.name): row for row in (*layers.ROWS, *attention.ROWS, *quantized.ROWS)
}
"""(domain, name) -> the operator."""
