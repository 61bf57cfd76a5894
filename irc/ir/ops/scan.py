"""What version 8 of ONNX's Scan has that later ones have not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.node import Node


def is_batched(scan: Node) -> bool:
    """Whether ``scan`` is of version 8: input 0 holds lengths of sequences, others start with a batch axis."""
    return scan.version is not None and scan.version < 9
