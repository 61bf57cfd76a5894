"""What tests of IR text share."""

from __future__ import annotations

from pathlib import Path

YOLO = Path(__file__).parent.parent / "data" / "yolov3_torchscript.ir"
"""A scripted, inlined YOLOv3 as PyTorch prints it."""


def body(line: str, params: str = "") -> str:
    """A graph of one statement."""
    return f"graph({params}):\n  {line}\n  return ()\n"
