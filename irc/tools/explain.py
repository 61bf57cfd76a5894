"""Remarks on a compiled model: what its passes left as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.runtime.model import CompiledModel
    from irc.support.remarks import Remark


def remarks(model: CompiledModel) -> list[Remark]:
    """All that can be said of ``model``: what passes have recorded."""
    return [] if model.report is None else list(model.report.remarks)
