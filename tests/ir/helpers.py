"""What tests of IR text share."""

from pathlib import Path

import pytest

from irc.errors import Error
from irc.ir import Graph

YOLO = Path(__file__).parent.parent / "data" / "yolov3_torchscript.ir"
"""A scripted, inlined YOLOv3 as PyTorch prints it."""


def body(line: str, params: str = "") -> str:
    """A graph of one statement."""
    return f"graph({params}):\n  {line}\n  return ()\n"


def refused(graph: Graph) -> Error:
    with pytest.raises(Error) as caught:
        graph.verify()
    return caught.value


def marked(error: Error) -> str:
    """What the caret of an error stands under."""
    lines = error.message.split("\n")
    at = next(i for i, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"})
    start = lines[at].index("^")
    return lines[at - 1][start : start + lines[at].count("^")]
