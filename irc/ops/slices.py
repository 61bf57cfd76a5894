"""What the bounds of ONNX's Slice mean."""

from __future__ import annotations


def bounds(start: int, end: int, step: int, size: int) -> slice:
    """Python's slice of ``size`` elements that is equal to Slice with these bounds (any ``step`` but 0).

    There is one difference: backwards from a start before the first element, Python returns nothing; Slice starts at
    the first element, as it clamps a start to ``[0, size - 1]`` (Slice-13; ONNX Runtime does so in all versions).
    """
    return slice(max(start, -size) if step < 0 else start, end, step)
