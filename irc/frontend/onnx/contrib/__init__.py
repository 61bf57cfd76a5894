"""Operators of ``com.microsoft``: what ONNX Runtime's optimisers and exporters put into models.

Each imports as a function body of standard operators, so that passes see into
it: modules by topic say what there is, and write the bodies.
"""

from __future__ import annotations

from irc.frontend.onnx.contrib import attention as attention
from irc.frontend.onnx.contrib import layers as layers
from irc.frontend.onnx.contrib.body import MICROSOFT, ROWS, Row

__all__ = ["MICROSOFT", "ROWS", "Row"]
