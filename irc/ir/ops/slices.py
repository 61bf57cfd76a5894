"""What the bounds of ONNX's Slice mean."""

from __future__ import annotations


def bounds(start: int, end: int, step: int, size: int) -> slice:
    """Python's slice of ``size`` elements that means what these numbers mean to Slice (any ``step`` but 0).

    One thing differs: backwards from before the first element, Python goes nowhere; Slice starts at the first, as a
    start is clamped to ``[0, size - 1]`` then (Slice-13; ONNX Runtime does so in all versions).
    """
    return slice(max(start, -size) if step < 0 else start, end, step)
